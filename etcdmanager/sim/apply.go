package sim

// Apply has an event happen. It returns what is violated by it.
func (s *State) Apply(e Event, decide Planner) Violation {
	var v Violation
	if e.kind > firstFault {
		s.faults--
	}
	switch e.kind {
	case looks:
		s.look(decide)
	case takes:
		v = s.take(int(e.on), done, decide)
	case answerLost:
		v = s.take(int(e.on), lost, decide)
	case stepFails:
		v = s.take(int(e.on), failed, decide)
	case lateStep:
		v = s.takeLate()
	case moments, minutes:
		s.pass(e.kind == minutes)
	default:
		if !s.onCluster(e.kind) {
			s.onMachine(e.kind, int(e.on))
		}
	}
	s.elect()
	if v == "" {
		v = s.check()
	}
	return v
}

// takeLate has a deposed controller go on. Its records are refused, and so
// are membership calls, each of which writes the record first.
func (s *State) takeLate() Violation {
	step := s.ghost[0]
	copy(s.ghost[:], s.ghost[1:s.nGhost])
	s.nGhost--
	s.ghost[s.nGhost] = simStep{}
	v, ok := Violation(""), false
	if !step.kind.membership() {
		v, ok = s.do(step, true, false)
	}
	if !ok {
		s.ghost, s.nGhost = [maxSteps]simStep{}, 0
	}
	return v
}

func (s *State) pass(minutes bool) {
	for i := range s.machines[:s.nMach] {
		m := &s.machines[i]
		m.fresh = false
		if m.requested && (m.inst == gone || m.inst == notMade) {
			m.gone = max(m.gone, short)
			if minutes {
				m.gone = long
			}
		}
		if minutes {
			m.progressOld = true
			if m.silent == short {
				m.silent = long
			}
		}
	}
	if minutes {
		s.op.old = s.op.kind != 0
		s.backoff = false
	}
}

// onCluster has something happen to the cluster as a whole.
func (s *State) onCluster(kind eventKind) bool {
	switch kind {
	case crashes, deposed:
		if kind == deposed {
			s.ghost, s.nGhost = s.todo, s.nTodo
			for i := range s.machines[:s.nMach] {
				s.machines[i].newer = false
			}
		}
		s.abandon()
		s.forget()
	case scaledUp:
		s.replicas += 2
		s.peak = max(s.peak, s.replicas)
	case scaledDown:
		s.replicas -= 2
	case leaderMoves:
		s.leadAnother()
	case learnerByHand:
		s.add(handMade)
	case recordIsLost:
		s.recordLost, s.founded, s.nFoun, s.firstFounder, s.nextMach = true, false, 0, 0, 0
		s.op, s.failures, s.backoff = simOp{}, 0, false
		s.abandon()
	case silentFleet, fleetBack:
		s.fleetSilent = kind == silentFleet
	default:
		return false
	}
	return true
}

// forget is what a new process of the controller doesn't know.
func (s *State) forget() {
	for i := range s.machines[:s.nMach] {
		m := &s.machines[i]
		m.gone, m.progressOld = none, false
		if m.silent == long {
			m.silent = short
		}
	}
}

func (s *State) leadAnother() {
	for _, m := range s.members[:s.nMemb] {
		if m.id != s.leader && !m.learner && s.live(m) {
			s.leader = m.id
			return
		}
	}
}

func (s *State) onMachine(kind eventKind, i int) {
	m := &s.machines[i]
	switch kind {
	case comesUp:
		m.inst, m.agentUp, m.progressOld = up, true, false
	case fetches:
		m.release, m.progressOld = true, false
	case starts:
		s.start(m)
	case catchesUp:
		m.caught, m.progressOld = true, false
	case agentBack:
		m.agentUp = true
	case agentDies:
		m.agentUp = false
	case reachable, cutOff:
		m.cut = kind == cutOff
	case peersBack:
		m.peerCut, m.fresh = false, true
	case peersCut:
		m.peerCut = true
	case etcdDies:
		m.running = false
	case objectDeleted:
		m.deleting = true
	case replaceAsked:
		m.replace = true
	case objectVanishes:
		s.dropMachine(m.num)
	default:
		m.loses(kind)
	}
}

// loses takes a machine, or its disk, away.
func (m *simMachine) loses(kind eventKind) {
	m.running = false
	switch kind {
	case machineGone:
		*m = simMachine{num: m.num, inst: gone, requested: true, deleting: m.deleting, replace: m.replace, enrolled: m.enrolled, silent: m.silent, progressOld: m.progressOld}
	case machineStops:
		m.inst, m.agentUp = stopped, false
	case diskWiped:
		m.lost, m.dataOf, m.caught = true, 0, false
	case diskReplaced:
		m.enrolled, m.fenced, m.told, m.release, m.stale = false, false, nothing, false, false
		m.lost, m.dataOf, m.caught, m.newer, m.old = false, 0, false, false, false
	}
}

// start starts a machine's etcd. The first founder to start brings the
// membership into being.
func (s *State) start(m *simMachine) {
	if m.told == toFound && s.formless() {
		s.members = [maxMembers]simMember{}
		for i := range s.nFoun {
			s.members[i] = simMember{id: s.nextMemb, at: s.firstFounder + i}
			s.nextMemb++
		}
		s.nMemb = s.nFoun
	}
	m.running, m.fresh = true, true
	if m.dataOf != 0 {
		return
	}
	if member := s.memberAt(m.num); member != nil {
		m.dataOf, m.progressOld, member.started = member.id, false, true
		m.caught = !member.learner
	}
}
