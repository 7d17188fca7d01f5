package plan

import "fmt"

// quorum is the number of voters that must agree of n.
func quorum(n int) int { return n/2 + 1 }

// serving counts voters that answered a linearizable read just now.
func (w World) servingVoters() int {
	n := 0
	for _, v := range w.voters() {
		if m, ok := w.machineOf(v); ok && w.alive(m) {
			n++
		}
	}
	return n
}

// alive says that a machine's member works now. A member whose data is not
// its own or whose machine is gone is not alive, whatever answered; nor is one
// at whose address another answers (F163).
func (w World) alive(m Machine) bool {
	_, dead := w.dead(m)
	member, listed := w.memberOf(m)
	another := listed && m.Status.Known && m.Status.MemberID != member.ID
	return m.Serving && !dead && !another
}

// dead says that a machine's member will not come back, and why. Silence
// counts only after everyone who can see agreed for long enough, and never
// when the observer is the likelier fault.
func (w World) dead(m Machine) (reason string, dead bool) {
	if reason, lost := w.lost(m); lost {
		return reason, true
	}
	if member, listed := w.memberOf(m); listed && member.Learner {
		return "", false // the join that it is in has its own patience
	}
	if !m.Serving && !m.SilentSince.IsZero() && !w.FleetSilent && w.Now.Sub(m.SilentSince) >= w.Spec.DeadAfter {
		return fmt.Sprintf("it has not answered anyone for %s", w.Spec.DeadAfter), true
	}
	return "", false
}

// lost says that a machine's member is certainly gone, whatever the time.
func (w World) lost(m Machine) (reason string, lost bool) {
	member, listed := w.memberOf(m)
	switch {
	case w.gone(m):
		return "its machine is gone", true
	case w.diskReplaced(m):
		return "its disk was replaced", true
	case m.Agent.Reachable && m.Agent.Fenced:
		return "its machine is fenced", true
	case m.Agent.Reachable && m.Agent.Data == DataLost:
		return "its data is lost", true
	case m.Agent.Reachable && m.Agent.Data == DataForeign:
		return "its data is another's", true
	case listed && !member.Learner && m.Agent.Reachable && m.Agent.Data == DataPresent && m.Agent.MemberID != "" && m.Agent.MemberID != member.ID:
		return "its data is of another life", true
	}
	return "", false
}

// gone says that the actuator is sure that there is no such machine (F162).
// One that never came up is asked for again for a while: what the request
// met may pass (F176).
func (w World) gone(m Machine) bool {
	patience := goneFor
	if m.PeerURL == "" {
		patience = w.Spec.DeadAfter
	}
	return m.Requested && m.Instance == InstanceGone && !m.GoneSince.IsZero() && w.Now.Sub(m.GoneSince) >= patience
}

// diskReplaced says that an agent knows nothing of the enrolment that every
// member's machine had. Its key is not signed again for this machine.
func (w World) diskReplaced(m Machine) bool {
	_, listed := w.memberOf(m)
	return listed && w.Record.Founded && m.Agent.Reachable && !m.Agent.Enrolled && !m.Serving
}

// mayRemove says whether a voter can go: enough of the present voters work to
// agree on it, and enough of the rest to go on without it. Removing a learner
// takes a quorum only. The answer is a reason against it, or nothing.
func (w World) mayRemove(member Member) string {
	voters := w.voters()
	working := w.servingVoters()
	if working < quorum(len(voters)) {
		return fmt.Sprintf("%d of %d voters work, which is no quorum", working, len(voters))
	}
	if member.Learner {
		return ""
	}
	if len(voters) == 1 {
		return "it is the only voter"
	}
	rest := working
	if m, ok := w.machineOf(member); ok && w.alive(m) {
		rest--
	}
	if rest < quorum(len(voters)-1) {
		return fmt.Sprintf("of the %d voters that would be left %d work, which is no quorum", len(voters)-1, rest)
	}
	return ""
}

// mayAdd says whether etcd would take a learner without a voter being in
// danger: every voter works (F001, F002), no learner is there (F011). The
// rule is that of the strictest patch (F003).
func (w World) mayAdd() string {
	for _, member := range w.Members {
		if member.Learner {
			return "another learner is there"
		}
		if m, ok := w.machineOf(member); !ok || !w.alive(m) {
			return fmt.Sprintf("member %s does not work", nameOf(member))
		}
	}
	return ""
}

// mayPromote says whether the voters that work and a learner that has caught
// up are a quorum of what the promotion makes them.
func (w World) mayPromote(m Machine, member Member) string {
	voters, working := len(w.voters()), w.servingVoters()
	if working < quorum(voters+1)-1 || working < quorum(voters) {
		return fmt.Sprintf("%d of %d voters work", working, voters)
	}
	return w.caughtUp(m, member)
}

// caughtUp says whether a learner is alive now, no matter that etcd would
// take a dead one (F008), and caught up by an absolute measure (F009).
func (w World) caughtUp(m Machine, member Member) string {
	leader, ok := w.leader()
	switch {
	case !ok:
		return "no leader is seen"
	case !m.Status.Known || !m.Agent.Running:
		return "the learner does not answer"
	case m.Status.MemberID != member.ID || m.Status.ClusterID != leader.Status.ClusterID:
		return "something else answers at the learner's address"
	case !m.Status.Learner:
		return "it does not call itself a learner"
	case m.Status.Leader == "":
		return "the learner sees no leader"
	case m.Status.Applied+lagAllowed < leader.Status.Committed:
		return fmt.Sprintf("the learner is %d entries behind", leader.Status.Committed-m.Status.Applied)
	}
	return ""
}

func nameOf(m Member) string {
	if m.Name != "" {
		return m.Name
	}
	return m.ID
}
