package stories

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// TestTwoOfFive loses two of five machines at once: both are replaced, one
// after the other, and nothing is lost (F003, F035).
func TestTwoOfFive(t *testing.T) {
	t.Parallel()
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("five", func(c *v1alpha1.EtcdCluster) { c.Spec.Replicas = 5 })
	cluster := f.WaitReady("five")
	w := watch(t, f, "five", nil)
	l := startLoad(t, f, cluster, 2)
	lost := []string{cluster.Status.Leader, follower(t, cluster)}
	for _, machine := range lost {
		f.Destroy(f.Machine(machine))
	}
	after := f.WaitReady("five", lost...)
	l.mayFail(t, "two of five lost", 2)
	l.kept(t, f, after)
	if after.Status.Replicas != 5 {
		t.Errorf("it has %d members", after.Status.Replicas)
	}
	ops := w.operations()
	if countKind(ops, plan.Remove) != 2 || countKind(ops, plan.Join) < 2 {
		t.Errorf("want two removals and two joins: %+v", ops)
	}
	for i, op := range ops[:2] {
		if op.Kind != string(plan.Remove) {
			t.Errorf("operation %d is %+v: a dead member was not removed before one was added", i, op)
		}
	}
	w.check()
	w.checkEvents()
}

// TestSecondFault loses, in the midst of a replacement when the new member is
// added and does not vote yet, the joining machine; in another cluster it is
// another voter's etcd that is killed at that moment.
func TestSecondFault(t *testing.T) {
	t.Parallel()
	f := rig.NewFleet(t)
	f.StartController()
	for name, hurt := range map[string]func(before *v1alpha1.EtcdCluster, joining, lost string){
		"joiner": func(_ *v1alpha1.EtcdCluster, joining, _ string) { f.Destroy(f.Machine(joining)) },
		"voter": func(before *v1alpha1.EtcdCluster, _, lost string) {
			for _, m := range before.Status.Members {
				if m.Machine != lost {
					_, etcd := f.Processes(f.Machine(m.Machine))
					send(t, etcd, syscall.SIGKILL)
					return
				}
			}
		},
	} {
		f.Apply(name)
		before := f.WaitReady(name)
		w := watch(t, f, name, nil)
		l := startLoad(t, f, before, 1)
		lost := before.Status.Leader
		f.Destroy(f.Machine(lost))
		joining := w.await(time.Time{}, "a learner to be added", func(v version) bool {
			op := v.record.Operation
			return op != nil && op.Kind == string(plan.Join) && op.MemberID != ""
		}).record.Operation.Machine
		hurt(before, joining, lost)
		gone := []string{lost}
		if name == "joiner" {
			gone = append(gone, joining)
		}
		after := f.WaitReady(name, gone...)
		otherIdentity(t, before, after, lost)
		l.since() // two faults may well stop writes for a while
		l.kept(t, f, after)
		w.check()
		if name == "joiner" {
			if joins := countKind(w.operations(), plan.Join); joins != 2 {
				t.Errorf("%d joins, want the one that failed and another: %+v", joins, w.operations())
			}
		}
	}
}

// TestSilentAgentHealthyEtcd stops the agent of a machine for longer than it
// takes to give a member up. Its etcd serves, so nothing is replaced; that the
// agent is silent is told (F169, F191).
func TestSilentAgentHealthyEtcd(t *testing.T) {
	t.Parallel()
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("mute")
	before := f.WaitReady("mute")
	w := watch(t, f, "mute", nil)
	mute := before.Status.Leader
	agent, etcd := f.Processes(f.Machine(mute))
	freeze(t, agent)
	t.Cleanup(func() { _ = syscall.Kill(agent, syscall.SIGCONT) })

	healthy := w.await(time.Time{}, "Healthy to be False", conditionIs("Healthy", "False"))
	want := mute + ": its agent does not answer"
	shows(t, f, "mute", "Healthy", "False", "Ill", want)
	waitOlder(t, f, "mute", healthy, 2*before.Spec.Repair.DeadAfter.Duration)
	cluster, err := f.Get(t.Context(), "mute")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(memberIDs(cluster)); got != fmt.Sprint(memberIDs(before)) {
		t.Errorf("members are %s, and were %v", got, memberIDs(before))
	}
	if _, now := f.Processes(f.Machine(mute)); now != etcd {
		t.Errorf("etcd is process %d, and was %d", now, etcd)
	}
	if _, err := f.Etcd(cluster).Put(t.Context(), "k", "v"); err != nil {
		t.Errorf("write while an agent is silent: %v", err)
	}
	send(t, agent, syscall.SIGCONT)
	w.await(time.Now(), "Healthy to be True", conditionIs("Healthy", "True"))
	if ops := w.operations(); len(ops) > 0 {
		t.Errorf("there were operations: %+v", ops)
	}
	w.check()
}
