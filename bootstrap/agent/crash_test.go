package agent_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// TestCrashWhileFounding ends the agent, alone or with its etcd, as soon as the
// disk shows that a step of the founding was made. It must always come to one
// etcd that serves (F027).
func TestCrashWhileFounding(t *testing.T) {
	for name, sign := range map[string]string{
		"wanted":           "state.json",
		"data directory":   "etcd",
		"etcd is starting": "etcd.log",
		"etcd is noted":    "etcd.pid",
		"member begun":     "etcd/member",
		"database made":    "etcd/member/snap/db",
		"log made":         "etcd/member/wal",
	} {
		for _, both := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "", true: ", etcd too"}[both], func(t *testing.T) {
				t.Parallel()
				h := newCluster(t).newHost(t, "m1").prefetch(newest)
				cmd := h.spawn()
				h.enrol()
				h.put(h.wanted(newest))
				at := filepath.Join(h.opts.Dir, sign)
				spinUntil(t, name, func() bool { _, err := os.Stat(at); return err == nil })
				must(t, cmd.Process.Kill())
				if both {
					for _, pid := range h.etcds(t) {
						must(t, syscall.Kill(pid, syscall.SIGKILL))
					}
				}
				_ = cmd.Wait()
				h.spawn()
				s := h.awaitServing()
				if pids := h.etcds(t); len(pids) != 1 || pids[0] != s.Process.PID {
					t.Errorf("processes %v, seen %+v", pids, s.Process)
				}
				h.put(h.wanted(newest)) // and again is no second founding
				h.await("it to stay", func(s protocol.Seen) bool { return s.Probe.Serving && s.Refusal == "" })
			})
		}
	}
}

// spinUntil looks without a pause, to be there when something is new.
func spinUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !pollEvery(1, done) {
		t.Fatalf("waited in vain for %s", what)
	}
}

// etcds are the processes that run on the host's directory.
func (h *host) etcds(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && h.isEtcd(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
