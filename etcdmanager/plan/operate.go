package plan

import "fmt"

// operate goes on with the operation in flight, from wherever it stands. That
// is read from the world and not from the record, so an operation that was cut
// off anywhere is taken up by whoever looks next (F164).
func (d *decision) operate(op Operation) {
	if op.Kind == Remove {
		d.remove(op)
		return
	}
	d.join(op)
}

func (d *decision) end(op Operation, failed bool, reason string) {
	d.do(Step{Kind: EndOperation, Machine: op.Machine, Operation: &op, Failed: failed, Reason: reason})
}

// only makes a membership step the single step of this decision.
func (d *decision) only(s Step) { d.out = []Step{s} }

func (d *decision) remove(op Operation) {
	member, listed := d.member(op.MemberID)
	m, hasMachine := d.machine(op.Machine)
	if !listed {
		// Not there any more is done (F021). The process is stopped first if
		// that is possible; the machine's end is nobody's concern any more.
		if hasMachine && m.Agent.Reachable && m.Agent.Declared && !m.Agent.Fenced {
			d.only(Step{Kind: Fence, Machine: m.Name, Reason: "its member was removed"})
			return
		}
		d.end(op, false, "removed")
		return
	}
	if against := d.mayRemove(member); against != "" {
		d.waitFor(fmt.Sprintf("removing member %s would be unsafe now: %s", nameOf(member), against))
		return
	}
	if d.recovered(op, member) {
		d.end(op, false, "the member works again")
		return
	}
	if to, needed := d.successor(member); needed {
		d.only(Step{Kind: MoveLeader, MemberID: to.ID, Reason: "the leader is about to be removed"})
		return
	}
	d.only(Step{Kind: RemoveMember, MemberID: member.ID, Machine: op.Machine, Reason: op.Reason})
}

// recovered says that the reason for a removal went away before it was done.
func (d *decision) recovered(op Operation, member Member) bool {
	m, ok := d.machineOf(member)
	if !ok || member.Learner || !d.alive(m) || d.leaving(m) {
		return false
	}
	return len(d.voters()) <= d.Spec.Replicas
}

// successor is whom leadership is moved to before the leader is removed: the
// voter that stays and has applied most (F022, F023).
func (d *decision) successor(member Member) (Member, bool) {
	leader, ok := d.leader()
	if !ok || leader.Status.MemberID != member.ID {
		return Member{}, false
	}
	var best Member
	var applied uint64
	for _, v := range d.voters() {
		m, ok := d.machineOf(v)
		if !ok || v.ID == member.ID || !d.alive(m) || d.leaving(m) {
			continue
		}
		if best.ID == "" || m.Status.Applied > applied {
			best, applied = v, m.Status.Applied
		}
	}
	return best, best.ID != ""
}

func (d *decision) join(op Operation) {
	m, hasMachine := d.machine(op.Machine)
	member, listed := d.joining(op, m)
	if listed && !member.Learner {
		d.joined(op, m)
		return
	}
	if reason := d.givenUp(op, m, hasMachine, member, listed); reason != "" {
		d.giveUp(op, m, hasMachine, member, listed, reason)
		return
	}
	if !hasMachine {
		d.do(Step{Kind: CreateMachine, Machine: op.Machine, FailureDomain: d.emptiestDomain(), Reason: op.Reason})
		return
	}
	switch {
	case !m.Agent.Reachable || !m.Agent.Enrolled || m.PeerURL == "":
		d.waitFor(m.Name + " to come up")
	case !listed:
		if against := d.mayAdd(); against != "" {
			d.waitFor("adding a member would be unsafe: " + against)
			return
		}
		if !m.Agent.ReleaseReady {
			d.waitFor(m.Name + " to fetch its release")
			return
		}
		d.only(Step{Kind: AddLearner, Machine: m.Name, PeerURL: m.PeerURL, Reason: op.Reason})
	case op.MemberID == "":
		d.do(Step{Kind: RecordMember, MemberID: member.ID, PeerURL: member.PeerURL, Operation: &op, Reason: "the add had succeeded"})
	default:
		if against := d.mayPromote(m, member); against != "" {
			d.waitFor(fmt.Sprintf("%s to catch up: %s", m.Name, against))
			return
		}
		d.only(Step{Kind: Promote, Machine: m.Name, MemberID: member.ID, Reason: "it is alive and has caught up"})
	}
}

// joining finds the member of a join: by the recorded ID, else by the
// machine's peer URL (F012, F013).
func (d *decision) joining(op Operation, m Machine) (Member, bool) {
	if member, ok := d.member(op.MemberID); ok {
		return member, true
	}
	return d.memberOf(m)
}

// joined ends a join whose member votes. That the member itself says so too
// is waited for as long as it is not dead (F032).
func (d *decision) joined(op Operation, m Machine) {
	if _, dead := d.dead(m); dead || d.alive(m) && m.Status.Known && !m.Status.Learner {
		d.end(op, false, "it votes")
		return
	}
	d.waitFor(op.Machine + " to serve as a voter")
}

// givenUp says why a join cannot come to an end; slow is not given up as long
// as there is progress (F039).
func (d *decision) givenUp(op Operation, m Machine, hasMachine bool, member Member, listed bool) string {
	if !hasMachine {
		if listed || op.MemberID != "" {
			return "its machine is gone"
		}
		return ""
	}
	if m.Deleting {
		return "its machine was deleted"
	}
	if listed && m.PeerURL != "" && member.PeerURL != m.PeerURL {
		return "its machine has another address now"
	}
	switch {
	case m.Requested && m.Instance == InstanceGone && d.Now.Sub(m.GoneSince) >= goneFor:
		return "its machine is gone"
	case m.Agent.Reachable && m.Agent.Fenced:
		return "its machine is fenced"
	case m.Agent.Reachable && (m.Agent.Data == DataLost || m.Agent.Data == DataForeign):
		return "its data is not usable"
	}
	last := op.Started
	if m.ProgressAt.After(last) {
		last = m.ProgressAt
	}
	if d.Now.Sub(last) >= d.Spec.DeadAfter && !d.FleetSilent {
		return fmt.Sprintf("no progress for %s", d.Spec.DeadAfter)
	}
	d.lookAgainAt(last.Add(d.Spec.DeadAfter))
	return ""
}

// giveUp undoes a join: the learner first, since it takes the only place
// (F015), then the machine.
func (d *decision) giveUp(op Operation, m Machine, hasMachine bool, member Member, listed bool, reason string) {
	switch {
	case listed:
		if against := d.mayRemove(member); against != "" {
			d.waitFor("removing the learner would be unsafe: " + against)
			return
		}
		d.only(Step{Kind: RemoveMember, MemberID: member.ID, Machine: op.Machine, Reason: reason})
	case hasMachine:
		d.letGo(m, reason)
	default:
		d.end(op, true, reason)
	}
}

// emptiestDomain is the failure domain with the fewest machines that stay.
func (d *decision) emptiestDomain() string {
	best, fewest := "", -1
	for _, domain := range d.Spec.FailureDomains {
		n := 0
		for _, m := range d.Machines {
			if m.FailureDomain == domain && !d.leaving(m) {
				n++
			}
		}
		if fewest < 0 || n < fewest {
			best, fewest = domain, n
		}
	}
	return best
}
