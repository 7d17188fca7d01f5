package plan

import (
	"fmt"
	"time"
)

// World is everything known at one moment.
type World struct {
	Now    time.Time
	Spec   Spec
	Record Record
	// Machines that exist as objects, by name. They come from a read that is
	// no cache, as do Spec and Record (F158).
	Machines []Machine
	// Members as a linearizable read listed them (F034); nil unless
	// MembersKnown.
	Members      []Member
	MembersKnown bool
	// FleetSilent says that so much of everything looks dead at once that
	// the observer is the likelier fault: nothing is judged dead by silence.
	FleetSilent bool
}

// Spec is what is wanted.
type Spec struct {
	Name           string
	Replicas       int
	Paused         bool
	Deleting       bool
	DeadAfter      time.Duration
	FailureDomains []string
	// Invalid says why this spec cannot be carried out; empty if it can.
	Invalid string
}

// Record is what cannot be observed again.
type Record struct {
	Token       string
	Founders    []string
	Founded     bool
	ClusterID   string
	NextMachine int64
	Operation   *Operation
	Failures    int
	FailedAt    time.Time
}

// Operation is the one change of membership in flight.
type Operation struct {
	Kind     OperationKind
	Machine  string
	MemberID string
	PeerURL  string
	Reason   string
	Started  time.Time
}

// OperationKind of an Operation.
type OperationKind string

// Kinds of operations.
const (
	Join   OperationKind = "Join"
	Remove OperationKind = "Remove"
)

// InstanceState is what the actuator says of a machine.
type InstanceState string

// States of an instance.
const (
	InstanceUnknown InstanceState = ""        // could not be asked
	InstanceGone    InstanceState = "Gone"    // certainly not there
	InstancePending InstanceState = "Pending" //
	InstanceRunning InstanceState = "Running" //
	InstanceStopped InstanceState = "Stopped" // with its disk
)

// DataState is what the agent says of the data directory.
type DataState string

// States of data.
const (
	DataUnknown DataState = ""
	DataEmpty   DataState = "Empty"
	DataPresent DataState = "Present"
	DataForeign DataState = "Foreign"
	DataLost    DataState = "Lost"
)

// Machine is one EtcdMachine and what could be seen of it.
type Machine struct {
	Name          string
	PeerURL       string // empty until the address is known
	FailureDomain string
	Deleting      bool // somebody asked for its end
	ReplaceAsked  bool
	Requested     bool // the actuator was asked for it
	Instance      InstanceState
	// GoneSince is when the actuator first said that it is gone, without
	// saying anything else since.
	GoneSince time.Time
	Agent     Agent
	// Serving says that its etcd answered a linearizable read just now: to
	// us, to its agent or to another machine's agent.
	Serving bool
	// SilentSince is since when nobody who can see got the answer that its
	// role lets it give: a linearizable read of a voter, a status of one that
	// is listed as a learner. Zero while it answers.
	SilentSince time.Time
	// Status of its etcd, the freshest of what was had just now.
	Status Status
	// ProgressAt is when its applied index, or the bytes fetched of its
	// release, last exceeded all that was seen before, or when it reached the
	// next of: running, address known, reachable, enrolled, release ready,
	// told to run, etcd started; at first sight it is that moment. A process that starts over and over makes no progress.
	ProgressAt time.Time
}

// Agent is what a machine's agent said just now.
type Agent struct {
	Reachable bool
	Enrolled  bool
	Fenced    bool
	// Declared says that it was told to run this incarnation's member.
	Declared bool
	// DeclaredPeers is the initial cluster it was told, as PeersKey has it.
	DeclaredPeers string
	// Outdated says that it was told other settings than are wanted now. To
	// tell it again restarts nothing.
	Outdated     bool
	Running      bool
	Data         DataState
	MemberID     string // of the data, hex
	ReleaseReady bool
	// Refusal in words, when etcd does not run though it is wanted.
	Refusal string
}

// Status is what etcd says of itself. Known is false when nobody could ask.
type Status struct {
	Known     bool
	MemberID  string
	ClusterID string
	Leader    string
	Learner   bool
	Committed uint64
	Applied   uint64
	Alarms    []string
	Version   string
}

// Member is one entry of the member list.
type Member struct {
	ID      string // hex
	Name    string // empty until it has started (F014)
	PeerURL string
	Learner bool
}

// Peer is one entry of an initial cluster.
type Peer struct{ Name, URL string }

// MachineName names the machine with this number.
func MachineName(cluster string, number int64) string { return fmt.Sprintf("%s-%d", cluster, number) }

// PeersKey writes an initial cluster in one way, whatever its order.
func PeersKey(peers []Peer) string {
	entries := make([]string, 0, len(peers))
	for _, p := range peers {
		entries = append(entries, p.Name+"="+p.URL)
	}
	return joinSorted(entries)
}

func (w World) machine(name string) (Machine, bool) {
	for _, m := range w.Machines {
		if m.Name == name {
			return m, true
		}
	}
	return Machine{}, false
}

func (w World) member(id string) (Member, bool) {
	for _, m := range w.Members {
		if id != "" && m.ID == id {
			return m, true
		}
	}
	return Member{}, false
}

// memberOf finds the member that a machine runs, by peer URL and never by
// name, which an unstarted member doesn't have (F013, F014). A machine whose
// address changed is known by its data (F030).
func (w World) memberOf(m Machine) (Member, bool) {
	member, ok := w.memberAt(m.PeerURL)
	if !ok {
		member, ok = w.member(m.dataID())
	}
	if !ok {
		return Member{}, false
	}
	owner, owned := w.machineOf(member)
	return member, owned && owner.Name == m.Name
}

// memberAt is the member that is listed with a peer URL.
func (w World) memberAt(url string) (Member, bool) {
	for _, member := range w.Members {
		if url != "" && member.PeerURL == url {
			return member, true
		}
	}
	return Member{}, false
}

// machineOf is the converse of memberOf. Of two machines with one address it
// is the one that is not gone, whose address the other got; a machine that is
// to join is never that of a voter that was there before (F012).
func (w World) machineOf(member Member) (Machine, bool) {
	op := w.Record.Operation
	best, found := Machine{}, false
	for _, m := range w.Machines {
		joins := op != nil && op.Kind == Join && op.Machine == m.Name && op.MemberID != member.ID && !member.Learner
		if m.PeerURL == "" || m.PeerURL != member.PeerURL || joins {
			continue
		}
		if !found || w.gone(best) && !w.gone(m) {
			best, found = m, true
		}
	}
	if found {
		return best, true
	}
	for _, m := range w.Machines {
		if _, other := w.memberAt(m.PeerURL); !other && m.dataID() == member.ID {
			return m, true
		}
	}
	return Machine{}, false
}

// dataID is the member whose data a machine holds, empty if not known.
func (m Machine) dataID() string {
	if !m.Agent.Reachable || m.Agent.Data != DataPresent {
		return ""
	}
	return m.Agent.MemberID
}

func (w World) voters() []Member {
	var voters []Member
	for _, m := range w.Members {
		if !m.Learner {
			voters = append(voters, m)
		}
	}
	return voters
}

// leader is the machine that the serving members follow.
func (w World) leader() (Machine, bool) {
	for _, m := range w.Machines {
		if m.Serving && m.Status.Known && m.Status.Leader != "" && m.Status.Leader == m.Status.MemberID {
			return m, true
		}
	}
	return Machine{}, false
}
