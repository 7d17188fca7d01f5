package sim

// refusal of a membership call, as etcd words it.
type refusal string

const (
	accepted        refusal = ""
	unhealthy       refusal = "etcdserver: unhealthy cluster"
	notEnough       refusal = "etcdserver: re-configuration failed due to not enough started members"
	tooManyLearners refusal = "etcdserver: too many learner members in cluster"
	urlExists       refusal = "etcdserver: Peer URLs already exists"
	notFound        refusal = "etcdserver: member not found"
	notLearner      refusal = "etcdserver: can only promote a learner member"
	notInSync       refusal = "etcdserver: can only promote a learner member which is in sync with leader"
	badTransferee   refusal = "etcdserver: bad leader transferee"
	noAnswer        refusal = "context deadline exceeded"
)

func quorum(n int) int { return n/2 + 1 }

// live says that a member's process runs with its own data and talks to its
// peers.
func (s *State) live(m simMember) bool {
	machine := s.machine(m.at)
	return machine != nil && machine.runs(m) && !machine.peerCut
}

func (m simMachine) runs(member simMember) bool {
	return m.inst == up && m.running && !m.old && m.dataOf == member.id
}

func (s *State) voters() (voters, live int) {
	for _, m := range s.members[:s.nMemb] {
		if !m.learner {
			voters++
			if s.live(m) {
				live++
			}
		}
	}
	return voters, live
}

func (s *State) hasQuorum() bool {
	voters, live := s.voters()
	return voters > 0 && live >= quorum(voters)
}

// serves says that a machine's etcd answers linearizable reads.
func (s *State) serves(m *simMachine) bool {
	member := s.memberAt(m.num)
	return member != nil && !member.learner && s.live(*member) && s.hasQuorum()
}

// elect gives a cluster that has a quorum a leader.
func (s *State) elect() {
	if !s.hasQuorum() {
		s.leader = 0
		return
	}
	if l := s.member(s.leader); l != nil && !l.learner && s.live(*l) {
		return
	}
	for _, m := range s.members[:s.nMemb] {
		if !m.learner && s.live(m) {
			s.leader = m.id
			return
		}
	}
}

// connected counts voters that are live and have been for the health interval.
func (s *State) connected() (voters, connected int) {
	for _, m := range s.members[:s.nMemb] {
		if m.learner {
			continue
		}
		voters++
		if s.live(m) && (m.id == s.leader || !s.machine(m.at).fresh) {
			connected++
		}
	}
	return voters, connected
}

// add is MemberAddAsLearner under the rule of the strictest patches: every
// voter is connected (F003).
func (s *State) add(at uint8) refusal {
	if !s.hasQuorum() {
		return noAnswer
	}
	if voters, connected := s.connected(); voters > 1 && connected < voters {
		return unhealthy
	}
	for _, m := range s.members[:s.nMemb] {
		if m.at == at {
			return urlExists
		}
		if m.learner {
			return tooManyLearners
		}
	}
	if s.nMemb == maxMembers {
		return tooManyLearners
	}
	s.members[s.nMemb] = simMember{id: s.nextMemb, at: at, learner: true}
	s.nMemb++
	s.nextMemb++
	s.reconfigured()
	return accepted
}

// promote is MemberPromote. It looks at how far the learner had got and not at
// whether it lives (F008).
func (s *State) promote(id uint8) refusal {
	m := s.member(id)
	switch {
	case !s.hasQuorum():
		return noAnswer
	case m == nil:
		return notFound
	case !m.learner:
		return notLearner
	}
	machine := s.machine(m.at)
	if machine == nil || !machine.caught {
		return notInSync
	}
	started, voters := 1, 1
	for _, v := range s.members[:s.nMemb] {
		if !v.learner {
			voters++
			if v.started {
				started++
			}
		}
	}
	if started < quorum(voters) {
		return notEnough
	}
	m.learner, m.promoted = false, true
	machine.fresh = true
	s.reconfigured()
	return accepted
}

// remove is MemberRemove.
func (s *State) remove(id uint8) refusal {
	m := s.member(id)
	if !s.hasQuorum() {
		return noAnswer
	}
	if m == nil {
		return notFound
	}
	if !m.learner {
		started, rest := 0, 0
		for _, v := range s.members[:s.nMemb] {
			if !v.learner && v.id != id {
				rest++
				if v.started {
					started++
				}
			}
		}
		if started < quorum(rest) {
			return notEnough
		}
		if s.live(*m) {
			if voters, connected := s.connected(); connected-1 < 1+(voters-1)/2 {
				return unhealthy
			}
		}
	}
	for i := range s.members[:s.nMemb] {
		if s.members[i].id == id {
			if machine := s.machine(s.members[i].at); machine != nil && machine.dataOf == id {
				machine.running = false // it removes itself and exits
			}
			copy(s.members[i:], s.members[i+1:s.nMemb])
			break
		}
	}
	s.nMemb--
	s.members[s.nMemb] = simMember{}
	s.reconfigured()
	return accepted
}

func (s *State) moveLeader(id uint8) refusal {
	m := s.member(id)
	switch {
	case !s.hasQuorum():
		return noAnswer
	case m == nil || m.learner || !s.live(*m):
		return badTransferee
	}
	s.leader = id
	return accepted
}

// reconfigured makes every member list that an agent was told an old one.
func (s *State) reconfigured() {
	s.conf++
	for i := range s.machines[:s.nMach] {
		if s.machines[i].told == toJoin {
			s.machines[i].stale = true
		}
	}
	s.elect()
}
