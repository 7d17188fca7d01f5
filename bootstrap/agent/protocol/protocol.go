// Package protocol is what the agent and its callers say to each other: plain
// JSON over mutual TLS, so that curl and any language can take part.
//
//	GET  /v1/seen       Seen: what is really there
//	PUT  /v1/member     Wanted: the member this machine is to run; answers Seen
//	GET  /v1/requests   Requests: certificate requests for keys made on the machine
//	PUT  /v1/identity   Identity: the signed certificates; answers Seen
//
// A refusal has status 4xx and a Refusal as its body. Every PUT carries the
// header EpochHeader.
package protocol

import "time"

// EpochHeader carries the epoch of the controller that commands. An agent
// refuses an epoch older than the newest it has seen, so that a controller
// that lost its lease without noticing can do nothing (F165).
const EpochHeader = "Etcdmanager-Epoch"

// Wanted is one declared member. It is whole: what it does not say is default.
type Wanted struct {
	// Name is the member's name, and the machine's.
	Name string `json:"name"`
	// Run says whether etcd is to run. False stops it: SIGTERM, then SIGKILL.
	Run bool `json:"run"`
	// Fenced says that this machine's member is not part of the cluster any
	// more: etcd is stopped, the data directory is set aside, and this
	// machine never runs a member again (F024).
	Fenced bool `json:"fenced,omitempty"`
	// Reason says why, in words for the log.
	Reason string `json:"reason,omitempty"`

	Version string `json:"version"` // etcd release, without v
	Mirror  string `json:"mirror"`  // base URL of releases, http(s):// or file://
	// SHA256 of the archive by architecture (amd64, arm64); when absent the
	// mirror's SHA256SUMS is believed.
	SHA256 map[string]string `json:"sha256,omitempty"`

	// Token is initial-cluster-token: one per incarnation of the cluster.
	Token string `json:"token"`
	// Found says that this member takes part in founding the cluster, which a
	// machine does at most once in its life (F027). Otherwise it joins.
	Found bool `json:"found,omitempty"`
	// InitialCluster is name=peerURL of every member, as etcd takes it.
	InitialCluster []Peer `json:"initialCluster"`
	// MemberID and ClusterID in hex, as far as they are known. A data
	// directory of another cluster or member is never started (F026).
	MemberID  string `json:"memberID,omitempty"`
	ClusterID string `json:"clusterID,omitempty"`

	Settings Settings `json:"settings"`
}

// Peer is one entry of initial-cluster.
type Peer struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Settings are etcd's, the same on all members of a cluster (F194).
type Settings struct {
	QuotaBackendBytes       int64             `json:"quotaBackendBytes,omitempty"`
	HeartbeatMilliseconds   int64             `json:"heartbeatMilliseconds,omitempty"`
	ElectionMilliseconds    int64             `json:"electionMilliseconds,omitempty"`
	AutoCompactionRetention string            `json:"autoCompactionRetention,omitempty"` // a Go duration; empty: off
	ExtraArgs               map[string]string `json:"extraArgs,omitempty"`               // without leading dashes
}

// Seen is what an agent sees of its machine at one moment.
type Seen struct {
	MachineUID   string    `json:"machineUID"`
	ClusterUID   string    `json:"clusterUID"`
	AgentVersion string    `json:"agentVersion"`
	Time         time.Time `json:"time"` // the machine's clock
	Epoch        int64     `json:"epoch"`
	Enrolled     bool      `json:"enrolled"` // has certificates of its own
	Fenced       bool      `json:"fenced,omitempty"`

	Wanted  *Wanted `json:"wanted,omitempty"` // the last accepted
	Release Release `json:"release"`
	Process Process `json:"process"`
	Data    Data    `json:"data"`
	Probe   Probe   `json:"probe"`
	Disk    Disk    `json:"disk"`
	// Peers are the other members as they are seen from this machine.
	Peers []Peering `json:"peers,omitempty"`

	Certificates []Certificate `json:"certificates,omitempty"`
	// Refusal says why etcd does not run though it is wanted; empty if it
	// does or will shortly.
	Refusal string `json:"refusal,omitempty"`
}

// Release is how far the wanted release of etcd is on this machine.
type Release struct {
	Version string `json:"version,omitempty"`
	State   string `json:"state,omitempty"` // one of the Release… constants
	Message string `json:"message,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"` // fetched so far
}

// States of a Release.
const (
	ReleaseFetching = "Fetching"
	ReleaseReady    = "Ready"
	ReleaseFailed   = "Failed" // tried again with back-off
)

// Process is the etcd process.
type Process struct {
	Running bool      `json:"running"`
	PID     int       `json:"pid,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Version string    `json:"version,omitempty"`
	Starts  int       `json:"starts"`         // since the agent's directory was made
	Exit    string    `json:"exit,omitempty"` // how it last ended, with the last telling line of its log
}

// Data is the data directory, judged without starting etcd.
type Data struct {
	State string `json:"state"` // one of the Data… constants
	// MemberID and ClusterID in hex, read from the write-ahead log.
	MemberID  string `json:"memberID,omitempty"`
	ClusterID string `json:"clusterID,omitempty"`
	// Token is the incarnation that was started on it by this agent.
	Token   string `json:"token,omitempty"`
	Message string `json:"message,omitempty"`
}

// States of Data.
const (
	DataEmpty   = "Empty"
	DataPresent = "Present"
	DataForeign = "Foreign" // another machine's, member's or cluster's, or unreadable: never started
	DataLost    = "Lost"    // a member ran here and its data is gone (F026)
)

// Probe is etcd asked by the agent, over mutual TLS as a client would.
type Probe struct {
	At           time.Time `json:"at,omitzero"` // when it ended; zero: not yet
	Serving      bool      `json:"serving"`     // a linearizable read was answered in time
	Error        string    `json:"error,omitempty"`
	MemberID     string    `json:"memberID,omitempty"` // hex
	ClusterID    string    `json:"clusterID,omitempty"`
	Leader       string    `json:"leader,omitempty"` // hex; empty: none
	Learner      bool      `json:"learner,omitempty"`
	Version      string    `json:"version,omitempty"`
	Term         uint64    `json:"term,omitempty"`
	RaftIndex    uint64    `json:"raftIndex,omitempty"`
	AppliedIndex uint64    `json:"appliedIndex,omitempty"`
	Revision     int64     `json:"revision,omitempty"`
	DBSize       int64     `json:"dbSize,omitempty"` // bytes
	DBInUse      int64     `json:"dbInUse,omitempty"`
	Alarms       []string  `json:"alarms,omitempty"` // NOSPACE, CORRUPT
}

// Peering is another member, asked over mutual TLS as a client would.
type Peering struct {
	URL     string    `json:"url"`     // its peer URL
	Serving bool      `json:"serving"` // a linearizable read was answered in time
	At      time.Time `json:"at"`
	Error   string    `json:"error,omitempty"`
}

// Disk is the file system that holds the data directory, in bytes.
type Disk struct {
	Total uint64 `json:"total"`
	Free  uint64 `json:"free"`
}

// Certificate is one leaf on the machine's disk.
type Certificate struct {
	Name     string    `json:"name"` // agent, server, peer, client
	NotAfter time.Time `json:"notAfter"`
	Issuer   string    `json:"issuer"` // SHA-256 of the authority's key, hex
}

// Requests are PEM certificate requests; their keys stay on the machine.
type Requests struct {
	MachineUID string `json:"machineUID"`
	Agent      string `json:"agent"`  // server identity of the agent
	Server     string `json:"server"` // etcd's client port
	Peer       string `json:"peer"`   // etcd's peer port, both usages
	Client     string `json:"client"` // the agent's own probe of etcd
}

// Identity is the answer to Requests: leaves and whom to believe, all PEM.
type Identity struct {
	Agent    string `json:"agent"`
	Server   string `json:"server"`
	Peer     string `json:"peer"`
	Client   string `json:"client"`
	AgentCA  string `json:"agentCA"`
	ClientCA string `json:"clientCA"` // client/server authority of etcd
	PeerCA   string `json:"peerCA"`
}

// Refusal is the body of every 4xx answer.
type Refusal struct {
	Code    string `json:"code"` // one of the Code… constants
	Message string `json:"message"`
}

// Codes of a Refusal.
const (
	CodeStaleEpoch  = "StaleEpoch"
	CodeInvalid     = "Invalid"
	CodeNotEnrolled = "NotEnrolled"
	CodeFounded     = "AlreadyFounded" // asked to found a second time
	CodeFenced      = "Fenced"         // a fenced machine was asked to run
	CodeWrongData   = "WrongData"      // member or cluster ID contradicts the data directory
)
