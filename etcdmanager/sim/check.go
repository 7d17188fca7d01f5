package sim

import "fmt"

// Violation of what must hold, in words; empty if there is none.
type Violation string

// checkCall holds a membership call, right before it is made, against what
// must hold of each (F198): judged on what is true, which the controller may
// not see.
func (s *State) checkCall(step simStep) Violation {
	if s.op.kind == 0 {
		return "a membership call without a recorded operation"
	}
	if step.kind != sMoveLeader && step.member != 0 && s.op.member != 0 && step.member != s.op.member {
		return "a membership call that the recorded operation is not about"
	}
	if !s.hasQuorum() {
		return "" // nothing comes of it
	}
	m := s.member(step.member)
	voters, live := s.voters()
	switch step.kind {
	case sAdd:
		if live < voters {
			return "a member is added while a voter does not live"
		}
		for _, l := range s.members[:s.nMemb] {
			if l.learner {
				return "a second learner is added"
			}
		}
		if machine := s.machine(step.machine); machine == nil || machine.dataOf != 0 || machine.lost || machine.fenced {
			return "a member is added whose disk is not empty"
		}
	case sPromote:
		if m != nil && !s.live(*m) {
			return "a dead learner is promoted"
		}
		if m != nil && !s.machine(m.at).caught {
			return "a learner that lags is promoted"
		}
		if live+1 < quorum(voters+1) {
			return "a promotion loses the quorum"
		}
	case sRemove:
		return s.checkRemoval(m, voters, live)
	}
	return ""
}

func (s *State) checkRemoval(m *simMember, voters, live int) Violation {
	if m == nil || m.learner {
		return ""
	}
	if voters == 1 {
		return "the only voter is removed"
	}
	machine := s.machine(m.at)
	switch {
	case !s.live(*m):
		live++ // the rest keeps all that live
	case machine.cut || machine.lost: // the controller can't see that it lives
	case live < voters:
		return "a healthy member is removed while another does not live"
	case voters <= int(s.replicas) && !machine.deleting && !machine.replace:
		return "a healthy member is removed that nobody asked to go"
	}
	if live-1 < quorum(voters-1) {
		return "a removal loses the quorum"
	}
	return ""
}

// checkMachine holds a step on one machine against what must hold.
func (s *State) checkMachine(step simStep, m *simMachine) Violation {
	member := s.memberAt(m.num)
	switch step.kind {
	case sDeclare:
		if step.flag && s.founded {
			return "a machine is told to found a cluster that was founded"
		}
		if !step.flag && member != nil && !member.learner && m.dataOf == 0 {
			return "a voter with an empty disk is told to run"
		}
		if !step.flag && m.dataOf != 0 && s.member(m.dataOf) == nil {
			return "a removed member's data is started again"
		}
	case sAsk:
		if m.inst == stopped && m.dataOf != 0 && s.member(m.dataOf) == nil && step.flag {
			return "a removed member's machine is started again"
		}
	case sRelease:
		if member != nil && (s.founded || s.recordLost) && m.inst != gone && m.inst != notMade {
			return "the machine of a member is ended"
		}
	}
	return ""
}

// checkCount: never more machines are asked for than one above what was
// wanted, not counting those whose end was asked for.
func (s *State) checkCount() Violation {
	n := 0
	for i := range s.machines[:s.nMach] {
		if s.machines[i].requested && !s.machines[i].deleting {
			n++
		}
	}
	if n > int(s.peak)+1 {
		return Violation(fmt.Sprintf("%d machines for %d members", n, s.peak))
	}
	return ""
}

// check holds any state against what must hold of every one.
func (s *State) check() Violation {
	learners := 0
	for _, m := range s.members[:s.nMemb] {
		if m.learner {
			learners++
		}
		// A promoted voter that runs has data; a founder's first start is
		// what gives it some.
		if machine := s.machine(m.at); machine != nil && machine.running && machine.dataOf == 0 {
			return "etcd runs without data"
		}
	}
	if learners > 1 {
		return "two learners"
	}
	return ""
}

// ready is where every run must come to when faults stop.
func (s *State) ready() bool {
	voters, live := s.voters()
	return s.founded && s.op.kind == 0 && voters == int(s.replicas) && live == voters &&
		int(s.nMemb) == voters && int(s.nMach) == voters
}

// hopeless says that no quorum can ever come back without a restore: too much
// data is gone, or was never recorded to exist.
func (s *State) hopeless() bool {
	if s.nMemb == 0 {
		return false
	}
	voters, may := 0, 0
	for _, m := range s.members[:s.nMemb] {
		if m.learner {
			continue
		}
		voters++
		machine := s.machine(m.at)
		if machine != nil && (machine.inst == up || machine.inst == stopped) && machine.enrolled && !machine.lost && !machine.fenced &&
			(machine.dataOf == m.id || machine.dataOf == 0 && machine.told == toFound && !m.promoted) {
			may++
		}
	}
	return may < quorum(voters) && (s.founded || s.recordLost)
}
