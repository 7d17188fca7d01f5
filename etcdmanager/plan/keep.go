package plan

import (
	"fmt"
	"slices"
	"time"
)

// keep looks after a cluster that was founded.
func (d *decision) keep() {
	for _, m := range d.Machines {
		d.upkeep(m)
	}
	if !d.MembersKnown {
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

func (d *decision) blindness() string {
	silent := 0
	for _, m := range d.Machines {
		if !m.Serving {
			silent++
		}
	}
	return fmt.Sprintf("a quorum of members to answer: %d of %d machines are silent", silent, len(d.Machines))
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
	for _, member := range d.voters() {
		m, ok := d.machineOf(member)
		reason, dead := "no machine is known for it", true
		if ok {
			reason, dead = d.dead(m)
		}
		if dead {
			return d.beginRemoval(member, reason)
		}
		if ok && !m.Serving && !m.SilentSince.IsZero() {
			d.lookAgainAt(m.SilentSince.Add(d.Spec.DeadAfter))
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

// surplus removes a voter more than wanted: one that is to leave anyway, or
// the youngest, the leader last (F035). A healthy member is never removed
// while another does not work (F019).
func (d *decision) surplus() bool {
	voters := d.voters()
	if len(voters) <= d.Spec.Replicas {
		return false
	}
	if !d.allServing() {
		d.waitFor("every member to work before one is removed")
		return true
	}
	order := slices.SortedFunc(slices.Values(voters), func(a, b Member) int {
		return d.removalRank(b) - d.removalRank(a)
	})
	reason := "more members than wanted"
	if m, ok := d.machineOf(order[0]); ok && d.leaving(m) {
		reason = "its machine is to leave"
	}
	return d.beginRemoval(order[0], reason)
}

func (d *decision) removalRank(member Member) int {
	m, _ := d.machineOf(member)
	rank := 0
	if d.leaving(m) {
		rank += 1_000_000
	}
	if leader, ok := d.leader(); !ok || leader.Name != m.Name {
		rank += 500_000
	}
	for i, other := range d.Machines {
		if other.Name == m.Name {
			rank += i
		}
	}
	return rank
}

func (d *decision) leaving(m Machine) bool { return m.Deleting || m.ReplaceAsked }

func (d *decision) allServing() bool {
	for _, member := range d.Members {
		if m, ok := d.machineOf(member); !ok || !d.alive(m) {
			return false
		}
	}
	return true
}

// missing starts a join when fewer voters stay than are wanted. A healthy
// member that is to leave is removed only after its successor votes: at four
// of three one may fail, at two of three none (F017).
func (d *decision) missing() bool {
	staying := 0
	for _, member := range d.voters() {
		if m, ok := d.machineOf(member); ok && !d.leaving(m) {
			staying++
		}
	}
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
	return d.begin(Operation{
		Kind: Join, Machine: MachineName(d.Spec.Name, d.Record.NextMachine),
		Reason: fmt.Sprintf("%d of %d members", staying, d.Spec.Replicas),
	})
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

// idleMachines lets machines go that run no member and are in no operation.
func (d *decision) idleMachines() {
	op := d.Record.Operation
	for _, m := range d.Machines {
		if _, listed := d.memberOf(m); !listed && (op == nil || op.Machine != m.Name) {
			d.letGo(m, "it runs no member")
		}
	}
}
