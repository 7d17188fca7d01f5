package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EtcdCluster is one etcd for one consumer, outside the cluster it serves.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=etcd,categories=etcdmanager
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=`.status.leader`
// +kubebuilder:printcolumn:name="DB Size",type=string,JSONPath=`.status.dbSize`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name may hold lower-case letters, digits and dashes only: machines and Secrets are named after it"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="the name is too long: at most 40 characters, because machines and Secrets are named after it"
type EtcdCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec EtcdClusterSpec `json:"spec"`
	// +optional
	Status EtcdClusterStatus `json:"status,omitzero"`
}

// EtcdClusterList is a list of EtcdCluster.
//
// +kubebuilder:object:root=true
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdCluster `json:"items"`
}

// EtcdClusterSpec is what is wanted.
//
// +kubebuilder:validation:XValidation:rule="self.machineTemplate.actuator == oldSelf.machineTemplate.actuator",message="machineTemplate.actuator cannot change: make a new cluster instead"
// +kubebuilder:validation:XValidation:rule="self.version == oldSelf.version",message="version cannot change yet: changing versions in place is not built, make a new cluster instead"
type EtcdClusterSpec struct {
	// Replicas is the number of voting members: 1, 3, 5 or 7 (an even number
	// tolerates no more failures than the odd number below it).
	//
	// +kubebuilder:default=3
	// +kubebuilder:validation:XValidation:rule="self < 0 || self in [1, 3, 5, 7]",message="replicas must be 1, 3, 5 or 7: an even number of members tolerates no more failures than one less"
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Version of etcd, without v.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+\\\\.[0-9]+\\\\.[0-9]+$')",message="version must be a full version of etcd without v, like 3.7.3"
	// +kubebuilder:validation:MaxLength=32
	// +required
	Version string `json:"version"`

	// MachineTemplate says how machines are made.
	//
	// +kubebuilder:default={actuator: local}
	// +optional
	MachineTemplate MachineTemplate `json:"machineTemplate,omitzero"`

	// Etcd holds etcd's own settings.
	//
	// +kubebuilder:default={heartbeatInterval: "100ms", electionTimeout: "1s"}
	// +optional
	Etcd EtcdSettings `json:"etcd,omitzero"`

	// Release says where machines fetch etcd from. The controller's flag
	// --release-mirror is the default.
	//
	// +optional
	Release ReleaseSource `json:"release,omitzero"`

	// Repair says when a member is given up.
	//
	// +kubebuilder:default={}
	// +optional
	Repair Repair `json:"repair,omitzero"`

	// Paused stops every change. Status is still kept.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// MachineTemplate says how machines are made.
type MachineTemplate struct {
	// Actuator that makes the machines: local, or the name of an exec
	// actuator given to the controller.
	//
	// +kubebuilder:default=local
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="actuator is a name of lower-case letters, digits and dashes"
	// +optional
	Actuator string `json:"actuator,omitempty"`

	// FailureDomains that machines are spread over, by name.
	//
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	FailureDomains []string `json:"failureDomains,omitempty"`

	// Config is handed to the actuator as it is.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
}

// EtcdSettings are the same on every member.
//
// +kubebuilder:validation:XValidation:rule="!self.electionTimeout.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$') || !self.heartbeatInterval.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$') || duration(self.electionTimeout).getMilliseconds() >= 5 * duration(self.heartbeatInterval).getMilliseconds()",message="electionTimeout must be at least five times heartbeatInterval"
type EtcdSettings struct {
	// QuotaBackendBytes is the size of the database at which etcd takes no
	// more writes.
	//
	// +kubebuilder:default="8Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('16Mi')) >= 0",message="quotaBackendBytes must be at least 16Mi"
	// +optional
	QuotaBackendBytes resource.Quantity `json:"quotaBackendBytes,omitzero"`

	// HeartbeatInterval of the leader; about the longest round trip between
	// members.
	//
	// +kubebuilder:default="100ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$')",message="heartbeatInterval must be a duration like 500ms, 30s or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$') || duration(self) >= duration('10ms')",message="heartbeatInterval must be at least 10ms"
	// +optional
	HeartbeatInterval *metav1.Duration `json:"heartbeatInterval,omitempty"`

	// ElectionTimeout of followers; ten round trips, at most 50s.
	//
	// +kubebuilder:default="1s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$')",message="electionTimeout must be a duration like 500ms, 30s or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$') || duration(self) <= duration('50s')",message="electionTimeout must be at most 50s"
	// +optional
	ElectionTimeout *metav1.Duration `json:"electionTimeout,omitempty"`

	// AutoCompactionRetention turns etcd's own compaction on. Leave it out
	// for Kubernetes, whose API servers compact.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$')",message="autoCompactionRetention must be a duration like 500ms, 30s or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$') || duration(self) >= duration('1s')",message="autoCompactionRetention must be at least 1s; leave it out to turn compaction off"
	// +optional
	AutoCompactionRetention *metav1.Duration `json:"autoCompactionRetention,omitempty"`

	// ExtraArgs are more flags of etcd, without leading dashes. Flags that
	// the manager sets, and flags that this version doesn't have, are refused.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z][-a-z0-9]*$'))",message="extraArgs are named like etcd's flags, without leading dashes"
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}

// ReleaseSource says where machines fetch etcd from.
type ReleaseSource struct {
	// Mirror is a base URL, http://, https:// or file://, that holds
	// vX.Y.Z/etcd-vX.Y.Z-linux-ARCH.tar.gz and vX.Y.Z/SHA256SUMS.
	//
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^(https?|file)://.+')",message="mirror must be an http://, https:// or file:// URL"
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Mirror string `json:"mirror,omitempty"`

	// SHA256 of the archive by architecture (amd64, arm64), in hex. Without
	// it the mirror's SHA256SUMS is believed.
	//
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['amd64', 'arm64'])",message="sha256 is by architecture: amd64 or arm64"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^[0-9a-f]{64}$'))",message="sha256 must be 64 hexadecimal digits in lower case"
	// +optional
	SHA256 map[string]string `json:"sha256,omitempty"`
}

// Repair says when a member is given up.
type Repair struct {
	// DeadAfter is how long a member must have been seen dead by everyone
	// who can see before it is replaced. A machine that its actuator knows to
	// be gone is replaced at once.
	//
	// +kubebuilder:default="5m0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$')",message="deadAfter must be a duration like 500ms, 30s or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,3}$') || duration(self) >= duration('10s')",message="deadAfter must be at least 10s: an election takes seconds, and a restart is no death"
	// +optional
	DeadAfter metav1.Duration `json:"deadAfter,omitzero"`
}

// EtcdClusterStatus is a report; all of it can be lost and made anew. What
// cannot be observed again is in AnnotationRecord.
type EtcdClusterStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase in a word: Founding, Ready, Degraded, Repairing, Scaling,
	// QuorumLost, Paused, Deleting.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Ready is voters that serve of voters wanted, like 3/3.
	// +optional
	Ready string `json:"ready,omitempty"`
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// +optional
	Selector string `json:"selector,omitempty"`
	// Version that every member runs; empty while they differ.
	// +optional
	Version string `json:"version,omitempty"`
	// Leader is the leading member's name.
	// +optional
	Leader string `json:"leader,omitempty"`
	// DBSize is the largest member's database.
	// +optional
	DBSize string `json:"dbSize,omitempty"`
	// Endpoints are client URLs of voters that answered a linearizable read.
	// +optional
	Endpoints []string `json:"endpoints,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Members as last seen.
	// +optional
	Members []MemberStatus `json:"members,omitempty"`
}

// MemberStatus is one member as last seen.
type MemberStatus struct {
	// +optional
	Name string `json:"name,omitempty"`
	// ID in hex; empty until it is a member.
	// +optional
	ID string `json:"id,omitempty"`
	// +optional
	Machine string `json:"machine,omitempty"`
	// +optional
	PeerURL string `json:"peerURL,omitempty"`
	// +optional
	Learner bool `json:"learner,omitempty"`
	// Serving: a linearizable read was answered.
	// +optional
	Serving bool `json:"serving,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
	// Message says what is wrong with it, if anything is.
	// +optional
	Message string `json:"message,omitempty"`
}

// ClusterRecord is what cannot be observed again, written before what it
// records is done. It is the JSON in AnnotationRecord, because a status does
// not survive the move of an object to another management cluster.
type ClusterRecord struct {
	// Epoch of the controller in charge; agents refuse older ones.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// Token is initial-cluster-token of this incarnation.
	// +optional
	Token string `json:"token,omitempty"`
	// Founders are the machines that found the cluster, decided once.
	// +optional
	Founders []string `json:"founders,omitempty"`
	// Founded is set when the cluster answered for the first time, never unset.
	// +optional
	Founded bool `json:"founded,omitempty"`
	// ClusterID in hex.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// NextMachine numbers the next machine, so that names are never reused.
	// +optional
	NextMachine int64 `json:"nextMachine,omitempty"`
	// Operation in flight, at most one.
	// +optional
	Operation *Operation `json:"operation,omitempty"`
	// Failures counts joins that failed in a row, for the back-off (F177).
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// FailedAt is when the last of them was given up.
	// +optional
	FailedAt *metav1.Time `json:"failedAt,omitempty"`
}

// Operation is one change to the membership, recorded before its first effect.
type Operation struct {
	// Kind is Join or Remove.
	Kind string `json:"kind"`
	// Machine it is about.
	Machine string `json:"machine"`
	// MemberID in hex as far as it is known.
	// +optional
	MemberID string `json:"memberID,omitempty"`
	// PeerURL of the member.
	// +optional
	PeerURL string `json:"peerURL,omitempty"`
	// Reason in words.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Started is when it was recorded.
	Started metav1.Time `json:"started"`
}
