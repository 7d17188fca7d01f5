package stories

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

func machineFor(m *v1alpha1.EtcdMachine) machine.Machine { return observe.MachineFor(nil, m) }

// TestWipedDisk wipes the data directory of a running etcd, and in another
// cluster that of a machine that lost its power, whose identity stays. Neither
// is ever started empty: the member is removed and another joins (F026).
func TestWipedDisk(t *testing.T) {
	t.Parallel()
	f := rig.NewFleet(t)
	f.StartController()
	for name, stopped := range map[string]bool{"running": false, "unpowered": true} {
		f.Apply(name)
		before := f.WaitReady(name)
		w := watch(t, f, name, nil)
		l := startLoad(t, f, before, 1)
		victim := follower(t, before)
		m := f.Machine(victim)
		log := openAtEnd(t, filepath.Join(f.Dir, "machines", string(m.UID), "agent.log"))
		if stopped { // and not started before it is wiped
			patch(t, f, name, func(c *v1alpha1.EtcdCluster) { c.Spec.Paused = true })
			w.await(time.Time{}, "the pause", func(v version) bool { return v.cluster.Status.Phase == "Paused" })
			if err := f.Machines.Crash(t.Context(), machineFor(m)); err != nil {
				t.Fatal(err)
			}
		}
		wipe(t, f, m)
		if stopped {
			patch(t, f, name, func(c *v1alpha1.EtcdCluster) { c.Spec.Paused = false })
		}
		after := f.WaitReady(name, victim)
		otherIdentity(t, before, after, victim)
		text, err := io.ReadAll(log)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `msg="started etcd"`) || strings.Contains(string(text), `"msg":"started etcd"`) {
			t.Errorf("%s: the agent started etcd on a wiped disk:\n%s", name, text)
		}
		if stopped && len(text) == 0 {
			t.Errorf("%s: the agent logged nothing: it was not started again", name)
		}
		l.mayFail(t, name, 1)
		l.kept(t, f, after)
		removal := w.await(time.Time{}, "a removal", func(v version) bool {
			op := v.record.Operation
			return op != nil && op.Kind == string(plan.Remove) && op.Machine == victim
		})
		if reason := removal.record.Operation.Reason; reason != "its data is lost" {
			t.Errorf("%s: it was removed because %s", name, reason)
		}
		w.check()
	}
}

// openAtEnd opens a log that is read later from here on, also when it was
// removed meanwhile.
func openAtEnd(t *testing.T, path string) io.Reader {
	t.Helper()
	log, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if _, err := log.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	return log
}

// wipe removes a member's data and nothing else of its machine.
func wipe(t *testing.T, f *rig.Fleet, m *v1alpha1.EtcdMachine) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(f.Dir, "machines", string(m.UID), "agent", "*", "member"))
	if err != nil || len(found) != 1 {
		t.Fatalf("look for the data of %s: %v, %v", m.Name, found, err)
	}
	if err := os.RemoveAll(filepath.Dir(found[0])); err != nil {
		t.Fatal(err)
	}
}
