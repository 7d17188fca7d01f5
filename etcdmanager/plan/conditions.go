package plan

import (
	"fmt"
	"strings"
)

// Condition is one line of a cluster's status.
type Condition struct {
	Type    string
	Status  Truth
	Reason  string
	Message string
}

// Truth of a condition.
type Truth string

// Truths.
const (
	True    Truth = "True"
	False   Truth = "False"
	Unknown Truth = "Unknown"
)

func truth(b bool) Truth {
	if b {
		return True
	}
	return False
}

func (d *decision) conditions() []Condition {
	return []Condition{
		d.readyCondition(), d.available(), d.membersReady(), d.quorumLost(), d.quorumAtRisk(),
		d.healthy(), d.pausedCondition(), d.specAccepted(), d.progressing(),
	}
}

// Summary counts voters that work of those that are wanted, like 3/3.
func (w World) Summary() string { return fmt.Sprintf("%d/%d", w.servingVoters(), w.Spec.Replicas) }

func (d *decision) asWanted() string {
	switch {
	case d.Spec.Deleting:
		return "the cluster is being deleted"
	case !d.Record.Founded:
		return "the cluster is not founded yet: waiting for " + d.wait
	case !d.MembersKnown:
		return "no linearizable member list"
	case d.Record.Operation != nil:
		return "an operation is in flight: " + describe(*d.Record.Operation)
	case len(d.voters()) != d.Spec.Replicas || len(d.Members) != len(d.voters()):
		return fmt.Sprintf("%d voters of %d members, %d wanted", len(d.voters()), len(d.Members), d.Spec.Replicas)
	case d.servingVoters() != d.Spec.Replicas:
		return fmt.Sprintf("%d of %d members answer", d.servingVoters(), d.Spec.Replicas)
	case len(d.Machines) != d.Spec.Replicas:
		return fmt.Sprintf("%d machines for %d members", len(d.Machines), d.Spec.Replicas)
	case len(d.alarms()) > 0:
		return "alarms: " + strings.Join(d.alarms(), ", ")
	}
	versions := map[string]bool{}
	for _, m := range d.Machines {
		versions[m.Status.Version] = true
	}
	if len(versions) > 1 {
		return "members run different versions"
	}
	return ""
}

func (d *decision) alarms() []string {
	var all []string
	for _, m := range d.Machines {
		for _, a := range m.Status.Alarms {
			all = append(all, a+" on "+m.Name)
		}
	}
	return all
}

// readyCondition is true only for a cluster that is entirely as wanted (F183).
func (d *decision) readyCondition() Condition {
	if why := d.asWanted(); why != "" {
		return Condition{"Ready", False, "NotAsWanted", why}
	}
	return Condition{"Ready", True, "AsWanted", "every member answers linearizable reads"}
}

func (d *decision) available() Condition {
	switch {
	case !d.Record.Founded:
		return Condition{"Available", False, "NotFounded", "the cluster has not answered yet"}
	case d.MembersKnown:
		return Condition{"Available", True, "QuorumAnswers", "a linearizable read was answered"}
	case d.FleetSilent:
		return Condition{"Available", Unknown, "FleetSilent", "much of the fleet is silent at once: the controller may be cut off"}
	}
	return Condition{"Available", False, "NoAnswer", "no linearizable read was answered"}
}

func (d *decision) membersReady() Condition {
	if !d.MembersKnown {
		return Condition{"MembersReady", Unknown, "NoMemberList", "the member list could not be read"}
	}
	n := d.servingVoters()
	c := Condition{"MembersReady", truth(n == d.Spec.Replicas), "Counted", fmt.Sprintf("%d of %d members answer", n, d.Spec.Replicas)}
	return c
}

func (d *decision) quorumLost() Condition {
	if !d.Record.Founded || d.MembersKnown {
		return Condition{"QuorumLost", False, "Quorum", "not lost"}
	}
	gone := 0
	for _, m := range d.Machines {
		if _, dead := d.dead(m); dead {
			gone++
		}
	}
	if gone > 0 && len(d.Machines)-gone < quorum(max(len(d.Machines), d.Spec.Replicas)) {
		return Condition{"QuorumLost", True, "MajorityDead", fmt.Sprintf("%d of %d members will not come back", gone, len(d.Machines))}
	}
	return Condition{"QuorumLost", Unknown, "NoAnswer", "no linearizable read was answered; members that are down are started again"}
}

func (d *decision) quorumAtRisk() Condition {
	voters, working := len(d.voters()), d.servingVoters()
	if d.MembersKnown && voters > 1 && working < quorum(voters) {
		return Condition{"QuorumAtRisk", True, "NoQuorum", fmt.Sprintf("%d of %d voters work", working, voters)}
	}
	if d.MembersKnown && voters > 1 && working == quorum(voters) {
		return Condition{"QuorumAtRisk", True, "NoSlack", fmt.Sprintf("%d of %d voters work: one more failure stops the cluster", working, voters)}
	}
	return Condition{"QuorumAtRisk", False, "Slack", fmt.Sprintf("%d of %d voters work", working, voters)}
}

func (d *decision) healthy() Condition {
	var ill []string
	for _, m := range d.Machines {
		if reason, dead := d.dead(m); dead {
			ill = append(ill, m.Name+": "+reason)
		} else if m.Agent.Refusal != "" {
			ill = append(ill, m.Name+": "+m.Agent.Refusal)
		} else if !m.Agent.Reachable && m.Requested {
			ill = append(ill, m.Name+": its agent does not answer")
		} else if !m.Serving && m.Agent.Declared && !d.learns(m) {
			ill = append(ill, m.Name+": does not answer reads")
		}
	}
	ill = append(ill, d.alarms()...)
	if len(ill) > 0 {
		return Condition{"Healthy", False, "Ill", strings.Join(ill, "; ")}
	}
	return Condition{"Healthy", True, "Well", "nothing is wrong with any machine"}
}

// learns says that a machine runs a learner that answers as one.
func (d *decision) learns(m Machine) bool {
	member, listed := d.memberOf(m)
	return listed && member.Learner && m.Status.Known
}

func (d *decision) pausedCondition() Condition {
	if d.Spec.Paused {
		return Condition{"Paused", True, "SpecPaused", "nothing is changed while spec.paused is true"}
	}
	return Condition{"Paused", False, "NotPaused", "not paused"}
}

func (d *decision) specAccepted() Condition {
	if d.Spec.Invalid != "" {
		return Condition{"SpecAccepted", False, "Invalid", d.Spec.Invalid}
	}
	return Condition{"SpecAccepted", True, "Valid", "the spec can be carried out"}
}

// progressing says what is being done and what is waited for.
func (d *decision) progressing() Condition {
	if d.Record.Operation != nil {
		message := describe(*d.Record.Operation)
		if d.wait != "" {
			message += "; waiting for " + d.wait
		}
		return Condition{"Progressing", True, string(d.Record.Operation.Kind), message}
	}
	if d.wait != "" {
		return Condition{"Progressing", truth(len(d.out) > 0), "Waiting", "waiting for " + d.wait}
	}
	if len(d.out) > 0 {
		return Condition{"Progressing", True, string(d.out[0].Kind), d.out[0].Reason}
	}
	return Condition{"Progressing", False, "Nothing", "nothing is to be done"}
}

func describe(op Operation) string {
	who := op.Machine
	if who == "" {
		who = "member " + op.MemberID
	}
	if op.Kind == Join {
		return who + " joins: " + op.Reason
	}
	return who + " is removed: " + op.Reason
}

func (d *decision) phase() string {
	switch {
	case d.Spec.Deleting:
		return "Deleting"
	case d.Spec.Paused:
		return "Paused"
	case !d.Record.Founded:
		return "Founding"
	case d.quorumLost().Status == True:
		return "QuorumLost"
	case d.Record.Operation != nil && len(d.voters()) > d.Spec.Replicas:
		return "Scaling"
	case d.Record.Operation != nil:
		return "Repairing"
	case d.asWanted() == "":
		return "Ready"
	}
	return "Degraded"
}
