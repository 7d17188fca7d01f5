package plan

import (
	"fmt"
	"time"
)

// keep looks after a cluster that was founded.
func (d *decision) keep() {
	for _, m := range d.Machines {
		if d.kept(m) {
			d.upkeep(m)
		}
	}
	if !d.MembersKnown {
		d.releaseGone()
		d.waitFor(d.blindness())
		return
	}
	for _, m := range d.Machines {
		d.declareAgain(m)
	}
	d.idleMachines()
	if d.Record.Operation != nil {
		d.operate(*d.Record.Operation)
		return
	}
	for _, next := range []func() bool{d.abandonedLearner, d.deadVoter, d.surplus, d.missing} {
		if next() {
			return
		}
	}
}

// kept says that a machine is of use: it runs a member, is to run one, or it
// can't be known now. What is of no use is not started again: it may hold a
// removed member's data (F024).
func (d *decision) kept(m Machine) bool {
	_, listed := d.memberOf(m)
	if op := d.Record.Operation; op != nil && op.Kind == Join && op.Machine == m.Name {
		return listed || !d.MembersKnown || op.MemberID == ""
	}
	if !d.MembersKnown {
		return m.Requested
	}
	if listed {
		return true
	}
	spare, ok := d.spare()
	return ok && spare.Name == m.Name
}

func (d *decision) blindness() string {
	silent := 0
	for _, m := range d.Machines {
		if !m.Serving {
			silent++
		}
	}
	return fmt.Sprintf("a quorum of members to answer: %d of %d machines are silent", silent, len(d.Machines))
}

// releaseGone lets go of objects whose end was asked for and whose machine is
// gone already. What they wait for, the removal of the member, may need a
// quorum that never comes (F172); a member without a machine is removed
// whenever it can be.
func (d *decision) releaseGone() {
	for _, m := range d.Machines {
		if m.Deleting && d.gone(m) {
			d.do(Step{Kind: ReleaseMachine, Machine: m.Name, Reason: "its machine is gone"})
		}
	}
}

// begin takes the lock for an operation. No membership call happens before
// the next look.
func (d *decision) begin(op Operation) bool {
	d.only(Step{Kind: BeginOperation, Operation: &op, Reason: op.Reason})
	return true
}

// abandonedLearner removes a learner that no operation is about: it takes the
// only place for learners and will never be promoted (F006, F011).
func (d *decision) abandonedLearner() bool {
	for _, member := range d.Members {
		if member.Learner {
			return d.beginRemoval(member, "a learner that no join is about")
		}
	}
	return false
}

// deadVoter removes a member that won't come back, before another is added:
// etcd refuses the other order, and it would be unsafe (F001, F002, F035).
func (d *decision) deadVoter() bool {
	if member, reason, dead := d.firstDead(); dead {
		return d.beginRemoval(member, reason)
	}
	for _, member := range d.voters() {
		if m, ok := d.machineOf(member); ok && !m.Serving && !m.SilentSince.IsZero() {
			if d.FleetSilent {
				d.waitFor("the fleet to answer: much of it is silent at once, which is likelier to be the controller's fault")
				continue
			}
			d.waitFor(fmt.Sprintf("%s to answer; it is replaced when it has been silent for %s", m.Name, d.Spec.DeadAfter))
			d.lookAgainAt(m.SilentSince.Add(d.Spec.DeadAfter))
		}
	}
	return false
}

// firstDead is a voter that won't come back.
func (d *decision) firstDead() (member Member, reason string, dead bool) {
	for _, member := range d.voters() {
		m, ok := d.machineOf(member)
		if !ok {
			if d.homeless() {
				continue
			}
			return member, "no machine is known for it", true
		}
		if reason, dead := d.dead(m); dead {
			return member, reason, true
		}
	}
	return Member{}, "", false
}

// homeless says that a machine that isn't dead has no address that is its
// own: it may be that of a member for which no machine is known.
func (d *decision) homeless() bool {
	op := d.Record.Operation
	for _, m := range d.Machines {
		if m.PeerURL != "" || !m.Requested || m.Deleting || op != nil && op.Kind == Join && op.Machine == m.Name {
			continue
		}
		if _, dead := d.dead(m); !dead {
			return true
		}
	}
	return false
}

func (d *decision) beginRemoval(member Member, reason string) bool {
	if against := d.mayRemove(member); against != "" {
		d.waitFor(fmt.Sprintf("removing member %s (%s) would be unsafe: %s", nameOf(member), reason, against))
		return true
	}
	op := Operation{Kind: Remove, MemberID: member.ID, PeerURL: member.PeerURL, Reason: reason}
	if m, ok := d.machineOf(member); ok {
		op.Machine = m.Name
	}
	return d.begin(op)
}

func (d *decision) leaving(m Machine) bool { return m.Deleting || m.ReplaceAsked }

// staying counts voters that nobody asked to leave.
func (d *decision) staying() int {
	n := 0
	for _, member := range d.voters() {
		if m, ok := d.machineOf(member); ok && !d.leaving(m) {
			n++
		}
	}
	return n
}

// missing starts a join when fewer voters stay than are wanted. A healthy
// member that is to leave is removed only after its successor votes: at four
// of three one may fail, at two of three none (F017).
func (d *decision) missing() bool {
	staying := d.staying()
	if staying >= d.Spec.Replicas {
		return false
	}
	if against := d.mayAdd(); against != "" {
		d.waitFor("adding a member would be unsafe: " + against)
		return true
	}
	if until := d.backoff(); d.Now.Before(until) {
		d.waitFor(fmt.Sprintf("%d joins failed in a row; the next is tried at %s", d.Record.Failures, until.UTC().Format("15:04:05")))
		d.lookAgainAt(until)
		return true
	}
	name := d.nextName()
	if spare, ok := d.spare(); ok {
		name = spare.Name
	}
	return d.begin(Operation{Kind: Join, Machine: name, Reason: fmt.Sprintf("%d of %d members", staying, d.Spec.Replicas)})
}

func (d *decision) backoff() time.Time {
	if d.Record.Failures == 0 {
		return time.Time{}
	}
	pause := backoffFirst
	for range d.Record.Failures - 1 {
		pause = min(2*pause, backoffMax)
	}
	return d.Record.FailedAt.Add(pause)
}
