package admission

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/config"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// Defaults hold for a Go client's zero values and for YAML that says nothing.
func TestDefaults(t *testing.T) {
	c, namespace := strict(t)
	fromGo := newCluster(t, c, namespace, "from-go")
	if err := c.Create(t.Context(), manifest(t, namespace, "from-yaml", "")); err != nil {
		t.Fatal(err)
	}
	fromYAML := &v1alpha1.EtcdCluster{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "from-yaml"}, fromYAML); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]v1alpha1.EtcdClusterSpec{"Go": fromGo.Spec, "YAML": fromYAML.Spec} {
		got := []any{
			spec.Replicas, spec.MachineTemplate.Actuator, spec.Etcd.QuotaBackendBytes.Value(),
			spec.Etcd.HeartbeatInterval.Duration, spec.Etcd.ElectionTimeout.Duration, spec.Repair.DeadAfter.Duration,
		}
		want := []any{int32(3), "local", int64(8 << 30), 100 * time.Millisecond, time.Second, 5 * time.Minute}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("defaults from %s: %v, want %v", name, got, want)
		}
	}
	// What a typed client writes back is what is there, or every controller
	// that reads and writes would be a change of the spec.
	if err := c.Update(t.Context(), fromYAML); err != nil {
		t.Fatal(err)
	}
	if fromYAML.Generation != 1 {
		t.Errorf("writing back what was read made generation %d, want 1", fromYAML.Generation)
	}
}

func TestStatusIsASubresource(t *testing.T) {
	c, namespace := strict(t)
	cluster := newCluster(t, c, namespace, "one")

	edited := cluster.DeepCopy()
	edited.Status.Phase = "Ready"
	if err := c.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if edited.Status.Phase != "" {
		t.Errorf("an update of the object set status.phase to %q", edited.Status.Phase)
	}
	edited.Spec.Replicas, edited.Status.Phase = 5, "Ready"
	if err := c.Status().Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if edited.Spec.Replicas != 3 || edited.Status.Phase != "Ready" || edited.Generation != cluster.Generation {
		t.Errorf("an update of the status made replicas %d, phase %q, generation %d; want 3, Ready, %d",
			edited.Spec.Replicas, edited.Status.Phase, edited.Generation, cluster.Generation)
	}
}

func TestScale(t *testing.T) {
	c, namespace := strict(t)
	cluster := newCluster(t, c, namespace, "one")
	cluster.Status.Replicas, cluster.Status.Selector = 2, v1alpha1.LabelCluster+"=one"
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(t.Context(), cluster, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 2 || scale.Status.Selector != cluster.Status.Selector {
		t.Errorf("scale is %+v %+v, want 3 wanted, 2 there, selector %s", scale.Spec, scale.Status, cluster.Status.Selector)
	}
	scale.Spec.Replicas = 4
	err := c.SubResource("scale").Update(t.Context(), cluster, client.WithSubResourceBody(scale))
	expectOne(t, err, oddReplicas)
	scale.Spec.Replicas = 5
	if err := c.SubResource("scale").Update(t.Context(), cluster, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	if cluster.Spec.Replicas != 5 {
		t.Errorf("scaled to %d replicas, want 5", cluster.Spec.Replicas)
	}
}

// TestColumns asks for the table that kubectl get prints.
func TestColumns(t *testing.T) {
	c, namespace := strict(t)
	cluster := newCluster(t, c, namespace, "one")
	cluster.Status = v1alpha1.EtcdClusterStatus{Ready: "3/3", Version: "3.7.3", Leader: "one-1", DBSize: "20 MiB", Phase: "Ready"}
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	machine := newMachine(t, c, namespace, "one-0")
	machine.Status = v1alpha1.EtcdMachineStatus{Address: "192.0.2.1", MemberID: "8e9e05c52164694d", Phase: "Running"}
	if err := c.Status().Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]map[string]any{
		"etcdclusters": {"Name": "one", "Ready": "3/3", "Version": "3.7.3", "Leader": "one-1", "DB Size": "20 MiB", "Phase": "Ready"},
		"etcdmachines": {"Name": "one-0", "Cluster": "one", "Address": "192.0.2.1", "Member": "8e9e05c52164694d", "Phase": "Running"},
	} {
		got := firstRow(t, namespace, resource)
		if age, ok := got["Age"].(string); !ok || age == "" {
			t.Errorf("%s have the age %v", resource, got["Age"])
		}
		delete(got, "Age")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s are printed as %v, want %v", resource, got, want)
		}
	}
}

// firstRow of the table of a resource, by the names of its columns.
func firstRow(t *testing.T, namespace, resource string) map[string]any {
	t.Helper()
	api := rig.Management(t)
	raw, err := tableClient(t, api).Get().Namespace(namespace).Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%s have %d rows, want 1", resource, len(table.Rows))
	}
	row := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		row[column.Name] = table.Rows[0].Cells[i]
	}
	return row
}

func tableClient(t *testing.T, api *rig.Manager) rest.Interface {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	c, err := apiutil.RESTClientForGVK(v1alpha1.GroupVersion.WithKind("EtcdCluster"), false, false,
		api.Config(), serializer.NewCodecFactory(rig.Scheme(t)), httpClient)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A schema that is not structural is accepted and then prunes nothing; the
// server says so in a condition.
func TestSchemasAreStructural(t *testing.T) {
	crds, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	api := rig.Management(t)
	for _, crd := range crds {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			t.Fatal(err)
		}
		conditions := map[string]string{}
		for _, condition := range crd.Status.Conditions {
			conditions[string(condition.Type)] = string(condition.Status)
		}
		want := map[string]string{"NamesAccepted": "True", "Established": "True"}
		if !reflect.DeepEqual(conditions, want) {
			t.Errorf("%s has conditions %v, want %v", crd.Name, conditions, want)
		}
	}
}
