package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// station is a DIR of `up` and what a user does with it.
type station struct {
	t       *testing.T
	dir     string
	program string
}

// TestUpAndDown is the life of `up` as its help text tells it, with a cluster:
// ended by Ctrl-C and by SIGKILL it leaves machines serving, started again it
// takes them up, and `down` removes everything (F167).
func TestUpAndDown(t *testing.T) {
	s := &station{t: t, dir: filepath.Join(t.TempDir(), "fleet"), program: rig.Program(t)}
	t.Cleanup(func() {
		if out, err := s.run("", s.program, "down", "--dir", s.dir); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	up := s.up()
	s.kubectl(`apiVersion: etcdmanager.io/v1alpha1
kind: EtcdCluster
metadata: {name: demo}
spec: {replicas: 1, version: `+rig.Version+`}
`, "apply", "-f", "-")
	s.waitReady(1)
	env := s.do(s.program, "client-env", "demo", "--dir", filepath.Join(t.TempDir(), "client"))
	s.etcdctl(env, "put", "k", "v")

	before := s.etcds(1)
	out, err := s.run("", s.program, "up", "--dir", s.dir, "--bin-dir", rig.BinDir(t))
	if want := fmt.Sprintf("%s is in use by another etcdmanager (process %d)", s.dir, up.PID); err == nil || !strings.Contains(out, want) {
		t.Errorf("a second up: %v, want it refused with %q\n%s", err, want, out)
	}
	s.end(up, syscall.SIGINT)
	if code := up.State().ExitCode(); code != 0 {
		t.Errorf("up ended by Ctrl-C has status %d", code)
	}
	if got := s.etcdctl(env, "get", "k", "--print-value-only"); got != "v\n" {
		t.Errorf("while nothing is up, etcd answers %q", got)
	}

	up = s.up()
	s.kubectl("", "scale", "etcdcluster", "demo", "--replicas=3")
	s.waitReady(3)
	after := s.etcds(3)
	for machine, pid := range before {
		if after[machine] != pid {
			t.Errorf("etcd of %s is process %d, and was %d before up was started again", machine, after[machine], pid)
		}
	}

	s.end(up, syscall.SIGKILL)
	if got := s.etcdctl(env, "get", "k", "--print-value-only"); got != "v\n" {
		t.Errorf("after up was killed, etcd answers %q", got)
	}
	up = s.up()
	s.kubectl("", "annotate", "etcdmachine", "demo-0", "etcdmanager.io/replace=")
	s.kubectl("", "wait", "--for=delete", "etcdmachine/demo-0", "--timeout=5m")
	s.waitReady(3)
	for machine, pid := range s.etcds(3) {
		if had, was := after[machine]; was && had != pid {
			t.Errorf("etcd of %s is process %d, and was %d before up was killed", machine, pid, had)
		}
	}

	if out := s.do(s.program, "down", "--dir", s.dir); !strings.Contains(out, "Removing machine demo-1 of cluster default/demo") {
		t.Errorf("down says:\n%s", out)
	}
	rig.Eventually(t, rig.Timeout, "up to end with down", ended(up))
	if left := runningIn(t, s.dir); len(left) > 0 {
		t.Errorf("processes are left: %s", strings.Join(left, "; "))
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if out := s.do(s.program, "down", "--dir", s.dir); !strings.Contains(out, "nothing to remove") {
		t.Errorf("down once more says:\n%s", out)
	}
}

// up starts it and waits until it says that it is up.
func (s *station) up() *rig.Process {
	s.t.Helper()
	p := rig.StartProcess(s.t, "up", nil, s.program, "up", "--dir", s.dir, "--bin-dir", rig.BinDir(s.t))
	rig.Eventually(s.t, rig.Timeout, "up to say that it is up", func(context.Context) error {
		select {
		case <-p.Done():
			s.t.Fatalf("up ended: %s", p.State())
		default:
		}
		if !strings.Contains(logOf(s.t, p), "The management API is up") {
			return errors.New("it did not say so")
		}
		return nil
	})
	return p
}

func (s *station) end(p *rig.Process, signal syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(p.PID, signal); err != nil {
		s.t.Fatal(err)
	}
	rig.Eventually(s.t, rig.Timeout, "up to end", ended(p))
}

// run runs a command with the kubeconfig that up wrote.
func (s *station) run(stdin, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*rig.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.dir, "kubeconfig"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *station) do(program string, args ...string) string {
	s.t.Helper()
	out, err := s.run("", program, args...)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

func (s *station) kubectl(stdin string, args ...string) {
	s.t.Helper()
	if out, err := s.run(stdin, rig.Kubectl(s.t), args...); err != nil {
		s.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (s *station) waitReady(replicas int) {
	s.t.Helper()
	ready := fmt.Sprintf("--for=jsonpath={.status.ready}=%d/%d", replicas, replicas)
	s.kubectl("", "wait", "etcdcluster/demo", ready, "--timeout=5m")
	s.kubectl("", "wait", "etcdcluster/demo", "--for=condition=Ready", "--timeout=5m")
}

// etcdctl asks the endpoint that was first, as a user's shell would.
func (s *station) etcdctl(env string, args ...string) string {
	s.t.Helper()
	return s.do("sh", append([]string{"-ceu", env + "\nexec \"$@\"", "sh", rig.Etcd(s.t, rig.Version, "etcdctl")}, args...)...)
}

// etcds are the PIDs of etcd by machine.
func (s *station) etcds(want int) map[string]int {
	s.t.Helper()
	machines, err := local.New(local.Options{Dir: filepath.Join(s.dir, "local"), Executable: s.program})
	if err != nil {
		s.t.Fatal(err)
	}
	all, err := machines.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[string]int{}
	for _, m := range all {
		_, others, err := machines.Processes(s.t.Context(), m)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, pid := range others {
			found[m.Name] = pid
		}
	}
	if len(found) != want || len(all) != want {
		s.t.Fatalf("%d machines run %v, want %d with one etcd each", len(all), found, want)
	}
	return found
}
