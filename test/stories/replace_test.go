package stories

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// Measured on two busy cores, a destroyed machine is replaced two to six seconds
// after it was declared dead. One whose processes hang takes twenty more until
// its actuator has ended it; the members are complete long before.
const replacedWithin = time.Minute

// TestReplacedInTime has a machine destroyed and, in another cluster, agent
// and etcd of a machine stopped. Each is declared dead and replaced by another
// machine with another member; the time from one to the other is told.
func TestReplacedInTime(t *testing.T) {
	t.Parallel()
	f := rig.NewFleet(t)
	f.StartController()
	for name, lose := range map[string]func(m *v1alpha1.EtcdMachine){
		"destroyed": f.Destroy,
		"silenced": func(m *v1alpha1.EtcdMachine) {
			agent, etcd := f.Processes(m)
			for _, pid := range []int{agent, etcd} {
				freeze(t, pid)
				t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // if it is still there
			}
		},
	} {
		f.Apply(name)
		before := f.WaitReady(name)
		l := startLoad(t, f, before, 1)
		w := watch(t, f, name, l.follow)
		lost := before.Status.Leader
		lose(f.Machine(lost))
		after := f.WaitReady(name, lost)
		declared := w.await(time.Time{}, "a removal", removes(lost))
		ready := w.await(declared.at, "Ready", func(v version) bool {
			return meta.IsStatusConditionTrue(v.cluster.Status.Conditions, "Ready") && !runs(v.cluster, lost)
		})
		voting := w.await(declared.at, "every vote", func(v version) bool {
			return v.cluster.Status.ReadyReplicas == v.cluster.Spec.Replicas && v.record.Operation == nil && v.at.After(declared.at)
		})
		took := ready.at.Sub(declared.at)
		t.Logf("%s: from declared dead to three that vote %s, to Ready, with the machine gone, %s",
			name, voting.at.Sub(declared.at).Round(time.Millisecond), took.Round(time.Millisecond))
		if took > replacedWithin {
			t.Errorf("%s: from declared dead to Ready %s, want at most %s", name, took, replacedWithin)
		}
		otherIdentity(t, before, after, lost)
		if name == "destroyed" { // a client waits for one that is silent as long as it likes
			l.mayFail(t, name, 1)
		}
		l.kept(t, f, after)
		w.check()
		w.checkEvents()
		tellsOperations(t, describe(t, f, name), w)
	}
}

func removes(machine string) func(version) bool {
	return func(v version) bool {
		op := v.record.Operation
		return op != nil && op.Kind == string(plan.Remove) && op.Machine == machine
	}
}

func runs(c *v1alpha1.EtcdCluster, machine string) bool {
	for _, m := range c.Status.Members {
		if m.Machine == machine {
			return true
		}
	}
	return false
}

// otherIdentity asserts that one member was replaced and no other.
func otherIdentity(t *testing.T, before, after *v1alpha1.EtcdCluster, lost string) {
	t.Helper()
	had := map[string]string{}
	for _, m := range before.Status.Members {
		had[m.ID] = m.Machine
	}
	added := 0
	for _, m := range after.Status.Members {
		switch machine, was := had[m.ID]; {
		case !was:
			added++
		case machine == lost || machine != m.Machine:
			t.Errorf("member %s is on %s, and was on %s", m.ID, m.Machine, machine)
		}
	}
	if added != 1 {
		t.Errorf("%d members are new, want one: %+v, and there were %+v", added, after.Status.Members, before.Status.Members)
	}
}

// tellsOperations asserts that what a user is shown has an event for each
// operation, with its reason.
func tellsOperations(t *testing.T, shown string, w *witness) {
	t.Helper()
	for _, op := range w.operations() {
		want := "operation=" + op.Kind
		if op.Machine != "" {
			want += " of=" + op.Machine
		}
		if !strings.Contains(shown, want) || !strings.Contains(shown, op.Reason) {
			t.Errorf("kubectl describe tells no event %q with %q:\n%s", want, op.Reason, shown)
		}
	}
}
