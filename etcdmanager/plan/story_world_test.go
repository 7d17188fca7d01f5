package plan_test

import (
	"slices"
	"strings"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// member adds or changes a member: voter, learner, unnamed, at=N (the machine
// whose address it has), gone (from the list).
func (s *story) member(id string, words ...string) {
	i := slices.IndexFunc(s.w.Members, func(m plan.Member) bool { return m.ID == id })
	if i < 0 {
		n := id[1:]
		s.w.Members = append(s.w.Members, plan.Member{ID: id, Name: "c-" + n, PeerURL: url(n)})
		i = len(s.w.Members) - 1
	}
	m := &s.w.Members[i]
	for _, word := range words {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "voter":
			m.Learner = false
		case "learner":
			m.Learner = true
		case "unnamed":
			m.Name = ""
		case "at":
			m.PeerURL = url(value)
		case "gone":
			s.w.Members = slices.Delete(s.w.Members, i, i+1)
			return
		default:
			s.t.Fatalf("no such word of a member: %s", word)
		}
	}
}

func url(n string) string { return "https://10.0.0." + n + ":2380" }

// machine adds or changes a machine, or takes its object away ("vanished").
func (s *story) machine(name string, words ...string) {
	i := slices.IndexFunc(s.w.Machines, func(m plan.Machine) bool { return m.Name == name })
	if i < 0 {
		s.w.Machines = append(s.w.Machines, plan.Machine{Name: name})
		i = len(s.w.Machines) - 1
	}
	if slices.Equal(words, []string{"vanished"}) {
		s.w.Machines = slices.Delete(s.w.Machines, i, i+1)
		return
	}
	m := &s.w.Machines[i]
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if !s.state(m, key, value) && !s.instance(m, key, value) && !s.agent(m, key, value) && !s.etcd(m, key, value) {
			s.t.Fatalf("no such word of a machine: %s", word)
		}
	}
}

// state sets everything about a machine at once.
func (s *story) state(m *plan.Machine, key, value string) bool {
	n := m.Name[2:]
	up := plan.Machine{
		Name: m.Name, PeerURL: url(n), FailureDomain: m.FailureDomain, Requested: true, Instance: plan.InstanceRunning,
		Agent: plan.Agent{Reachable: true, Enrolled: true, ReleaseReady: true, Data: plan.DataEmpty}, SilentSince: s.w.Now,
	}
	switch key {
	case "fresh": // enrolled, and told nothing yet
		*m = up
	case "voter", "learner": // of ID aN, and well
		*m = up
		m.Agent.Declared, m.Agent.Running, m.Agent.Data, m.Agent.MemberID = true, true, plan.DataPresent, "a"+n
		m.Status = plan.Status{
			Known: true, MemberID: "a" + n, ClusterID: "cc", Leader: "a0", Learner: key == "learner",
			Committed: 50_000, Applied: 50_000, Version: "3.7.3",
		}
		m.SilentSince, m.Serving = time.Time{}, key == "voter"
	case "dead": // nobody has heard of it for this long
		*m = plan.Machine{Name: m.Name, PeerURL: m.PeerURL, FailureDomain: m.FailureDomain, Requested: true, Deleting: m.Deleting, ReplaceAsked: m.ReplaceAsked, SilentSince: s.ago(value)}
	case "gone": // and the actuator says so for this long
		*m = plan.Machine{Name: m.Name, PeerURL: m.PeerURL, FailureDomain: m.FailureDomain, Requested: true, Deleting: m.Deleting, Instance: plan.InstanceGone, GoneSince: s.ago(value), SilentSince: s.ago(value)}
	default:
		return false
	}
	return true
}

func (s *story) instance(m *plan.Machine, key, value string) bool {
	switch key {
	case "new": // an object and no more
	case "requested":
		m.Requested = true
	case "deleting":
		m.Deleting = true
	case "replace":
		m.ReplaceAsked = true
	case "stopped":
		m.Instance = plan.InstanceStopped
	case "running":
		m.Instance = plan.InstanceRunning
	case "domain":
		m.FailureDomain = value
	case "address":
		m.PeerURL = ""
		if value != "none" {
			m.PeerURL = url(value)
		}
	case "progress":
		m.ProgressAt = s.ago(value)
	default:
		return false
	}
	return true
}

func (s *story) agent(m *plan.Machine, key, value string) bool {
	a := &m.Agent
	switch key {
	case "agentdown": // its etcd is not touched by that
		*a = plan.Agent{}
	case "reachable":
		a.Reachable = true
	case "unenrolled":
		*a = plan.Agent{Reachable: true}
	case "fenced":
		a.Fenced, a.Running = true, false
	case "declared":
		a.Declared, a.DeclaredPeers = true, s.peers()
	case "undeclared":
		a.Declared = false
	case "outdated":
		a.Outdated = true
	case "stale": // told an initial cluster of another time
		a.Declared, a.DeclaredPeers = true, "c-9=https://10.0.0.9:2380"
	case "data":
		a.Data = plan.DataState(value)
	case "dataof":
		a.Data, a.MemberID = plan.DataPresent, value
	case "fetching":
		a.ReleaseReady = false
	case "stoppedetcd":
		a.Running = false
	default:
		return false
	}
	return true
}

func (s *story) etcd(m *plan.Machine, key, value string) bool {
	switch key {
	case "silent": // its etcd answers nobody for this long
		m.Serving, m.SilentSince, m.Status = false, s.ago(value), plan.Status{}
	case "leader":
		m.Status.Leader = value
	case "applied":
		m.Status.Applied = uint64(s.number(value))
	case "answersas":
		m.Status.MemberID = value
	case "callsitselflearner":
		m.Status.Learner, m.Serving = true, false
	case "alarm":
		m.Status.Alarms = append(m.Status.Alarms, value)
	case "version":
		m.Status.Version = value
	default:
		return false
	}
	return true
}
