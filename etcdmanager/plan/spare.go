package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// spare is a machine that runs no member yet and that the next join takes:
// made ahead, or left by a join that was put off for a dead member.
func (d *decision) spare() (Machine, bool) {
	wanted, op := d.staying(), d.Record.Operation
	if op != nil && op.Kind == Join {
		if joined, votes := d.member(op.MemberID); !votes || joined.Learner {
			wanted++
		}
	}
	if wanted >= d.Spec.Replicas {
		return Machine{}, false
	}
	for _, m := range d.Machines {
		if op != nil && op.Machine == m.Name || d.leaving(m) || m.Agent.Declared || m.Agent.Fenced || d.gone(m) {
			continue
		}
		// Only what surely never ran a member: what was made during this
		// join, and what says that its disk is empty (F024).
		unused := numberOf(m.Name) >= d.Record.NextMachine && m.Agent.Data == DataUnknown ||
			m.Agent.Reachable && m.Agent.Enrolled && m.Agent.Data == DataEmpty
		if _, listed := d.memberOf(m); unused && !listed && !m.Serving {
			return m, true
		}
	}
	return Machine{}, false
}

// ready says that a machine can be told to run a member.
func (m Machine) ready() bool {
	return m.Agent.Reachable && m.Agent.Enrolled && m.Agent.ReleaseReady && m.PeerURL != ""
}

// evenSize says why a learner is not promoted yet: it would leave an even
// number of voters, with more to come, and the next machine is not ready.
// While it comes up, one voter is better than two (F017). A machine that
// makes no progress is not waited for.
func (d *decision) evenSize(op Operation) string {
	if n := len(d.voters()); n%2 == 0 || n+1 >= d.Spec.Replicas {
		return ""
	}
	spare, ok := d.spare()
	if !ok {
		name := d.nextName()
		if name != MachineName(d.Spec.Name, d.Record.NextMachine) {
			return "" // one was made during this join already, and came to nothing
		}
		d.do(Step{Kind: CreateMachine, Machine: name, FailureDomain: d.emptiestDomain(), Reason: "the next member's"})
		return name + " to be made"
	}
	patient := latest(op.Started, spare.ProgressAt).Add(d.Spec.DeadAfter)
	if spare.ready() || !d.Now.Before(patient) {
		return ""
	}
	d.lookAgainAt(patient)
	return spare.Name + " to come up"
}

// nextName names a machine as none is named and none of a former operation.
func (d *decision) nextName() string {
	next := d.Record.NextMachine
	for _, m := range d.Machines {
		next = max(next, numberOf(m.Name)+1)
	}
	return MachineName(d.Spec.Name, next)
}

// numberOf is the number at the end of a machine's name; -1 if it has none.
func numberOf(name string) int64 {
	n, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// idleMachines lets machines go that run no member and are of no use.
func (d *decision) idleMachines() {
	op := d.Record.Operation
	for _, m := range d.Machines {
		if _, listed := d.memberOf(m); listed || op != nil && op.Machine == m.Name || d.kept(m) {
			continue
		}
		if m.PeerURL == "" && m.Requested && !m.Deleting && d.unhoused() {
			d.waitFor(fmt.Sprintf("%s to have an address of its own", m.Name))
			continue
		}
		d.letGo(m, "it runs no member")
	}
}

// unhoused says that a member is there for which no machine is known, while a
// machine without an address may be its.
func (d *decision) unhoused() bool {
	if !d.homeless() {
		return false
	}
	for _, member := range d.Members {
		if _, ok := d.machineOf(member); !ok {
			return true
		}
	}
	return false
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
