package plan

// upkeep does for one machine what touches no membership: it is asked for,
// started again when it stands still, and enrolled. All of it is allowed at
// any time, also without quorum, where it is what brings quorum back (F179). A
// member whose machine is to end is needed until it is removed (F172).
func (d *decision) upkeep(m Machine) {
	_, listed := d.memberOf(m)
	switch {
	case m.Agent.Fenced || m.Deleting && d.MembersKnown && !listed || m.Deleting && len(d.Record.Founders) > 0 && !d.Record.Founded:
	case !m.Requested:
		d.do(Step{Kind: AskMachine, Machine: m.Name, Reason: "it is new"})
	case m.Instance == InstanceGone && m.PeerURL == "" && !d.gone(m):
		d.do(Step{Kind: AskMachine, Machine: m.Name, Reason: "it was asked for and is not there"})
	case m.Instance == InstanceStopped:
		d.do(Step{Kind: AskMachine, Machine: m.Name, Reason: "it stands still"})
	case m.Agent.Reachable && !m.Agent.Enrolled && !d.diskReplaced(m):
		d.do(Step{Kind: Enrol, Machine: m.Name, Reason: "first contact"})
	}
}

// letGo ends a machine that runs no member of this cluster. Its process is
// stopped first if it can be; a fence that fails is not tried for ever, as the
// machine ends anyway.
func (d *decision) letGo(m Machine, reason string) {
	if !m.Deleting {
		d.do(Step{Kind: DeleteMachine, Machine: m.Name, Reason: reason})
		if m.fenceable() {
			d.do(Step{Kind: Fence, Machine: m.Name, Reason: reason})
		}
	}
	d.do(Step{Kind: ReleaseMachine, Machine: m.Name, Reason: reason})
}

func (m Machine) fenceable() bool {
	return m.Agent.Reachable && m.Agent.Enrolled && m.Agent.Declared && !m.Agent.Fenced
}

// declareAgain tells a member's agent again what to run if it doesn't know:
// after its directory was restored from nothing but etcd's data, or when the
// answer to the first time was lost.
func (d *decision) declareAgain(m Machine) {
	member, listed := d.memberOf(m)
	if !listed || !m.Agent.Reachable || !m.Agent.Enrolled || m.Deleting {
		return
	}
	stale := m.Agent.Data == DataEmpty && !m.Agent.Running && m.Agent.DeclaredPeers != PeersKey(d.initialCluster(m))
	if _, dead := d.dead(m); dead || m.Agent.Declared && !stale && !m.Agent.Outdated {
		return
	}
	if !member.Learner && m.Agent.Data != DataPresent {
		return // a voter with an empty disk must never start (F026)
	}
	d.do(d.declareJoin(m, member))
}

func (d *decision) declareJoin(m Machine, member Member) Step {
	return Step{
		Kind: Declare, Machine: m.Name, MemberID: member.ID, PeerURL: m.PeerURL,
		ClusterID: d.Record.ClusterID, InitialCluster: d.initialCluster(m), Reason: "member " + member.ID,
	}
}

// initialCluster is the member list as a joining member must be told it: all
// members, itself under its own name (F028).
func (d *decision) initialCluster(self Machine) []Peer {
	peers := make([]Peer, 0, len(d.Members))
	for _, member := range d.Members {
		name := member.Name
		if m, ok := d.machineOf(member); ok {
			name = m.Name
		}
		if member.PeerURL == self.PeerURL {
			name = self.Name
		}
		peers = append(peers, Peer{Name: nameOf(Member{ID: member.ID, Name: name}), URL: member.PeerURL})
	}
	return peers
}
