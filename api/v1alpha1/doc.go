// Package v1alpha1 is the API of etcdmanager.io. It imports apimachinery only,
// so that others can import it cheaply.
//
// +kubebuilder:object:generate=true
// +groupName=etcdmanager.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "etcdmanager.io", Version: "v1alpha1"}

// AddToScheme makes the kinds of this package known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &EtcdCluster{}, &EtcdClusterList{}, &EtcdMachine{}, &EtcdMachineList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
