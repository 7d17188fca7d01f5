package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// TestControllerKilledAtEveryStep kills the controller before and after each
// kind of step of a founding and of a replacement (F164). The cluster ends
// Ready with exactly its machines each time, and no etcd is started twice.
func TestControllerKilledAtEveryStep(t *testing.T) {
	f := rig.NewFleet(t)
	died := filepath.Join(t.TempDir(), "died")
	stop := keepAlive(t, f, died)
	f.Apply("mortal")
	cluster := f.WaitReady("mortal")
	etcd := f.Etcd(cluster)
	if _, err := etcd.Put(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	lost := cluster.Status.Leader
	f.Destroy(f.Machine(lost))
	cluster = f.WaitReady("mortal", lost)
	stop()

	read, err := f.Etcd(cluster).Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Kvs) != 1 || string(read.Kvs[0].Value) != "v" {
		t.Errorf("what was written is %v", read.Kvs)
	}
	moments, err := os.ReadFile(died)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []plan.Kind{
		plan.RecordFounding, plan.CreateMachine, plan.AskMachine, plan.Enrol, plan.Declare, plan.RecordFounded,
		plan.BeginOperation, plan.RemoveMember, plan.EndOperation, plan.DeleteMachine, plan.ReleaseMachine, plan.AddLearner, plan.Promote,
	} {
		for _, moment := range []string{"before ", "after "} {
			if !strings.Contains(string(moments), moment+string(kind)+"\n") {
				t.Errorf("no controller died %s%s", moment, kind)
			}
		}
	}
	t.Logf("controllers died %d times", strings.Count(string(moments), "\n"))
}

// keepAlive starts a mortal controller again whenever it died.
func keepAlive(t *testing.T, f *rig.Fleet, died string) (stop func()) {
	t.Helper()
	stopping, stopped := make(chan struct{}), make(chan struct{})
	first := startMortal(t, f, died)
	go func() {
		defer close(stopped)
		for p := first; ; p = startMortal(t, f, died) {
			select {
			case <-p.Done():
			case <-stopping:
				p.Stop(t)
				return
			}
		}
	}()
	return func() {
		close(stopping)
		<-stopped
	}
}

// TestAgentsKilled kills every agent: etcd never restarts because an agent
// did, and the agents come back.
func TestAgentsKilled(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("agents")
	cluster := f.WaitReady("agents")
	etcds := map[string]int{}
	agents := map[string]int{}
	for _, m := range cluster.Status.Members {
		agents[m.Machine], etcds[m.Machine] = f.Processes(f.Machine(m.Machine))
		kill(t, agents[m.Machine])
	}
	waitAgents(t, f, agents)
	f.WaitReady("agents")
	for machine, before := range etcds {
		if _, etcd := f.Processes(f.Machine(machine)); etcd != before {
			t.Errorf("etcd on %s is process %d, and was %d before its agent was killed", machine, etcd, before)
		}
	}
}

// TestEtcdsKilled kills one etcd, then all of them at once.
func TestEtcdsKilled(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("etcds")
	cluster := f.WaitReady("etcds")
	if _, err := f.Etcd(cluster).Put(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	for _, victims := range [][]string{
		{cluster.Status.Leader},
		{cluster.Status.Members[0].Machine, cluster.Status.Members[1].Machine, cluster.Status.Members[2].Machine},
	} {
		before := map[string]int{}
		for _, machine := range victims {
			_, before[machine] = f.Processes(f.Machine(machine))
			kill(t, before[machine])
		}
		for _, machine := range victims {
			waitRestarted(t, f, machine, before[machine])
		}
		after := f.WaitReady("etcds")
		for i, m := range after.Status.Members {
			if m.ID != cluster.Status.Members[i].ID {
				t.Errorf("member %s was replaced by %s though its disk was there", cluster.Status.Members[i].ID, m.ID)
			}
		}
	}
	read, err := f.Etcd(f.WaitReady("etcds")).Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Kvs) != 1 || string(read.Kvs[0].Value) != "v" {
		t.Errorf("what was written is %v", read.Kvs)
	}
}

// TestManagementAPIKilled kills the management API while a machine is being
// replaced: etcd serves on, and the replacement ends well (F167).
func TestManagementAPIKilled(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("api")
	cluster := f.WaitReady("api")
	lost := cluster.Status.Members[0].Machine
	f.Destroy(f.Machine(lost))
	waitPhase(t, f, "api", "Repairing")
	for _, pid := range f.API.PIDs() {
		kill(t, pid)
	}
	if _, err := f.Etcd(cluster).Put(t.Context(), "k", "v"); err != nil {
		t.Errorf("write while the management API is down: %v", err)
	}
	f.WaitReady("api", lost)
}
