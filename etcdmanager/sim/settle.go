package sim

import (
	"fmt"
	"strings"
)

// Settle stops all faults and lets things take their course, fairly: all that
// gets further by itself does, and the controller looks and acts. It says
// whether the data is lost beyond repair, and if not, that the cluster did not
// come to be as wanted.
func (s *State) Settle(decide Planner) (hopeless bool, v Violation) {
	s.faults = 0
	var events []Event
	for round := range 400 {
		if s.hopeless() {
			return true, ""
		}
		if s.ready() {
			return false, ""
		}
		events = s.progress(events[:0])
		for _, e := range events {
			if e.kind == minutes && round%16 != 15 || e.kind == moments && round%2 != 1 {
				continue
			}
			if again := s.progress(nil); contains(again, e) {
				if v := s.Apply(e, decide); v != "" {
					return false, v
				}
			}
		}
		for s.nGhost > 0 {
			if v := s.Apply(Event{lateStep, 0}, decide); v != "" {
				return false, v
			}
		}
		if s.nTodo == 0 {
			if v := s.Apply(Event{looks, 0}, decide); v != "" {
				return false, v
			}
		}
		for s.nTodo > 0 {
			if v := s.Apply(Event{takes, 0}, decide); v != "" {
				return false, v
			}
		}
	}
	return false, Violation("faults stopped and it did not come to rest as wanted: " + s.String())
}

func contains(events []Event, e Event) bool {
	for _, other := range events {
		if other == e {
			return true
		}
	}
	return false
}

// String says a state in words.
func (s *State) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d wanted, founded=%t, next machine %d, leader m%d, operation %+v", s.replicas, s.founded, s.nextMach, s.leader, s.op)
	for _, m := range s.members[:s.nMemb] {
		fmt.Fprintf(&b, "\n    member m%d at %d learner=%t started=%t live=%t", m.id, m.at, m.learner, m.started, s.live(m))
	}
	for _, m := range s.machines[:s.nMach] {
		fmt.Fprintf(&b, "\n    machine %+v", m)
	}
	for _, step := range s.todo[:s.nTodo] {
		fmt.Fprintf(&b, "\n    to do %+v", step)
	}
	return b.String()
}
