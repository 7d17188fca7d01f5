package sim

import "fmt"

// Event is one thing that happens: the fleet gets further, the controller
// takes a step, or something breaks.
type Event struct {
	kind eventKind
	on   uint8 // index of a machine, or whatever the kind needs
}

type eventKind uint8

// Kinds of events: first what the fleet does by itself, then the controller,
// then what heals, then faults, each of which is one of those allowed.
const (
	comesUp eventKind = iota + 1
	fetches
	starts
	catchesUp
	moments // pass: longer than the health interval
	minutes // pass: longer than anyone's patience

	looks
	takes
	lateStep

	agentBack
	reachable
	peersBack
	fleetBack

	firstFault
	answerLost
	stepFails
	crashes
	deposed
	machineGone
	machineStops
	etcdDies
	diskWiped
	diskReplaced
	agentDies
	cutOff
	peersCut
	objectDeleted
	replaceAsked
	objectVanishes
	scaledUp
	scaledDown
	learnerByHand
	recordIsLost
	leaderMoves
	silentFleet
)

var eventNames = map[eventKind]string{
	comesUp: "machine %d comes up", fetches: "machine %d has its release", starts: "etcd of machine %d starts",
	catchesUp: "the learner of machine %d catches up", moments: "moments pass", minutes: "minutes pass",
	looks: "the controller looks", takes: "it takes step %d", lateStep: "the deposed controller takes a step",
	agentBack: "the agent of machine %d is back", reachable: "machine %d is reachable again",
	peersBack: "machine %d reaches its peers again", fleetBack: "the fleet is heard again",
	answerLost: "step %d took effect and its answer is lost", stepFails: "step %d fails", crashes: "the controller crashes",
	deposed: "another controller takes over", machineGone: "machine %d is gone", machineStops: "machine %d stops",
	etcdDies: "etcd of machine %d dies", diskWiped: "the data of machine %d is wiped", diskReplaced: "the disk of machine %d is replaced",
	agentDies: "the agent of machine %d dies", cutOff: "machine %d is cut off from the controller",
	peersCut: "machine %d is cut off from its peers", objectDeleted: "machine %d is deleted", replaceAsked: "machine %d is to be replaced",
	objectVanishes: "machine %d vanishes with its object", scaledUp: "two more are wanted", scaledDown: "two fewer are wanted",
	learnerByHand: "somebody adds a learner", recordIsLost: "the record is lost", leaderMoves: "another leads", silentFleet: "the fleet is silent",
}

// describe says an event in the words of the state it happens in.
func (s *State) describe(e Event) string {
	text := eventNames[e.kind]
	on := int(e.on)
	if e.kind == looks || e.kind == takes || e.kind == answerLost || e.kind == stepFails {
		if e.kind != looks {
			text += fmt.Sprintf(" %+v", s.todo[e.on])
		}
	} else if on < int(s.nMach) {
		on = int(s.machines[on].num)
	}
	for i := range len(text) - 1 {
		if text[i:i+2] == "%d" {
			return fmt.Sprintf(text, on)
		}
	}
	return text
}

// Events lists what can happen next. Step order among machines is explored
// when anyOrder is set.
func (s *State) Events(into []Event, anyOrder bool) []Event {
	into = s.progress(into)
	if s.nTodo == 0 {
		into = append(into, Event{looks, 0})
	}
	for i := range s.nTodo {
		if i == 0 || anyOrder && s.independent(int(i)) {
			into = append(into, Event{takes, i})
			if s.faults > 0 {
				into = append(into, Event{answerLost, i}, Event{stepFails, i})
			}
		}
	}
	if s.nGhost > 0 {
		into = append(into, Event{lateStep, 0})
	}
	if s.faults > 0 {
		into = s.breaks(into)
	}
	return into
}

// independent says that no step on the same machine comes before.
func (s *State) independent(i int) bool {
	for _, step := range s.todo[:i] {
		if step.machine == s.todo[i].machine {
			return false
		}
	}
	return true
}

// progress lists what happens without anybody's fault.
func (s *State) progress(into []Event) []Event {
	timePasses, momentsMatter := s.op.kind != 0 && !s.op.old || s.failures > 0 && s.backoff, false
	for i := range s.machines[:s.nMach] {
		m, on := &s.machines[i], uint8(i)
		if m.inst == pending {
			into = append(into, Event{comesUp, on})
		}
		if m.inst == up && m.agentUp && m.enrolled && !m.release {
			into = append(into, Event{fetches, on})
		}
		if s.canStart(m) {
			into = append(into, Event{starts, on})
		}
		if s.canCatchUp(m) {
			into = append(into, Event{catchesUp, on})
		}
		if m.inst == up && !m.agentUp {
			into = append(into, Event{agentBack, on})
		}
		if m.cut {
			into = append(into, Event{reachable, on})
		}
		if m.peerCut {
			into = append(into, Event{peersBack, on})
		}
		momentsMatter = momentsMatter || m.fresh || m.requested && (m.inst == gone || m.inst == notMade) && m.gone == none
		timePasses = timePasses || m.silent == short || m.gone == short || !m.progressOld
	}
	if s.fleetSilent {
		into = append(into, Event{fleetBack, 0})
	}
	if momentsMatter {
		into = append(into, Event{moments, 0})
	}
	if timePasses || momentsMatter {
		into = append(into, Event{minutes, 0})
	}
	return into
}

func (s *State) canStart(m *simMachine) bool {
	if m.inst != up || !m.agentUp || m.running || m.fenced || m.lost || m.old || m.told == nothing || !m.release {
		return false
	}
	if m.dataOf != 0 {
		return s.member(m.dataOf) != nil // a removed one exits again
	}
	member := s.memberAt(m.num)
	if m.told == toFound {
		return s.formless() || member != nil && !member.started && !member.promoted
	}
	return member != nil && member.learner && !m.stale && s.hasQuorum() && !m.peerCut
}

// formless says that no founder has started, or that of those that did nothing
// is left.
func (s *State) formless() bool { return !s.founded && !s.hasData() }

func (s *State) hasData() bool {
	for _, m := range s.machines[:s.nMach] {
		if m.dataOf != 0 && !m.old {
			return true
		}
	}
	return false
}

func (s *State) canCatchUp(m *simMachine) bool {
	if m.caught || !m.running || m.peerCut || !s.hasQuorum() {
		return false
	}
	member := s.memberAt(m.num)
	return member != nil && m.runs(*member)
}

// breaks lists what may go wrong.
func (s *State) breaks(into []Event) []Event {
	into = append(into, Event{crashes, 0})
	if s.nTodo > 0 {
		into = append(into, Event{deposed, 0})
	}
	for i := range s.machines[:s.nMach] {
		m, on := &s.machines[i], uint8(i)
		if !m.deleting {
			into = append(into, Event{objectDeleted, on})
		}
		if !m.replace && !m.deleting {
			into = append(into, Event{replaceAsked, on})
		}
		into = append(into, Event{objectVanishes, on})
		if m.inst == up || m.inst == pending || m.inst == stopped {
			into = append(into, Event{machineGone, on})
		}
		if m.inst != up {
			continue
		}
		into = append(into, Event{machineStops, on}, Event{diskReplaced, on})
		if m.running {
			into = append(into, Event{etcdDies, on})
		}
		if m.dataOf != 0 {
			into = append(into, Event{diskWiped, on})
		}
		if m.agentUp {
			into = append(into, Event{agentDies, on})
		}
		if !m.cut {
			into = append(into, Event{cutOff, on})
		}
		if !m.peerCut {
			into = append(into, Event{peersCut, on})
		}
	}
	return s.breaksCluster(into)
}

func (s *State) breaksCluster(into []Event) []Event {
	if s.replicas < 5 {
		into = append(into, Event{scaledUp, 0})
	}
	if s.replicas > 1 {
		into = append(into, Event{scaledDown, 0})
	}
	if s.hasQuorum() {
		into = append(into, Event{leaderMoves, 0})
		if s.memberAt(handMade) == nil {
			into = append(into, Event{learnerByHand, 0})
		}
	}
	if s.founded && !s.recordLost {
		into = append(into, Event{recordIsLost, 0})
	}
	if !s.fleetSilent {
		into = append(into, Event{silentFleet, 0})
	}
	return into
}

// handMade is the address of a member that no machine of ours has.
const handMade = 200
