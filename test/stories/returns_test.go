package stories

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	agentclient "github.com/etcdmanager/etcdmanager/bootstrap/agent/client"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// TestRemovedMemberReturns starts the etcd of a removed member again, with its
// data, certificates and flags as they were. It ends by itself, and neither
// the membership nor the writers notice (F024, F181).
func TestRemovedMemberReturns(t *testing.T) {
	t.Parallel()
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("haunted")
	before := f.WaitReady("haunted")
	old := follower(t, before)
	program, args := keepEtcd(t, f, f.Machine(old))
	replace(t, f, old)
	after := f.WaitReady("haunted", old)
	w := watch(t, f, "haunted", nil)
	l := startLoad(t, f, after, 2)

	ghost := rig.StartProcess(t, "ghost", nil, program, args...)
	rig.Eventually(t, rig.Timeout, "the removed member's process to end by itself", func(context.Context) error {
		select {
		case <-ghost.Done():
			return nil
		default:
			return fmt.Errorf("process %d runs", ghost.PID)
		}
	})
	if text := rig.Tail(ghost.Log); !strings.Contains(text, "removed") {
		t.Errorf("etcd does not say that its member was removed:\n%s", text)
	}
	l.mayFail(t, "a removed member came back", 0)
	l.kept(t, f, after)
	if ids := memberIDs(f.WaitReady("haunted", old)); !slices.Equal(ids, memberIDs(after)) {
		t.Errorf("members are %v, and were %v", ids, memberIDs(after))
	}
	if ops := w.operations(); len(ops) > 0 {
		t.Errorf("there were operations: %+v", ops)
	}
	w.check()
}

// keepEtcd copies what a machine's etcd runs on, and returns its command line
// on the copy, with its log on standard error. Etcd stands still meanwhile.
func keepEtcd(t *testing.T, f *rig.Fleet, m *v1alpha1.EtcdMachine) (program string, args []string) {
	t.Helper()
	_, pid := f.Processes(m)
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		t.Fatal(err)
	}
	home, copied := filepath.Join(f.Dir, "machines", string(m.UID)), filepath.Join(t.TempDir(), "copy")
	freeze(t, pid)
	err = os.CopyFS(copied, os.DirFS(home))
	send(t, pid, syscall.SIGCONT)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	for i := range line {
		line[i] = strings.ReplaceAll(line[i], home, copied)
	}
	line = slices.DeleteFunc(line, func(arg string) bool { return strings.HasPrefix(arg, "--log-outputs") })
	if err := os.Chmod(line[0], 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return line[0], append(line[1:], "--log-outputs=stderr")
}

// TestFencedAgentStaysFenced fences a machine and asks its agent, also after a
// restart, to run the member again: it declines, and etcd does not run (F024).
func TestFencedAgentStaysFenced(t *testing.T) {
	t.Parallel()
	f := rig.NewFleet(t)
	controller := f.StartController()
	f.Apply("fenced")
	before := f.WaitReady("fenced")
	controller.Stop(t)
	w := watch(t, f, "fenced", nil)
	old := follower(t, before)
	m := f.Machine(old)
	ask := agentOf(t, f, before, m)
	seen, err := ask.Seen(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	wanted := *seen.Wanted
	if _, err := ask.PutMember(t.Context(), seen.Epoch, protocol.Wanted{Name: old, Fenced: true, Reason: "the test fences it"}); err != nil {
		t.Fatal(err)
	}
	agent, _ := f.Processes(m)
	declines := func() {
		t.Helper()
		rig.Eventually(t, rig.Timeout, "the fenced agent to decline and etcd to be stopped", func(ctx context.Context) error {
			var refused *agentclient.RefusedError
			if _, err := ask.PutMember(ctx, seen.Epoch, wanted); !errors.As(err, &refused) || refused.Code != protocol.CodeFenced {
				return fmt.Errorf("asked to run again it answers: %w", err)
			}
			if _, etcd := f.Processes(m); etcd != 0 {
				return fmt.Errorf("etcd is process %d", etcd)
			}
			return nil
		})
	}
	declines()
	send(t, agent, syscall.SIGKILL)
	rig.Eventually(t, rig.Timeout, "the agent to be started again", func(ctx context.Context) error {
		if now, _ := f.Processes(m); now != 0 && now != agent {
			return nil
		}
		return errors.Join(errors.New("it does not run"), f.Machines.Create(ctx, machineFor(m), nil))
	})
	declines()
	f.StartController()
	otherIdentity(t, before, f.WaitReady("fenced", old), old)
	w.check()
}

// agentOf is a client of a machine's agent as the controller has one.
func agentOf(t *testing.T, f *rig.Fleet, cluster *v1alpha1.EtcdCluster, m *v1alpha1.EtcdMachine) *agentclient.Client {
	t.Helper()
	a, err := credentials.Load(t.Context(), f.API.Client, cluster, true)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := a.Agent.IssuePair(pki.Leaf{Name: pki.ControllerName(string(cluster.UID)), Usage: pki.Client, Life: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var conf *tls.Config
	conf, err = pki.ClientTLS(certPEM, keyPEM, a.Agent.CertPEM(), func(cn string) error {
		if cn != pki.AgentName(string(m.UID)) {
			return fmt.Errorf("%q is not the agent of %s", cn, m.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return agentclient.New(m.Status.Address, conf)
}
