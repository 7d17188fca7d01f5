// Package actuator holds the test of the example written in Python: it passes
// the suite that every driver passes, through the exec protocol.
package actuator

import (
	"context"
	"encoding/json"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/exec"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/machinetest"
)

func TestMain(m *testing.M) {
	machinetest.StandIn()
	goleak.VerifyTestMain(m)
}

// program returns a command that runs the actuator, and its environment. The
// agents are stand-ins, to be quick.
func program(t *testing.T, machines string) (command, env []string) {
	t.Helper()
	python, err := osexec.LookPath("python3")
	if err != nil {
		t.Fatalf("the example actuator needs Python 3.9 or newer: %v", err)
	}
	script, err := filepath.Abs("actuator.py")
	if err != nil {
		t.Fatal(err)
	}
	agent, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command = []string{python, "-B", script}
	env = []string{"ETCDMANAGER_BINARY=" + agent, "ETCDMANAGER_MACHINES=" + machines}
	initialize := osexec.CommandContext(t.Context(), command[0], append(command[1:], "init")...)
	initialize.Env = env
	if out, err := initialize.CombinedOutput(); err != nil {
		t.Fatalf("init: %v: %s", err, out)
	}
	return command, env
}

func actuator(t *testing.T, command, env []string) machine.Actuator {
	t.Helper()
	a, err := exec.New(exec.Options{Name: "python", Command: command, Env: env, Timeout: machinetest.Deadline})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestConformance(t *testing.T) {
	machinetest.Run(t, func(t *testing.T) machinetest.Driver {
		place := machinetest.Place{Machines: filepath.Join(t.TempDir(), "machines")}
		command, env := program(t, place.Machines)
		return machinetest.Driver{
			Actuator:  actuator(t, command, env),
			Bootstrap: func(machine.Machine) []byte { return []byte(`{"test":"bootstrap"}`) },
			Reopen:    func(t *testing.T) machine.Actuator { return actuator(t, command, env) },
			LoseAnswer: func(t *testing.T) machine.Actuator {
				mute := append([]string{"/bin/sh", "-c", `"$@" >/dev/null; exit 1`, "mute"}, command...)
				return actuator(t, mute, env)
			},
			Stop: place.Stop, Blind: place.Blind, Starts: place.Starts, Remains: place.Remains,
		}
	})
}

// The agent's PID may be somebody else's by the time the machine is deleted.
func TestPIDOfAnotherIsSpared(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), machinetest.Deadline)
	defer cancel()
	place := machinetest.Place{Machines: filepath.Join(t.TempDir(), "machines")}
	command, env := program(t, place.Machines)
	a := actuator(t, command, env)
	m := machine.Machine{UID: "11112222-3333", Name: "demo-0", Namespace: "default", Cluster: "demo", ClusterUID: "c"}
	if err := a.Create(ctx, m, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Delete(context.Background(), m) })
	machinetest.Eventually(t, ctx, "the agent started", func() bool { return place.Starts(t, m) == 1 })
	place.Stop(t, m)
	bystander := osexec.CommandContext(ctx, "/bin/sh", "-c", "read never")
	in, err := bystander.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(place.Machines, m.UID, "agent.pid")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var note map[string]any
	if err := json.Unmarshal(raw, &note); err != nil {
		t.Fatal(err)
	}
	note["pid"] = bystander.Process.Pid
	if raw, err = json.Marshal(note); err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if i, err := a.Observe(ctx, m); err != nil || i.State != machine.Stopped {
		t.Errorf("observe: %+v, %v; want Stopped", i, err)
	}
	if err := a.Delete(ctx, m); err != nil {
		t.Fatal(err)
	}
	_ = in.Close() // its read fails: it ends by itself
	if err := bystander.Wait(); err == nil || strings.Contains(err.Error(), "signal") {
		t.Errorf("process %s ended with %v, want untouched", strconv.Itoa(bystander.Process.Pid), err)
	}
}
