package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	agentclient "github.com/etcdmanager/etcdmanager/bootstrap/agent/client"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/etcdmanager/act"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// TestDeposedController stops a controller in the midst of a replacement for
// longer than its lease lasts. Another takes over and finishes; the first, when
// it wakes, does nothing more and ends (F165, F166).
func TestDeposedController(t *testing.T) {
	f := rig.NewFleet(t)
	elected := []string{"--no-leader-election=false", "--leader-election-namespace", f.Namespace}
	first := f.StartController(elected...)
	f.Apply("leased")
	cluster := f.WaitReady("leased")
	second := f.StartController(elected...)
	waitLog(t, second, "Attempting to acquire leader lease")

	// The replacement comes to a stand halfway: no etcd can be fetched.
	patch(t, f, "leased", func(c *v1alpha1.EtcdCluster) { c.Spec.Release.Mirror = "file:///nowhere" })
	lost := cluster.Status.Leader
	f.Destroy(f.Machine(lost))
	waitOperation(t, f, "leased", plan.Join)
	if text := logOf(t, second); strings.Contains(text, "step=") {
		t.Errorf("the controller without the lease acted:\n%s", text)
	}
	before := record(t, f, "leased")
	stop(t, first)
	told := len(logOf(t, first))

	patch(t, f, "leased", func(c *v1alpha1.EtcdCluster) { c.Spec.Release.Mirror = "" })
	cluster = f.WaitReady("leased", lost)
	after := record(t, f, "leased")
	if after.Epoch <= before.Epoch {
		t.Errorf("the second controller acts in epoch %d, the first did in %d", after.Epoch, before.Epoch)
	}
	olderEpochRefused(t, f, cluster, after.Epoch)

	if err := syscall.Kill(first.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, rig.Timeout, "the deposed controller to end", ended(first))
	if code := first.State().ExitCode(); code <= 0 {
		t.Errorf("the deposed controller ended with status %d, want a failure", code)
	}
	if text := logOf(t, first)[told:]; strings.Contains(text, "changing the membership") {
		t.Errorf("the deposed controller went on:\n%s", text)
	}
	if ids := memberIDs(f.WaitReady("leased", lost)); !slices.Equal(ids, memberIDs(cluster)) {
		t.Errorf("members are %v, and were %v before the deposed controller woke", ids, memberIDs(cluster))
	}
	if final := record(t, f, "leased"); final.Epoch != after.Epoch || final.NextMachine != after.NextMachine {
		t.Errorf("the record is %+v, and was %+v before the deposed controller woke", final, after)
	}
}

// olderEpochRefused asks every agent for the very thing it does already, once
// in an epoch that is over and once in the present one.
func olderEpochRefused(t *testing.T, f *rig.Fleet, cluster *v1alpha1.EtcdCluster, epoch int64) {
	t.Helper()
	for _, member := range cluster.Status.Members {
		agent := agentOf(t, f, cluster, member.Machine)
		seen, err := agent.Seen(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = agent.PutMember(t.Context(), epoch-1, *seen.Wanted)
		var refused *agentclient.RefusedError
		if !errors.As(err, &refused) || refused.Code != protocol.CodeStaleEpoch {
			t.Errorf("a command of an older epoch to %s: %v, want it refused as %s", member.Machine, err, protocol.CodeStaleEpoch)
		}
		if _, err := agent.PutMember(t.Context(), epoch, *seen.Wanted); err != nil {
			t.Errorf("a command of the present epoch to %s: %v", member.Machine, err)
		}
	}
}

// agentOf is a client of a machine's agent as the controller has one.
func agentOf(t *testing.T, f *rig.Fleet, cluster *v1alpha1.EtcdCluster, machine string) *agentclient.Client {
	t.Helper()
	a, err := credentials.Load(t.Context(), f.API.Client, cluster, true)
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := a.Agent.IssuePair(pki.Leaf{Name: pki.ControllerName(string(cluster.UID)), Usage: pki.Client, Life: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	m := f.Machine(machine)
	var conf *tls.Config
	conf, err = pki.ClientTLS(certPEM, keyPEM, a.Agent.CertPEM(), func(cn string) error {
		if cn != pki.AgentName(string(m.UID)) {
			return fmt.Errorf("%q is not the agent of %s", cn, machine)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return agentclient.New(m.Status.Address, conf)
}

// stop freezes a process and returns when none of its threads runs any more.
func stop(t *testing.T, p *rig.Process) {
	t.Helper()
	if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// So that it can be ended however the test ends.
	t.Cleanup(func() {
		select {
		case <-p.Done():
		default:
			_ = syscall.Kill(p.PID, syscall.SIGCONT)
		}
	})
	rig.Eventually(t, rig.Timeout, "the process to stand still", func(context.Context) error {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
		if err != nil {
			return err
		}
		if !strings.Contains(string(raw), "\nState:\tT") {
			return fmt.Errorf("it runs")
		}
		return nil
	})
}

func ended(p *rig.Process) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-p.Done():
			return nil
		case <-ctx.Done():
			return fmt.Errorf("process %d runs", p.PID)
		}
	}
}

func record(t *testing.T, f *rig.Fleet, name string) v1alpha1.ClusterRecord {
	t.Helper()
	cluster, err := f.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := act.ReadRecord(cluster)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func waitOperation(t *testing.T, f *rig.Fleet, name string, kind plan.OperationKind) {
	t.Helper()
	rig.Eventually(t, rig.Patience, fmt.Sprintf("the operation %s on %s", kind, name), func(context.Context) error {
		if op := record(t, f, name).Operation; op == nil || op.Kind != string(kind) {
			return fmt.Errorf("the operation is %+v", op)
		}
		return nil
	})
}

func logOf(t *testing.T, p *rig.Process) string {
	t.Helper()
	raw, err := os.ReadFile(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func waitLog(t *testing.T, p *rig.Process, line string) {
	t.Helper()
	rig.Eventually(t, rig.Timeout, "the log to say "+line, func(context.Context) error {
		if !strings.Contains(logOf(t, p), line) {
			return fmt.Errorf("it does not")
		}
		return nil
	})
}

func memberIDs(cluster *v1alpha1.EtcdCluster) []string {
	var ids []string
	for _, m := range cluster.Status.Members {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}
