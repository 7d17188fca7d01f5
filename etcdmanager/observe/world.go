package observe

import (
	"fmt"
	"time"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/release"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// probeFresh is how old another's probe may be to be believed.
const probeFresh = 6 * time.Second

func specOf(cluster *v1alpha1.EtcdCluster) plan.Spec {
	return plan.Spec{
		Name: cluster.Name, Replicas: int(cluster.Spec.Replicas), Paused: cluster.Spec.Paused,
		Deleting:  !cluster.DeletionTimestamp.IsZero(),
		DeadAfter: cluster.Spec.Repair.DeadAfter.Duration, FailureDomains: cluster.Spec.MachineTemplate.FailureDomains,
		Invalid: invalid(cluster.Spec),
	}
}

// invalid says what the API server's rules cannot check.
func invalid(spec v1alpha1.EtcdClusterSpec) string {
	if err := release.Check(spec.Version); err != nil {
		return err.Error()
	}
	if err := release.CheckArgs(spec.Version, spec.Etcd.ExtraArgs); err != nil {
		return err.Error()
	}
	return ""
}

func recordOf(r v1alpha1.ClusterRecord) plan.Record {
	record := plan.Record{
		Token: r.Token, Founders: r.Founders, Founded: r.Founded, ClusterID: r.ClusterID,
		NextMachine: r.NextMachine, Failures: int(r.Failures),
	}
	if r.FailedAt != nil {
		record.FailedAt = r.FailedAt.Time
	}
	if r.Operation != nil {
		record.Operation = &plan.Operation{
			Kind: plan.OperationKind(r.Operation.Kind), Machine: r.Operation.Machine, MemberID: r.Operation.MemberID,
			PeerURL: r.Operation.PeerURL, Reason: r.Operation.Reason, Started: r.Operation.Started.Time,
		}
	}
	return record
}

func (o *Observer) planMachine(view *View, m *Machine, record v1alpha1.ClusterRecord, template protocol.Wanted, now time.Time) plan.Machine {
	p := plan.Machine{
		Name: m.Object.Name, FailureDomain: m.Object.Spec.FailureDomain,
		Deleting: !m.Object.DeletionTimestamp.IsZero(), Requested: m.Object.Status.Requested != nil,
		Instance: plan.InstanceState(m.Instance.State), Agent: agentOf(m, record, template),
		Status: m.Etcd, Serving: m.serving || m.agentSees(),
	}
	_, p.ReplaceAsked = m.Object.Annotations[v1alpha1.AnnotationReplace]
	if m.Address != "" {
		p.PeerURL = PeerURL(m.Address)
	}
	if m.Seen != nil && !p.Status.Known && fresh(m.Seen.Probe.At, m.Seen.Time) {
		p.Status = statusOf(m.Seen.Probe)
	}
	if record.ClusterID != "" && p.Status.Known && p.Status.ClusterID != record.ClusterID {
		p.Serving = false // another incarnation answers here (F163)
	}
	// A learner answers no read; its status is the answer that it can give.
	answers := p.Serving || view.peersSee(m) || p.Status.Known && p.Status.Learner
	t := o.memory.note(m.Object.Spec.ClusterUID, string(m.Object.UID), now, answers, p.Agent.Declared, p.Instance == plan.InstanceGone, progressOf(m))
	o.memory.noteMute(string(m.Object.UID), now, !m.reached && !m.Etcd.Known)
	p.SilentSince, p.GoneSince, p.ProgressAt = t.silentSince, t.goneSince, t.progressAt
	return p
}

func agentOf(m *Machine, record v1alpha1.ClusterRecord, template protocol.Wanted) plan.Agent {
	a := plan.Agent{Reachable: m.reached && m.AgentErr == nil}
	if m.Seen == nil {
		return a
	}
	a.Enrolled, a.Fenced, a.Running = enrolled(m.Seen), m.Seen.Fenced, m.Seen.Process.Running
	a.Data, a.MemberID, a.Refusal = plan.DataState(m.Seen.Data.State), m.Seen.Data.MemberID, m.Seen.Refusal
	a.ReleaseReady = m.Seen.Release.State == protocol.ReleaseReady
	if a.Refusal == "" && m.Seen.Release.State == protocol.ReleaseFailed {
		a.Refusal = m.Seen.Release.Message
	}
	if w := m.Seen.Wanted; w != nil && w.Run && w.Token == record.Token {
		a.Declared, a.Outdated = true, outdated(*w, template)
		peers := make([]plan.Peer, 0, len(w.InitialCluster))
		for _, p := range w.InitialCluster {
			peers = append(peers, plan.Peer{Name: p.Name, URL: p.URL})
		}
		a.DeclaredPeers = plan.PeersKey(peers)
	}
	return a
}

// enrolled says that an enrolment came to its end. One that was cut off before
// the machine was told its release is done again: nothing else would tell it
// until it is to run, for which its release must be there (F164).
func enrolled(seen *protocol.Seen) bool {
	untold := seen.Wanted == nil && !seen.Fenced && !seen.Process.Running && seen.Data.State == protocol.DataEmpty
	return seen.Enrolled && !untold
}

// agentSees says that a machine's own agent got an answer from its etcd a
// moment ago, though we did not (F169).
func (m *Machine) agentSees() bool {
	return m.Seen != nil && m.Seen.Process.Running && m.Seen.Probe.Serving && fresh(m.Seen.Probe.At, m.Seen.Time)
}

// peersSee says that another machine got an answer from this one's etcd a
// moment ago. It speaks against giving a member up (F168), and is not enough
// to count on it.
func (v *View) peersSee(m *Machine) bool {
	if m.Seen != nil && !m.Seen.Process.Running || m.Address == "" {
		return false
	}
	for _, other := range v.Machines {
		if other == m || other.Seen == nil {
			continue
		}
		for _, peer := range other.Seen.Peers {
			if peer.URL == PeerURL(m.Address) && peer.Serving && fresh(peer.At, other.Seen.Time) {
				return true
			}
		}
	}
	return false
}

// fresh compares two times of the same clock, the machine's.
func fresh(at, machineNow time.Time) bool {
	return !at.IsZero() && machineNow.Sub(at) < probeFresh
}

func statusOf(p protocol.Probe) plan.Status {
	return plan.Status{
		Known: p.MemberID != "", MemberID: p.MemberID, ClusterID: p.ClusterID, Leader: p.Leader, Learner: p.Learner,
		Committed: p.RaftIndex, Applied: p.AppliedIndex, Alarms: p.Alarms, Version: p.Version,
	}
}

// progressOf changes whenever a joining machine gets further.
func progressOf(m *Machine) string {
	s := fmt.Sprintf("%s %s %t", m.Instance.State, m.Address, m.reached)
	if m.Seen != nil {
		s += fmt.Sprintf(" %t %s %d %t %d", m.Seen.Enrolled, m.Seen.Release.State, m.Seen.Release.Bytes, m.Seen.Process.Running, m.Seen.Probe.AppliedIndex)
	}
	return s + fmt.Sprintf(" %d", m.Etcd.Applied)
}
