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

// end gives the lock back: the operation came to its end, or failed.
func (d *decision) end(op Operation, failed bool, reason string) {
	d.do(Step{Kind: EndOperation, Machine: op.Machine, Operation: &op, Failed: failed, Reason: reason})
}

// putOff gives the lock back for something that goes first.
func (d *decision) putOff(op Operation, reason string) {
	d.do(Step{Kind: EndOperation, Machine: op.Machine, Operation: &op, PutOff: true, Reason: reason})
}

// only makes a membership step the single step of this decision.
func (d *decision) only(s Step) { d.out = []Step{s} }

func (d *decision) remove(op Operation) {
	member, listed := d.member(op.MemberID)
	if !listed {
		d.removed(op)
		return
	}
	m, known := d.machineOf(member)
	if known && d.recovered(m, member) {
		d.end(op, false, "the member works again")
		return
	}
	if !member.Learner && known && d.alive(m) {
		// A healthy member goes only while all others work (F019).
		if _, reason, dead := d.firstDead(); dead {
			d.putOff(op, "a dead member is removed first: "+reason)
			return
		}
		if !d.allServing() {
			d.waitFor("every member to work before one is removed")
			return
		}
	}
	if _, lost := d.lost(m); known && d.FleetSilent && !lost && !d.alive(m) {
		d.waitFor("the fleet to answer: it is silent at once, and the member may be well")
		return
	}
	if against := d.mayRemove(member); against != "" {
		d.waitFor(fmt.Sprintf("removing member %s would be unsafe now: %s", nameOf(member), against))
		return
	}
	if to, needed := d.successor(member); needed && d.Now.Sub(op.Started) < d.Spec.DeadAfter {
		d.only(Step{Kind: MoveLeader, MemberID: to.ID, Reason: "the leader is about to be removed"})
		return
	}
	d.only(Step{Kind: RemoveMember, MemberID: member.ID, Machine: op.Machine, Reason: op.Reason})
}

// removed ends a removal: not there any more is done (F021). The process is
// stopped for good if that is possible, and the machine's end asked for while
// the lock is still held, so that nobody ever starts it again (F024).
func (d *decision) removed(op Operation) {
	if m, ok := d.machine(op.Machine); ok {
		if m.fenceable() && d.Now.Sub(op.Started) < d.Spec.DeadAfter {
			d.only(Step{Kind: Fence, Machine: m.Name, Reason: "its member was removed"})
			return
		}
		if !m.Deleting {
			d.do(Step{Kind: DeleteMachine, Machine: m.Name, Reason: "its member was removed"})
		}
	}
	d.end(op, false, "removed")
}

// recovered says that the reason for a removal went away before it was done.
func (d *decision) recovered(m Machine, member Member) bool {
	return !member.Learner && d.alive(m) && !d.leaving(m) && len(d.voters()) <= d.Spec.Replicas
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
