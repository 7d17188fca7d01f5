// Package sim is a model of a fleet on which the planner is explored: the
// machines of one cluster with their disks and agents, etcd's membership with
// its refusals, the management API's record, and a controller that can crash,
// or be deposed, between any two side effects. It models what decides about
// safety and no more; what it takes for granted of real etcd is compared with
// real etcd elsewhere. It must import nothing that does I/O and read no clock:
// a run is a function of its events.
package sim

// Limits of a State. An exploration that reaches one counts it as a violation.
const (
	maxMachines = 8
	maxMembers  = 8
	maxSteps    = 8
)

// instance is what there is of a machine.
type instance uint8

const (
	notMade instance = iota
	pending
	up
	stopped // with its disk
	gone
)

// what an agent was told.
type told uint8

const (
	nothing told = iota
	toFound
	toJoin
)

// level of a span of time: none, shorter than patience, longer.
type level uint8

const (
	none level = iota
	short
	long
)

type simMachine struct {
	num                          uint8 // also its address; names and addresses are never used again
	inst                         instance
	told                         told
	silent                       level // as the controller remembers it
	dataOf                       uint8 // member ID of what is on its disk, 0 for none
	deleting, replace, requested bool
	agentUp, enrolled, fenced    bool
	release, running, lost       bool // lost: a member ran and its data is gone
	stale                        bool // told another member list than the present
	old                          bool // of an incarnation that was given up
	cut, peerCut                 bool // from the controller, from its peers
	caught                       bool // caught up
	fresh                        bool // connected for less than etcd's health interval
	progressOld                  bool
	gone                         level // as the controller remembers it
	newer                        bool  // its agent has heard the controller in charge, and refuses the one before
}

type simMember struct {
	id, at           uint8 // at is the number of its machine
	learner, started bool
	promoted         bool // joined, and not founded
}

type simOp struct {
	kind            uint8 // 0 none, 1 join, 2 remove
	machine, member uint8
	old             bool
}

const (
	opJoin   = 1
	opRemove = 2
)

// simStep is a plan.Step in few bytes.
type simStep struct {
	kind            stepKind
	machine, member uint8
	conf            uint8 // the membership's version that a Declare was made for
	op              simOp
	founders        uint8
	flag            bool // Found, or Failed, or that the members were known
	flag2           bool // PutOff, or adopting
}

// State is everything, at one moment. It is comparable and copied by value.
type State struct {
	machines [maxMachines]simMachine
	members  [maxMembers]simMember
	nMach    uint8
	nMemb    uint8
	conf     uint8 // version of the membership
	leader   uint8 // member ID, 0 for none
	nextMemb uint8

	// The record on the cluster's object.
	replicas, peak      uint8
	firstFounder, nFoun uint8 // none founded if nFoun is 0
	nextMach            uint8
	founded             bool
	recordLost          bool // once
	op                  simOp
	failures            uint8
	backoff             bool

	// The controller: what it decided and has still to do, and that of one
	// that was deposed and doesn't know.
	todo   [maxSteps]simStep
	nTodo  uint8
	ghost  [maxSteps]simStep
	nGhost uint8

	// What act is careless about; a start sets it and nothing changes it.
	noSecondLook bool
	endsAnything bool

	fleetSilent bool
	faults      uint8 // that may still happen
}

// Founded is a healthy cluster of n members that may suffer some faults.
func Founded(n, faults int) State {
	s := State{replicas: uint8(n), peak: uint8(n), founded: true, nFoun: uint8(n), nextMach: uint8(n), faults: uint8(faults), nextMemb: uint8(n) + 1}
	for i := range n {
		s.machines[i] = simMachine{
			num: uint8(i), inst: up, told: toFound, dataOf: uint8(i) + 1, requested: true, agentUp: true, enrolled: true,
			release: true, running: true, caught: true, newer: true,
		}
		s.members[i] = simMember{id: uint8(i) + 1, at: uint8(i), started: true}
	}
	s.nMach, s.nMemb, s.leader = uint8(n), uint8(n), 1
	return s
}

// Unfounded is nothing but a wish for n members.
func Unfounded(n, faults int) State {
	return State{replicas: uint8(n), peak: uint8(n), faults: uint8(faults), nextMemb: 1}
}

func (s *State) machine(num uint8) *simMachine {
	for i := range s.machines[:s.nMach] {
		if s.machines[i].num == num {
			return &s.machines[i]
		}
	}
	return nil
}

func (s *State) member(id uint8) *simMember {
	for i := range s.members[:s.nMemb] {
		if id != 0 && s.members[i].id == id {
			return &s.members[i]
		}
	}
	return nil
}

func (s *State) memberAt(num uint8) *simMember {
	for i := range s.members[:s.nMemb] {
		if s.members[i].at == num {
			return &s.members[i]
		}
	}
	return nil
}

func (s *State) dropMachine(num uint8) {
	for i := range s.machines[:s.nMach] {
		if s.machines[i].num == num {
			copy(s.machines[i:], s.machines[i+1:s.nMach])
			s.nMach--
			s.machines[s.nMach] = simMachine{}
			return
		}
	}
}
