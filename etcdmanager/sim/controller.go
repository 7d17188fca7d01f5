package sim

import (
	"strconv"

	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

type stepKind uint8

// Steps in few bytes; their order is of no meaning.
const (
	sRecordFounding stepKind = iota + 1
	sRecordFounded
	sResetFounding
	sCreate
	sAsk
	sEnrol
	sDeclare
	sFence
	sDelete
	sRelease
	sBegin
	sEnd
	sRecordMember
	sAdd
	sPromote
	sRemove
	sMoveLeader
)

var stepKinds = map[plan.Kind]stepKind{
	plan.RecordFounding: sRecordFounding, plan.RecordFounded: sRecordFounded, plan.ResetFounding: sResetFounding,
	plan.CreateMachine: sCreate, plan.AskMachine: sAsk, plan.Enrol: sEnrol, plan.Declare: sDeclare, plan.Fence: sFence,
	plan.DeleteMachine: sDelete, plan.ReleaseMachine: sRelease, plan.BeginOperation: sBegin, plan.EndOperation: sEnd,
	plan.RecordMember: sRecordMember, plan.AddLearner: sAdd, plan.Promote: sPromote, plan.RemoveMember: sRemove, plan.MoveLeader: sMoveLeader,
}

func (k stepKind) membership() bool { return k >= sAdd }

// records says that a step is a write of the record, and nothing else.
func (k stepKind) records() bool {
	return k <= sResetFounding || k == sBegin || k == sEnd || k == sRecordMember
}

const noMachine = 255

func numOf(name string) uint8 {
	if name == "" {
		return noMachine
	}
	n, err := strconv.Atoi(name[2:])
	if err != nil {
		panic("sim: a machine's name is " + name)
	}
	return uint8(n)
}

func idOf(id string) uint8 {
	if id == "" {
		return 0
	}
	n, err := strconv.Atoi(id[1:])
	if err != nil {
		panic("sim: a member's ID is " + id)
	}
	return uint8(n)
}

// Planner is plan.Decide, or a planner with a bug planted in it.
type Planner func(plan.World) []plan.Step

// Decide is the planner that is meant to be without bugs.
func Decide(w plan.World) []plan.Step { return plan.Decide(w).Steps }

func (s *State) encode(step plan.Step) simStep {
	e := simStep{
		kind: stepKinds[step.Kind], machine: numOf(step.Machine), member: idOf(step.MemberID),
		conf: s.conf, founders: uint8(len(step.Founders)), flag: step.Found || step.Failed, flag2: step.PutOff,
	}
	if len(step.Founders) > 0 {
		e.machine = numOf(step.Founders[0])
		e.flag2 = step.ClusterID != ""
	}
	if step.Operation != nil {
		e.op = simOp{kind: opJoin, machine: numOf(step.Operation.Machine), member: idOf(step.Operation.MemberID)}
		if step.Operation.Kind == plan.Remove {
			e.op.kind = opRemove
		}
	}
	return e
}

// look has the controller decide anew. Its memory of who is silent since when
// is brought up to date by what it sees.
func (s *State) look(decide Planner) {
	s.remember()
	s.nTodo = 0
	s.todo = [maxSteps]simStep{}
	w := s.see()
	for _, step := range decide(w) {
		if s.nTodo < maxSteps {
			s.todo[s.nTodo] = s.encode(step)
			if step.Kind == plan.AskMachine {
				s.todo[s.nTodo].flag = w.MembersKnown
			}
			s.nTodo++
		}
	}
}

// remember is what observe's memory does at a look.
func (s *State) remember() {
	for i := range s.machines[:s.nMach] {
		m := &s.machines[i]
		member := s.memberAt(m.num)
		answers := !m.cut && m.inst == up && m.running && !m.old && (s.serves(m) || member != nil && member.learner)
		switch {
		case answers:
			m.silent = none
		case m.silent == none:
			m.silent = short
		}
		if m.inst != gone && m.inst != notMade {
			m.gone = none
		}
	}
}

// outcome of a side effect.
type outcome uint8

const (
	done   outcome = iota
	lost           // it took effect and the answer was lost
	failed         // it took none
)

// take carries out the i-th step that is left, as act does. After an error
// nothing that was decided is done any more.
func (s *State) take(i int, how outcome, decide Planner) Violation {
	step := s.todo[i]
	if how == failed {
		s.abandon()
		return ""
	}
	var v Violation
	var ok bool
	if step.kind.membership() {
		if !s.noSecondLook && !s.same(step, decide) {
			s.abandon()
			return ""
		}
		v = s.checkCall(step)
		ok = s.call(step, how == lost)
	} else {
		v, ok = s.do(step, false, how == lost)
	}
	if !ok || how == lost {
		s.abandon()
		return v
	}
	copy(s.todo[i:], s.todo[i+1:s.nTodo])
	s.nTodo--
	s.todo[s.nTodo] = simStep{}
	return v
}

func (s *State) abandon() {
	s.nTodo = 0
	s.todo = [maxSteps]simStep{}
}

// same is the second look that act takes right before a membership call.
func (s *State) same(step simStep, decide Planner) bool {
	s.remember()
	again := decide(s.see())
	if len(again) != 1 {
		return false
	}
	e := s.encode(again[0])
	return e.kind == step.kind && e.machine == step.machine && e.member == step.member
}

func (s *State) call(step simStep, answerLost bool) bool {
	switch step.kind {
	case sAdd:
		if s.add(step.machine) != accepted {
			return false
		}
		if !answerLost {
			s.op.member = s.memberAt(step.machine).id
		}
	case sPromote:
		return s.promote(step.member) == accepted
	case sRemove:
		r := s.remove(step.member)
		return r == accepted || r == notFound
	case sMoveLeader:
		return s.moveLeader(step.member) == accepted
	}
	return true
}

// do carries out a step that changes no membership. By a deposed controller
// ("late") records are not written, and agents that heard the other refuse.
func (s *State) do(step simStep, late, half bool) (Violation, bool) {
	if step.kind.records() {
		if late {
			return "", false
		}
		return s.record(step)
	}
	m := s.machine(step.machine)
	if step.kind == sCreate {
		return s.create(step.machine)
	}
	if m == nil {
		return "", true
	}
	var v Violation
	if !late {
		v = s.checkMachine(step, m)
	}
	switch step.kind {
	case sAsk:
		m.requested = true
		if !late {
			v = max(v, s.checkCount())
		}
		if half {
			break
		}
		switch m.inst {
		case notMade:
			m.inst = pending
		case stopped:
			m.inst, m.agentUp, m.fresh = up, true, true
		}
	case sEnrol, sDeclare, sFence:
		return v, s.tell(step, m, late)
	case sDelete:
		m.deleting = true
	case sRelease:
		if late && !m.deleting && !s.endsAnything {
			return "", false // the object is read anew, and its end was not asked for
		}
		if late && s.memberAt(m.num) != nil && !m.deleting {
			v = "the machine of a member is ended"
		}
		m.inst, m.running = gone, false
		if !half {
			s.dropMachine(m.num)
		}
		s.elect()
	}
	return v, true
}

func (s *State) create(num uint8) (Violation, bool) {
	if s.machine(num) != nil {
		return "", true
	}
	if s.nMach == maxMachines {
		return "more machines than the model holds", false
	}
	i := s.nMach
	for ; i > 0 && s.machines[i-1].num > num; i-- {
		s.machines[i] = s.machines[i-1]
	}
	s.machines[i] = simMachine{num: num}
	s.nMach++
	return "", true
}

func (s *State) tell(step simStep, m *simMachine, late bool) bool {
	if m.inst != up || m.cut || !m.agentUp || late && m.newer {
		return false
	}
	if !late {
		m.newer = true
	}
	switch step.kind {
	case sEnrol:
		m.enrolled = true
	case sFence:
		m.fenced, m.running, m.told = true, false, nothing
		s.elect()
	case sDeclare:
		if m.fenced || m.lost || m.dataOf != 0 && step.member != 0 && m.dataOf != step.member {
			return false
		}
		if m.told == nothing {
			m.progressOld = false
		}
		m.told, m.stale, m.old = toJoin, step.conf != s.conf, false
		if step.flag {
			m.told, m.stale = toFound, false
		}
	}
	return true
}

func (s *State) record(step simStep) (Violation, bool) {
	switch step.kind {
	case sRecordFounding:
		return s.recordFounding(step), true
	case sRecordFounded:
		s.founded = true
	case sResetFounding:
		if s.founded {
			return "a founded cluster is founded again", true
		}
		s.nFoun, s.firstFounder = 0, 0
		s.disown()
	case sBegin:
		if s.op.kind != 0 {
			return "two operations at once", true
		}
		s.op = step.op
		if step.op.kind == opJoin {
			s.nextMach = max(s.nextMach, step.op.machine+1)
		}
	case sRecordMember:
		s.op.member = step.member
	case sEnd:
		switch {
		case step.flag:
			s.failures, s.backoff = min(s.failures+1, 2), true
		case s.op.kind == opJoin && !step.flag2:
			s.failures, s.backoff = 0, false
		}
		s.op = simOp{}
	}
	return "", true
}

func (s *State) recordFounding(step simStep) Violation {
	if s.founded {
		return "a founded cluster is founded again"
	}
	for i := range s.machines[:s.nMach] {
		s.nextMach = max(s.nextMach, s.machines[i].num+1)
	}
	s.firstFounder, s.nFoun = step.machine, step.founders
	s.nextMach = max(s.nextMach, step.machine+step.founders)
	if step.flag2 {
		s.founded = true
		return ""
	}
	if s.recordLost && s.hasData() {
		return "a cluster whose record was lost is founded anew"
	}
	s.disown()
	return ""
}

// disown makes everything that was founded so far another incarnation.
func (s *State) disown() {
	for i := range s.machines[:s.nMach] {
		if s.machines[i].told != nothing {
			s.machines[i].old = true
		}
	}
	s.members, s.nMemb, s.leader = [maxMembers]simMember{}, 0, 0
}
