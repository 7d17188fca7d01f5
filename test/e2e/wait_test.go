package e2e

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcdmanager/etcdmanager/test/rig"
)

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		t.Fatal("the process to kill is not there")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

func waitPhase(t *testing.T, f *rig.Fleet, name, phase string) {
	t.Helper()
	rig.Eventually(t, rig.Patience, name+" to be "+phase, func(ctx context.Context) error {
		cluster, err := f.Get(ctx, name)
		if err != nil {
			return err
		}
		if cluster.Status.Phase != phase {
			return fmt.Errorf("phase %s", cluster.Status.Phase)
		}
		return nil
	})
}

func waitCondition(t *testing.T, f *rig.Fleet, name, kind, status string) (message string) {
	t.Helper()
	rig.Eventually(t, rig.Patience, fmt.Sprintf("%s of %s to be %s", kind, name, status), func(ctx context.Context) error {
		cluster, err := f.Get(ctx, name)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(cluster.Status.Conditions, kind)
		if c == nil || string(c.Status) != status {
			return fmt.Errorf("the condition is %v", c)
		}
		message = c.Message
		return nil
	})
	return message
}

// waitRestarted waits until a machine runs another etcd process.
func waitRestarted(t *testing.T, f *rig.Fleet, machine string, before int) {
	t.Helper()
	rig.Eventually(t, rig.Patience, "etcd on "+machine+" to run again", func(context.Context) error {
		if _, etcd := f.Processes(f.Machine(machine)); etcd == 0 || etcd == before {
			return fmt.Errorf("etcd is process %d, and was %d", etcd, before)
		}
		return nil
	})
}

// waitAgents waits until machines run other agents than before.
func waitAgents(t *testing.T, f *rig.Fleet, before map[string]int) {
	t.Helper()
	for machine, pid := range before {
		rig.Eventually(t, rig.Patience, "the agent of "+machine+" to run again", func(context.Context) error {
			if agent, _ := f.Processes(f.Machine(machine)); agent == 0 || agent == pid {
				return fmt.Errorf("the agent is process %d, and was %d", agent, pid)
			}
			return nil
		})
	}
}
