package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
)

// unchanged fails when the stored object is not the one that was read before.
func unchanged(t *testing.T, c client.Client, before client.Object) {
	t.Helper()
	now, ok := before.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no object", before)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(before), now); err != nil {
		t.Fatal(err)
	}
	if now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the refused change was stored: version %s, was %s", now.GetResourceVersion(), before.GetResourceVersion())
	}
}

func newCluster(t *testing.T, c client.Client, namespace, name string) *v1alpha1.EtcdCluster {
	t.Helper()
	cluster := &v1alpha1.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.EtcdClusterSpec{Version: "3.7.3"},
	}
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func newMachine(t *testing.T, c client.Client, namespace, name string) *v1alpha1.EtcdMachine {
	t.Helper()
	machine := &v1alpha1.EtcdMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.EtcdMachineSpec{Cluster: "one", ClusterUID: "uid", Actuator: "local"},
	}
	if err := c.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	return machine
}

func TestFieldsOfAClusterThatCannotChange(t *testing.T) {
	c, namespace := strict(t)
	cluster := newCluster(t, c, namespace, "one")
	cases := []struct {
		name string
		edit func(*v1alpha1.EtcdClusterSpec)
		want string
	}{
		{
			"actuator", func(s *v1alpha1.EtcdClusterSpec) { s.MachineTemplate.Actuator = "other" },
			"machineTemplate.actuator cannot change: make a new cluster instead",
		},
		{
			"version", func(s *v1alpha1.EtcdClusterSpec) { s.Version = "3.6.16" },
			"version cannot change yet: changing versions in place is not built, make a new cluster instead",
		},
		{"replicas to even", func(s *v1alpha1.EtcdClusterSpec) { s.Replicas = 2 }, oddReplicas},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			edited := cluster.DeepCopy()
			test.edit(&edited.Spec)
			expectOne(t, c.Update(t.Context(), edited), test.want)
			unchanged(t, c, cluster)
		})
	}
	t.Run("what can change does", func(t *testing.T) {
		edited := cluster.DeepCopy()
		edited.Spec.Replicas, edited.Spec.Paused = 5, true
		if err := c.Update(t.Context(), edited); err != nil {
			t.Error(err)
		}
	})
}

func TestSpecOfAMachineCannotChange(t *testing.T) {
	c, namespace := strict(t)
	machine := newMachine(t, c, namespace, "one-0")
	for name, edit := range map[string]func(*v1alpha1.EtcdMachineSpec){
		"cluster":        func(s *v1alpha1.EtcdMachineSpec) { s.Cluster = "two" },
		"cluster's UID":  func(s *v1alpha1.EtcdMachineSpec) { s.ClusterUID = "other" },
		"actuator":       func(s *v1alpha1.EtcdMachineSpec) { s.Actuator = "other" },
		"failure domain": func(s *v1alpha1.EtcdMachineSpec) { s.FailureDomain = "b" },
	} {
		t.Run(name, func(t *testing.T) {
			edited := machine.DeepCopy()
			edit(&edited.Spec)
			expectOne(t, c.Update(t.Context(), edited), "the spec of an EtcdMachine cannot change")
			unchanged(t, c, machine)
		})
	}
}

// A machine enrols once: the first key is the only one, whatever a controller
// writes later.
func TestEnrolmentCannotChange(t *testing.T) {
	c, namespace := strict(t)
	machine := newMachine(t, c, namespace, "enrolled-0")
	machine.Status.Enrolled = "aa"
	if err := c.Status().Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"bb", ""} {
		edited := machine.DeepCopy()
		edited.Status.Enrolled, edited.Status.Phase = other, "Running"
		expectOne(t, c.Status().Update(t.Context(), edited), "enrolled cannot change: a machine enrols once")
		unchanged(t, c, machine)
	}
	machine.Status.Phase = "Running"
	if err := c.Status().Update(t.Context(), machine); err != nil {
		t.Errorf("another field beside the same enrolment: %v", err)
	}
}
