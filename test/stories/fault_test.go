package stories

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// send signals a process that the test has found on one of its machines.
func send(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if pid == 0 {
		t.Fatalf("the process to send %s is not there", signal)
	}
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

// freeze stops a process and returns when none of its threads runs.
func freeze(t *testing.T, pid int) {
	t.Helper()
	send(t, pid, syscall.SIGSTOP)
	rig.Eventually(t, rig.Timeout, fmt.Sprintf("process %d to stand still", pid), func(context.Context) error {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return err
		}
		if !strings.Contains(string(raw), "\nState:\tT") {
			return errors.New("it runs")
		}
		return nil
	})
}

// patch changes a cluster, whoever else changes it meanwhile.
func patch(t *testing.T, f *rig.Fleet, name string, change func(*v1alpha1.EtcdCluster)) {
	t.Helper()
	cluster, err := f.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	before := cluster.DeepCopy()
	change(cluster)
	if err := f.API.Patch(t.Context(), cluster, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// replace asks for a machine's replacement.
func replace(t *testing.T, f *rig.Fleet, machine string) {
	t.Helper()
	m := f.Machine(machine)
	before := m.DeepCopy()
	m.Annotations = map[string]string{v1alpha1.AnnotationReplace: ""}
	if err := f.API.Patch(t.Context(), m, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// describe is what `kubectl describe` shows a user of a cluster, with single
// blanks.
func describe(t *testing.T, f *rig.Fleet, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, rig.Kubectl(t), "describe", "etcdcluster", "-n", f.Namespace, name)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.API.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl describe: %v\n%s", err, out)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

// follower is a member's machine that does not lead.
func follower(t *testing.T, cluster *v1alpha1.EtcdCluster) string {
	t.Helper()
	for _, m := range cluster.Status.Members {
		if m.Machine != cluster.Status.Leader {
			return m.Machine
		}
	}
	t.Fatal("every member leads")
	return ""
}
