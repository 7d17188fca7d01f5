package sim

import "testing"

// TestRefusals holds the model's answers against those that etcd gave in the
// lab; the numbers are those of the hazards where they are described.
func TestRefusals(t *testing.T) {
	down := func(n int) State { return after(Founded(n, 1), Event{etcdDies, 1}) }
	learner := after(Founded(3, 1), Event{learnerByHand, 0})
	synced := learner
	synced.create(handMade)
	synced.machine(handMade).caught = true
	restarted := after(down(3), Event{starts, 1})
	lost := after(Founded(3, 2), Event{etcdDies, 1}, Event{etcdDies, 2})
	for _, c := range []struct {
		name string
		in   State
		call func(*State) refusal
		want refusal
	}{
		{"a learner while one is down (F002)", down(3), func(s *State) refusal { return s.add(9) }, unhealthy},
		{"a learner while one of five is down, by the strictest patches (F003)", down(5), func(s *State) refusal { return s.add(9) }, unhealthy},
		{"a learner right after a start (F004)", restarted, func(s *State) refusal { return s.add(9) }, unhealthy},
		{"a learner moments later", after(restarted, Event{moments, 0}), func(s *State) refusal { return s.add(9) }, accepted},
		{"a learner for one member (F006)", Founded(1, 0), func(s *State) refusal { return s.add(9) }, accepted},
		{"a second learner (F011)", learner, func(s *State) refusal { return s.add(9) }, tooManyLearners},
		{"an address twice (F012)", Founded(3, 0), func(s *State) refusal { return s.add(1) }, urlExists},
		{"without a quorum (F020)", lost, func(s *State) refusal { return s.add(9) }, noAnswer},
		{"a learner that never started (F007)", learner, func(s *State) refusal { return s.promote(4) }, notInSync},
		{"a learner that had caught up and is dead (F008)", synced, func(s *State) refusal { return s.promote(4) }, accepted},
		{"a voter", Founded(3, 0), func(s *State) refusal { return s.promote(2) }, notLearner},
		{"nobody", Founded(3, 0), func(s *State) refusal { return s.promote(9) }, notFound},
		{"the dead one is removed", down(3), func(s *State) refusal { return s.remove(2) }, accepted},
		{"a healthy one while another is down (F019)", down(3), func(s *State) refusal { return s.remove(3) }, unhealthy},
		{"a removal repeated (F021)", Founded(3, 0), func(s *State) refusal { return s.remove(9) }, notFound},
		{"a removal without a quorum (F020)", lost, func(s *State) refusal { return s.remove(2) }, noAnswer},
		{"a learner while one is down", after(learner, Event{etcdDies, 1}), func(s *State) refusal { return s.remove(4) }, accepted},
		{"the lead for a learner (F023)", learner, func(s *State) refusal { return s.moveLeader(4) }, badTransferee},
		{"the lead for a dead one (F023)", down(3), func(s *State) refusal { return s.moveLeader(2) }, badTransferee},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.call(&c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
