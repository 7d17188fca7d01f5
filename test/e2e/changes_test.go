package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

func single(c *v1alpha1.EtcdCluster) { c.Spec.Replicas = 1 }

func patch(t *testing.T, f *rig.Fleet, name string, change func(*v1alpha1.EtcdCluster)) {
	t.Helper()
	cluster, err := f.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	before := cluster.DeepCopy()
	change(cluster)
	if err := f.API.Patch(t.Context(), cluster, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// TestSurvivorComesBack shrinks clusters of older versions to one and kills
// what is left right away. Without one more entry after the last removal these
// versions wait for a vote of the member that was removed.
func TestSurvivorComesBack(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	versions := map[string]string{"old": "3.5.35", "newer": "3.6.16"}
	for name, version := range versions {
		f.Apply(name, func(c *v1alpha1.EtcdCluster) { c.Spec.Version = version })
	}
	for name := range versions {
		f.WaitReady(name)
		patch(t, f, name, func(c *v1alpha1.EtcdCluster) { c.Spec.Replicas = 1 })
	}
	for name, version := range versions {
		survivor := waitAlone(t, f, name)
		_, etcd := f.Processes(f.Machine(survivor))
		kill(t, etcd)
		waitRestarted(t, f, survivor, etcd)
		cluster := f.WaitReady(name)
		if _, err := f.Etcd(cluster).Put(t.Context(), "k", "v"); err != nil {
			t.Errorf("write to the survivor on %s: %v", version, err)
		}
		if cluster.Status.Version != version {
			t.Errorf("the cluster runs %s, not %s", cluster.Status.Version, version)
		}
	}
}

// waitAlone waits until etcd has one member, and no longer.
func waitAlone(t *testing.T, f *rig.Fleet, name string) (machine string) {
	t.Helper()
	rig.Eventually(t, rig.Patience, name+" to have one member", func(ctx context.Context) error {
		cluster, err := f.Get(ctx, name)
		if err != nil {
			return err
		}
		for _, m := range cluster.Status.Members {
			if m.ID != "" && m.Serving {
				machine = m.Machine
			}
		}
		if cluster.Status.Replicas != 1 || machine == "" {
			return fmt.Errorf("it has %d", cluster.Status.Replicas)
		}
		return nil
	})
	return machine
}

// TestScale goes from one to three and back, keeping what was written. The
// survivor is killed in the end: it must come back alone.
func TestScale(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("scaled", single)
	if _, err := f.Etcd(f.WaitReady("scaled")).Put(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	for _, replicas := range []int32{3, 1} {
		patch(t, f, "scaled", func(c *v1alpha1.EtcdCluster) { c.Spec.Replicas = replicas })
		f.WaitReady("scaled")
	}
	survivor := f.WaitReady("scaled").Status.Members[0].Machine
	_, etcd := f.Processes(f.Machine(survivor))
	kill(t, etcd)
	waitRestarted(t, f, survivor, etcd)
	read, err := f.Etcd(f.WaitReady("scaled")).Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Kvs) != 1 || string(read.Kvs[0].Value) != "v" {
		t.Errorf("after 1→3→1 the key is %v", read.Kvs)
	}
}

// TestReplaceOnRequest asks for a healthy machine's replacement in both ways:
// by the annotation, and by deleting its object (F174).
func TestReplaceOnRequest(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	// Nothing here may need a member to be given up first.
	f.Apply("asked", func(c *v1alpha1.EtcdCluster) { c.Spec.Repair.DeadAfter = metav1.Duration{Duration: time.Hour} })
	leader := f.WaitReady("asked").Status.Leader
	m := f.Machine(leader)
	m.Annotations = map[string]string{v1alpha1.AnnotationReplace: ""}
	if err := f.API.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	cluster := f.WaitReady("asked", leader)
	second := cluster.Status.Members[0].Machine
	if err := f.API.Delete(t.Context(), f.Machine(second)); err != nil {
		t.Fatal(err)
	}
	f.WaitReady("asked", leader, second)
}

// TestPaused changes nothing while paused, whatever is lost (F171).
func TestPaused(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("paused")
	lost := f.WaitReady("paused").Status.Members[0].Machine
	patch(t, f, "paused", func(c *v1alpha1.EtcdCluster) { c.Spec.Paused = true })
	waitPhase(t, f, "paused", "Paused")
	f.Destroy(f.Machine(lost))
	// It is seen, and nothing is done about it: the cluster is looked at
	// again many times while one more object is made to be Ready.
	waitCondition(t, f, "paused", "Healthy", "False")
	f.Apply("witness", single)
	f.WaitReady("witness")
	machines, err := f.List(t.Context(), "paused")
	if err != nil {
		t.Fatal(err)
	}
	if len(machines) != 3 {
		t.Errorf("a paused cluster has %d machines", len(machines))
	}
	for _, m := range machines {
		if !m.DeletionTimestamp.IsZero() {
			t.Errorf("machine %s of a paused cluster is being deleted", m.Name)
		}
	}
	patch(t, f, "paused", func(c *v1alpha1.EtcdCluster) { c.Spec.Paused = false })
	f.WaitReady("paused", lost)
}

// TestDeletedWhenDead deletes a cluster all of whose members are dead: no
// member can be removed any more, and nothing waits for that (F172).
func TestDeletedWhenDead(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("dead")
	for _, member := range f.WaitReady("dead").Status.Members {
		f.Destroy(f.Machine(member.Machine))
	}
	waitCondition(t, f, "dead", "Available", "False")
	cluster, err := f.Get(t.Context(), "dead")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.API.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	waitGone(t, f, "dead")
	left, err := f.Machines.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("machines are left: %s", fmt.Sprint(left))
	}
}
