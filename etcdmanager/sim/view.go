package sim

import (
	"strconv"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

const (
	clusterID = "cc"
	patience  = time.Minute
)

// now is the moment of every look. Time is abstract: what matters of it is
// whether a span is longer than patience.
var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Names are made once: a million states are looked at.
var names, urls, ids = func() (names, urls, ids [256]string) {
	for i := range 256 {
		names[i] = plan.MachineName("c", int64(i))
		urls[i] = "https://m" + strconv.Itoa(i)
		ids[i] = "m" + strconv.Itoa(i)
	}
	return names, urls, ids
}()

func ago(l level) time.Time {
	switch l {
	case short:
		return now.Add(-patience / 2)
	case long:
		return now.Add(-2 * patience)
	}
	return time.Time{}
}

func span(old bool) level {
	if old {
		return long
	}
	return short
}

// see is what the controller sees now, as observe builds it.
func (s *State) see() plan.World {
	w := plan.World{
		Now: now, FleetSilent: s.fleetSilent,
		Spec: plan.Spec{Name: "c", Replicas: int(s.replicas), DeadAfter: patience},
		Record: plan.Record{
			Founded: s.founded, NextMachine: int64(s.nextMach), Failures: int(s.failures),
		},
	}
	for i := range s.nFoun {
		w.Record.Founders = append(w.Record.Founders, names[s.firstFounder+i])
	}
	if s.founded {
		w.Record.ClusterID = clusterID
	}
	if s.failures > 0 {
		w.Record.FailedAt = now.Add(-24 * time.Hour)
		if s.backoff {
			w.Record.FailedAt = now
		}
	}
	if s.op.kind != 0 {
		w.Record.Operation = s.op.plan()
	}
	w.Machines = make([]plan.Machine, 0, s.nMach)
	for i := range s.machines[:s.nMach] {
		m := s.seeMachine(&s.machines[i])
		w.Machines = append(w.Machines, m)
		w.MembersKnown = w.MembersKnown || m.Serving
	}
	if w.MembersKnown {
		w.Members = make([]plan.Member, 0, s.nMemb)
		for _, m := range s.members[:s.nMemb] {
			member := plan.Member{ID: ids[m.id], PeerURL: urls[m.at], Learner: m.learner}
			if m.started {
				member.Name = names[m.at]
			}
			w.Members = append(w.Members, member)
		}
	}
	return w
}

func (o simOp) plan() *plan.Operation {
	op := &plan.Operation{Kind: plan.Join, Started: ago(span(o.old)), Reason: "r"}
	if o.kind == opRemove {
		op.Kind = plan.Remove
	}
	if o.machine != noMachine {
		op.Machine = names[o.machine]
	}
	if o.member != 0 {
		op.MemberID = ids[o.member]
	}
	return op
}

func (s *State) seeMachine(m *simMachine) plan.Machine {
	p := plan.Machine{
		Name: names[m.num], Deleting: m.deleting, ReplaceAsked: m.replace, Requested: m.requested,
		SilentSince: ago(m.silent), ProgressAt: ago(span(m.progressOld)),
	}
	if m.requested {
		p.Instance = []plan.InstanceState{plan.InstanceGone, plan.InstancePending, plan.InstanceRunning, plan.InstanceStopped, plan.InstanceGone}[m.inst]
		if p.Instance == plan.InstanceGone {
			p.GoneSince = now
			if m.gone != none {
				p.GoneSince = ago(m.gone)
			}
		}
	}
	if m.inst == up || m.inst == stopped || m.enrolled {
		p.PeerURL = urls[m.num]
	}
	if m.inst != up || m.cut {
		return p
	}
	if m.agentUp {
		p.Agent = m.seeAgent(s)
	}
	s.seeEtcd(m, &p)
	if p.Serving {
		p.SilentSince = time.Time{}
	}
	return p
}

func (m *simMachine) seeAgent(s *State) plan.Agent {
	a := plan.Agent{Reachable: true, Enrolled: m.enrolled}
	if !m.enrolled {
		return a
	}
	a.Fenced, a.Running, a.ReleaseReady = m.fenced, m.running, m.release
	a.Declared = m.told != nothing && !m.old
	switch {
	case m.fenced:
		a.Data = plan.DataEmpty
	case m.lost:
		a.Data = plan.DataLost
	case m.dataOf != 0:
		a.Data, a.MemberID = plan.DataPresent, ids[m.dataOf]
	default:
		a.Data = plan.DataEmpty
	}
	if a.Declared && m.stale {
		a.DeclaredPeers = "stale"
	} else if a.Declared {
		a.DeclaredPeers = s.peersKey(m)
	}
	return a
}

// peersKey is the member list as this machine would be told it now.
func (s *State) peersKey(self *simMachine) string {
	var peers []plan.Peer
	if self.told == toFound {
		for i := range s.nFoun {
			peers = append(peers, plan.Peer{Name: names[s.firstFounder+i], URL: urls[s.firstFounder+i]})
		}
		return plan.PeersKey(peers)
	}
	for _, m := range s.members[:s.nMemb] {
		peer := plan.Peer{Name: ids[m.id], URL: urls[m.at]}
		if m.started || s.machine(m.at) != nil {
			peer.Name = names[m.at]
		}
		peers = append(peers, peer)
	}
	return plan.PeersKey(peers)
}

func (s *State) seeEtcd(m *simMachine, p *plan.Machine) {
	if !m.running || m.old {
		return
	}
	p.Serving = s.serves(m)
	p.Status = plan.Status{Known: true, MemberID: ids[m.dataOf], ClusterID: clusterID, Committed: 100_000, Applied: 100_000, Version: "3.7.3"}
	if !m.caught {
		p.Status.Applied = 10
	}
	if member := s.memberAt(m.num); member != nil {
		p.Status.Learner = member.learner && m.dataOf == member.id
		if s.live(*member) && s.hasQuorum() {
			p.Status.Leader = ids[s.leader]
		}
	}
}
