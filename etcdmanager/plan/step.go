package plan

import (
	"slices"
	"strings"
)

// Kind of a Step.
type Kind string

// Kinds of steps. Those that change the membership are MembershipKinds.
const (
	// RecordFounding writes down a new token and the founders' names. With a
	// ClusterID it adopts a founded cluster instead, with the token in use.
	RecordFounding Kind = "RecordFounding"
	// RecordFounded writes down that the cluster has answered, and its ID.
	RecordFounded Kind = "RecordFounded"
	// ResetFounding forgets a founding that never answered.
	ResetFounding Kind = "ResetFounding"
	// CreateMachine makes the object; AskMachine asks the actuator for it.
	CreateMachine Kind = "CreateMachine"
	AskMachine    Kind = "AskMachine"
	// Enrol signs the machine's own keys.
	Enrol Kind = "Enrol"
	// Declare tells the agent which member to run.
	Declare Kind = "Declare"
	// Fence stops a removed member's process for good (F024).
	Fence Kind = "Fence"
	// DeleteMachine deletes the object, which asks for the machine's end;
	// ReleaseMachine ends the machine and lets go of the object.
	DeleteMachine  Kind = "DeleteMachine"
	ReleaseMachine Kind = "ReleaseMachine"
	// ReleaseCluster lets go of the cluster's object.
	ReleaseCluster Kind = "ReleaseCluster"
	// BeginOperation takes the lock, EndOperation gives it back.
	BeginOperation Kind = "BeginOperation"
	EndOperation   Kind = "EndOperation"
	// RecordMember notes the ID that an add returned (F025).
	RecordMember Kind = "RecordMember"

	AddLearner   Kind = "AddLearner"
	Promote      Kind = "Promote"
	RemoveMember Kind = "RemoveMember"
	MoveLeader   Kind = "MoveLeader"
)

// Membership says whether a step changes the membership or who leads.
func (k Kind) Membership() bool {
	return slices.Contains([]Kind{AddLearner, Promote, RemoveMember, MoveLeader}, k)
}

// Step is one thing to do. Fields that its kind doesn't need are zero.
type Step struct {
	Kind          Kind
	Machine       string
	MemberID      string
	PeerURL       string
	FailureDomain string
	Founders      []string
	ClusterID     string
	// Found and InitialCluster belong to Declare.
	Found          bool
	InitialCluster []Peer
	Operation      *Operation
	// Failed and PutOff belong to EndOperation: a join that was given up, an
	// operation that is begun again later. Neither counts as a success.
	Failed, PutOff bool
	Reason         string
}

// String writes a step in one line; steps are the same if their lines are.
func (s Step) String() string {
	var b strings.Builder
	b.WriteString(string(s.Kind))
	field := func(name, value string) {
		if value != "" {
			b.WriteString(" " + name + "=" + value)
		}
	}
	field("machine", s.Machine)
	field("member", s.MemberID)
	field("url", s.PeerURL)
	field("domain", s.FailureDomain)
	field("founders", strings.Join(s.Founders, ","))
	field("cluster", s.ClusterID)
	if s.Found {
		b.WriteString(" found")
	}
	field("peers", PeersKey(s.InitialCluster))
	if s.Operation != nil {
		field("operation", string(s.Operation.Kind))
		field("of", s.Operation.Machine)
		field("id", s.Operation.MemberID)
	}
	if s.Failed {
		b.WriteString(" failed")
	}
	if s.PutOff {
		b.WriteString(" put off")
	}
	if s.Reason != "" {
		b.WriteString(": " + s.Reason)
	}
	return b.String()
}

func joinSorted(entries []string) string {
	slices.Sort(entries)
	return strings.Join(entries, ",")
}
