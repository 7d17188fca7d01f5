package local

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// child starts a shell that says a line once it is set up; its end is seen to.
func child(t *testing.T, script string, arguments ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", script}, arguments...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe() // never written to: "read never" waits
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// A PID that was used again, since the start or since the boot, is neither the
// agent nor killed in its place.
func TestProcessIsNotAnotherOfItsPID(t *testing.T) {
	cmd := child(t, "echo up; read never")
	real, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]process{
		"started before": {real.PID, real.Start - 1, real.Boot},
		"of a past boot": {real.PID, real.Start, "another-boot"},
	} {
		if running, err := other.running(); err != nil || running {
			t.Errorf("a process %s: running %v, %v", name, running, err)
		}
		if err := other.signal(unix.SIGKILL); err != nil {
			t.Errorf("signal a process %s: %v", name, err)
		}
	}
	if running, err := real.running(); err != nil || !running {
		t.Errorf("the process that has the PID: running %v, %v; want untouched", running, err)
	}
}

func TestEndKillsWhatIgnoresSIGTERM(t *testing.T) {
	for name, script := range map[string]string{
		"deaf":  "trap '' TERM; echo up; while :; do read never; done",
		"still": "echo up; kill -STOP $$; read never", // SIGTERM waits until it goes on
	} {
		t.Run(name, func(t *testing.T) {
			p, err := identify(child(t, script).Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(t.Context(), []process{p}, 50*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if running, err := p.running(); err != nil || running {
				t.Errorf("running %v, %v", running, err)
			}
		})
	}
}

func TestProcessesOf(t *testing.T) {
	dir := t.TempDir()
	in := dir + "/agent"
	for name, test := range map[string]struct {
		arguments []string
		agent     bool
		other     bool
	}{
		"agent":             {arguments: []string{"agent", "--dir", in}, agent: true},
		"agent, joined":     {arguments: []string{"agent", "--dir=" + in}, agent: true},
		"etcd":              {arguments: []string{"--name=a", "--data-dir=" + in + "/data"}, other: true},
		"etcd, parted":      {arguments: []string{"-data-dir", in + "/data"}, other: true},
		"pager":             {arguments: []string{in + "/etcd.log"}},
		"client":            {arguments: []string{"--cacert=" + in + "/ca.crt"}},
		"another of prefix": {arguments: []string{"agent", "--dir", dir + "2/agent"}},
		"flag at the end":   {arguments: []string{"agent", "--dir"}},
	} {
		t.Run(name, func(t *testing.T) {
			pid := child(t, "echo up; read never", test.arguments...).Process.Pid
			agents, others, err := processesOf(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := has(agents, pid); got != test.agent {
				t.Errorf("taken for the agent: %v", got)
			}
			if got := has(others, pid); got != test.other {
				t.Errorf("taken for another process of the machine: %v", got)
			}
		})
	}
	if agents, others, err := processesOf("/"); err != nil || has(append(agents, others...), os.Getpid()) {
		t.Errorf("this very process is taken for a machine's: %v", err)
	}
}

func has(processes []process, pid int) bool {
	for _, p := range processes {
		if p.PID == pid {
			return true
		}
	}
	return false
}
