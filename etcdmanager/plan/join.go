package plan

import (
	"fmt"
	"time"
)

func (d *decision) join(op Operation) {
	m, hasMachine := d.machine(op.Machine)
	member, listed := d.joining(op, m)
	if listed && !member.Learner {
		d.joined(op, m, hasMachine)
		return
	}
	if reason, failed := d.givenUp(op, m, hasMachine, member, listed); reason != "" {
		d.giveUp(op, m, hasMachine, member, listed, failed, reason)
		return
	}
	if !listed && d.firstThings(op) {
		return
	}
	switch {
	case !hasMachine:
		d.do(Step{Kind: CreateMachine, Machine: op.Machine, FailureDomain: d.emptiestDomain(), Reason: op.Reason})
	case !m.Agent.Reachable || !m.Agent.Enrolled || m.PeerURL == "":
		d.waitFor(m.Name + " to come up")
	case !listed:
		d.add(op, m)
	case op.MemberID == "":
		d.do(Step{Kind: RecordMember, MemberID: member.ID, PeerURL: member.PeerURL, Operation: &op, Reason: "the add had succeeded"})
	default:
		d.promote(op, m, member)
	}
}

// firstThings puts a join off, before it has touched the membership, for what
// goes first. Its machine is kept for the next join.
func (d *decision) firstThings(op Operation) bool {
	for _, member := range d.Members {
		if member.Learner {
			d.putOff(op, "another learner is in the way")
			return true
		}
	}
	if member, reason, dead := d.firstDead(); dead && d.mayRemove(member) == "" {
		d.putOff(op, "a dead member is removed first: "+reason)
		return true
	}
	return false
}

func (d *decision) add(op Operation, m Machine) {
	if against := d.mayAdd(); against != "" {
		d.waitFor("adding a member would be unsafe: " + against)
		return
	}
	if !m.Agent.ReleaseReady {
		d.waitFor(m.Name + " to fetch its release")
		return
	}
	if m.Agent.Data != DataEmpty {
		d.waitFor(m.Name + " to say that its disk is empty")
		return
	}
	d.only(Step{Kind: AddLearner, Machine: m.Name, PeerURL: m.PeerURL, Reason: op.Reason})
}

func (d *decision) promote(op Operation, m Machine, member Member) {
	if against := d.mayPromote(m, member); against != "" {
		d.waitFor(fmt.Sprintf("%s to catch up: %s", m.Name, against))
		return
	}
	if next := d.evenSize(op); next != "" {
		d.waitFor(fmt.Sprintf("%s, so that the cluster doesn't rest at an even size", next))
		return
	}
	d.only(Step{Kind: Promote, Machine: m.Name, MemberID: member.ID, Reason: "it is alive and has caught up"})
}

// joining finds the member of a join: by the recorded ID, else by the
// machine's peer URL (F012, F013). Before the ID is recorded it is a learner;
// a voter at this address is another.
func (d *decision) joining(op Operation, m Machine) (Member, bool) {
	if op.MemberID != "" {
		return d.member(op.MemberID)
	}
	member, ok := d.memberAt(m.PeerURL)
	return member, ok && member.Learner
}

// joined ends a join whose member votes. That the member itself says so too
// is waited for as long as it is not dead (F032).
func (d *decision) joined(op Operation, m Machine, hasMachine bool) {
	_, dead := d.dead(m)
	if !hasMachine || dead || d.alive(m) && m.Status.Known && !m.Status.Learner {
		d.end(op, false, "it votes")
		return
	}
	if !m.SilentSince.IsZero() {
		d.lookAgainAt(m.SilentSince.Add(d.Spec.DeadAfter))
	}
	d.waitFor(op.Machine + " to serve as a voter")
}

// givenUp says why a join cannot come to an end, and whether it failed.
func (d *decision) givenUp(op Operation, m Machine, hasMachine bool, member Member, listed bool) (reason string, failed bool) {
	voter, taken := d.memberAt(m.PeerURL)
	switch {
	case d.staying() >= d.Spec.Replicas:
		return "it is not wanted any more", false
	case op.MemberID != "" && !listed:
		return "its member was removed", true
	case !hasMachine && listed:
		return "its machine is gone", true
	case !hasMachine:
		return "", false
	case m.Deleting:
		return "its machine was deleted", true
	case listed && m.PeerURL != "" && member.PeerURL != m.PeerURL:
		return "its machine has another address now", true
	case !listed && taken:
		return "its address is that of member " + nameOf(voter), true
	case d.gone(m):
		return "its machine is gone", true
	case m.Agent.Reachable && m.Agent.Fenced:
		return "its machine is fenced", true
	case m.Agent.Reachable && (m.Agent.Data == DataLost || m.Agent.Data == DataForeign):
		return "its data is not usable", true
	case m.Agent.Reachable && !listed && m.Agent.Data == DataPresent:
		return "its disk holds a member's data", true
	case listed && m.Agent.Reachable && !m.Agent.Enrolled:
		return "its disk was replaced", true
	}
	return d.stuck(op, m, member, listed)
}

// stuck gives up on a machine that gets no further. Slow is not stuck as long
// as there is progress (F039), nor is what waits for others.
func (d *decision) stuck(op Operation, m Machine, member Member, listed bool) (reason string, failed bool) {
	untold := listed && m.Agent.Reachable && m.Agent.Enrolled && !m.Agent.Declared
	if !listed && m.ready() || untold || listed && d.caughtUp(m, member) == "" {
		return "", false
	}
	last := latest(op.Started, m.ProgressAt)
	if d.Now.Sub(last) >= d.Spec.DeadAfter && !d.FleetSilent {
		return fmt.Sprintf("no progress for %s", d.Spec.DeadAfter), true
	}
	d.lookAgainAt(last.Add(d.Spec.DeadAfter))
	return "", false
}

// giveUp undoes a join: the learner first, since it takes the only place
// (F015), then the machine.
func (d *decision) giveUp(op Operation, m Machine, hasMachine bool, member Member, listed, failed bool, reason string) {
	switch {
	case listed:
		if against := d.mayRemove(member); against != "" {
			d.waitFor("removing the learner would be unsafe: " + against)
			return
		}
		d.only(Step{Kind: RemoveMember, MemberID: member.ID, Machine: op.Machine, Reason: reason})
	case hasMachine && !m.Deleting:
		d.letGo(m, reason)
	default:
		d.end(op, failed, reason)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
