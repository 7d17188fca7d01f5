package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and finalizers.
const (
	// LabelCluster names the cluster of a machine or Secret.
	LabelCluster = "etcdmanager.io/cluster"
	// LabelClusterUID is the UID of that cluster: names get reused, UIDs don't.
	LabelClusterUID = "etcdmanager.io/cluster-uid"
	// Finalizer on clusters and machines.
	Finalizer = "etcdmanager.io/finalizer"
	// AnnotationRecord on an EtcdCluster holds its ClusterRecord. It is the
	// manager's own: to edit it is to lie to it.
	AnnotationRecord = "etcdmanager.io/record"
	// AnnotationReplace on an EtcdMachine asks for its replacement.
	AnnotationReplace = "etcdmanager.io/replace"
)

// EtcdMachine is one machine of a cluster. It exists before the machine is
// asked for, and its UID is the idempotency key (F160).
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=etcdmanager
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Member",type=string,JSONPath=`.status.memberID`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EtcdMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec EtcdMachineSpec `json:"spec"`
	// +optional
	Status EtcdMachineStatus `json:"status,omitzero"`
}

// EtcdMachineList is a list of EtcdMachine.
//
// +kubebuilder:object:root=true
type EtcdMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdMachine `json:"items"`
}

// EtcdMachineSpec never changes.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an EtcdMachine cannot change"
type EtcdMachineSpec struct {
	// Cluster is the name of the EtcdCluster in the same namespace.
	Cluster string `json:"cluster"`
	// ClusterUID is its UID.
	ClusterUID string `json:"clusterUID"`
	// Actuator that makes the machine.
	Actuator string `json:"actuator"`
	// FailureDomain it is made in.
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`
}

// EtcdMachineStatus is a report, but for Enrolled.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.enrolled) || has(self.enrolled) && self.enrolled == oldSelf.enrolled",message="enrolled cannot change: a machine enrols once"
type EtcdMachineStatus struct {
	// Phase in a word: Pending, Provisioned, Enrolled, Joining, Running,
	// Unreachable, Leaving.
	// +optional
	Phase string `json:"phase,omitempty"`
	// +optional
	Address string `json:"address,omitempty"`
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// +optional
	MemberID string `json:"memberID,omitempty"`
	// Requested is when the actuator was first asked for the machine; only
	// then can its absence mean that it is gone.
	// +optional
	Requested *metav1.Time `json:"requested,omitempty"`
	// Enrolled is the SHA-256, in hex, of the agent's public key whose
	// requests were signed: the first to ask is the only one.
	// +optional
	Enrolled string `json:"enrolled,omitempty"`
	// Message says what it waits for.
	// +optional
	Message string `json:"message,omitempty"`
}
