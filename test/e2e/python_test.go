package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// TestPythonActuator runs a cluster on machines that another program makes: it
// becomes Ready, loses a machine and regains one, and leaves nothing behind.
func TestPythonActuator(t *testing.T) {
	f, python := rig.NewFleet(t), rig.NewPython(t)
	f.StartController("--exec-actuator", "python="+python.Script)
	f.Apply("snake", func(c *v1alpha1.EtcdCluster) { c.Spec.MachineTemplate.Actuator = "python" })
	cluster := f.WaitReady("snake")
	if _, err := f.Etcd(cluster).Put(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, rig.Timeout, "an agent and an etcd on each machine", func(context.Context) error {
		if ran := runningIn(t, python.Machines); len(ran) != 6 {
			return fmt.Errorf("%d processes: %s", len(ran), strings.Join(ran, "; "))
		}
		return nil
	})

	lost := cluster.Status.Leader
	for _, request := range python.Asked(t) {
		if request.Machine.Name == lost {
			python.Do(t, "delete", request)
		}
	}
	cluster = f.WaitReady("snake", lost)
	read, err := f.Etcd(cluster).Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Kvs) != 1 || string(read.Kvs[0].Value) != "v" {
		t.Errorf("after a machine was lost, what was written is %v", read.Kvs)
	}

	if err := f.API.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	waitGone(t, f, "snake")
	if left := runningIn(t, python.Machines); len(left) > 0 {
		t.Errorf("processes are left: %s", strings.Join(left, "; "))
	}
	left, err := os.ReadDir(python.Machines)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].Name() != ".actuator-python" {
		t.Errorf("the directory of machines still holds %v", left)
	}
}

// runningIn are the command lines that name what is below a directory.
func runningIn(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		// A process that has ended meanwhile, or is a kernel's, has none.
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), dir+"/") {
			found = append(found, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	return found
}
