package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// same asserts that etcd is the very process it was.
func same(t *testing.T, before, after protocol.Seen) {
	t.Helper()
	if before.Process.PID == 0 || before.Process.PID != after.Process.PID || after.Process.Starts != before.Process.Starts ||
		!before.Process.Since.Equal(after.Process.Since) || after.Process.Version != newest {
		t.Errorf("etcd was\n%+v\nand is\n%+v", before.Process, after.Process)
	}
}

func TestKilledAgentLeavesEtcdRunning(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").prefetch(newest)
	first := h.spawn()
	h.enrol().put(h.wanted(newest))
	before := h.awaitServing()
	for range 2 {
		must(t, first.Process.Kill())
		_ = first.Wait()
		if !h.isEtcd(before.Process.PID) {
			t.Fatal("etcd ended with its agent")
		}
		first = h.spawn()
		same(t, before, h.awaitServing())
	}
	// It is still looked after.
	w := h.wanted(newest)
	w.Run = false
	h.put(w)
	h.awaitStopped()
}

func TestStoppedAgentLeavesEtcdRunning(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").prefetch(newest).start().enrol()
	h.put(h.wanted(newest))
	before := h.awaitServing()
	h.stop()
	h.start()
	same(t, before, h.awaitServing())
	// A crash right after the start leaves no note, and another agent's note
	// may be of a process that is long gone.
	h.stop()
	note := filepath.Join(h.opts.Dir, "etcd.pid")
	must(t, os.Remove(note))
	h.start()
	if s := h.awaitServing(); s.Process.PID != before.Process.PID || s.Process.Starts != 1 || s.Process.Version != newest {
		t.Errorf("etcd was %+v and is %+v", before.Process, s.Process)
	}
	h.stop()
	raw, err := os.ReadFile(note)
	must(t, err)
	stale := strings.Replace(string(raw), strconv.Itoa(before.Process.PID), strconv.Itoa(os.Getpid()), 1)
	must(t, os.WriteFile(note, []byte(stale), 0o600))
	h.start()
	if s := h.awaitServing(); s.Process.PID != before.Process.PID || s.Process.Starts != 1 {
		t.Errorf("etcd was %+v and is %+v", before.Process, s.Process)
	}
}

func TestOnlyOneAgentPerDirectory(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").start()
	if err := agent.Run(t.Context(), h.opts); err == nil || !strings.Contains(err.Error(), "lock") {
		t.Errorf("a second agent: %v", err)
	}
}

func TestEtcdThatEndsIsStartedAgain(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").prefetch(newest).start().enrol()
	h.put(h.wanted(newest))
	before := h.awaitServing()
	must(t, syscall.Kill(before.Process.PID, syscall.SIGKILL))
	after := h.await("etcd to serve again", func(s protocol.Seen) bool {
		return s.Probe.Serving && s.Process.PID != before.Process.PID
	})
	if after.Process.Starts != 2 || !strings.HasPrefix(after.Process.Exit, "killed by SIGKILL") || after.Data.MemberID != before.Data.MemberID {
		t.Errorf("seen: %+v", after)
	}
	// Its second start was on data that is there, so not a founding (F027).
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", after.Process.PID))
	must(t, err)
	if !strings.Contains(string(cmdline), "--initial-cluster-state=existing") {
		t.Errorf("started with %q", strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
}

func TestSaysWhyEtcdEnds(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").prefetch(newest).start().enrol()
	w := h.wanted(newest)
	w.Found = false // nobody is there to join
	w.InitialCluster = append(w.InitialCluster, protocol.Peer{Name: "m2", URL: "https://127.0.0.9:2380"})
	h.put(w)
	s := h.await("etcd to be started over and over", func(s protocol.Seen) bool { return s.Process.Starts > 1 && s.Process.Exit != "" })
	if !strings.HasPrefix(s.Process.Exit, "exit status 1: ") || s.Data.State != protocol.DataEmpty {
		t.Errorf("exit %q, data %+v", s.Process.Exit, s.Data)
	}
	// What is declared anew counts at the next start, without a wait (F028).
	h.put(h.wanted(newest))
	h.awaitServing()
}

func TestHungEtcdIsKilled(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1", func(o *agent.Options) { o.StopDeadline = 2 * time.Second }).prefetch(newest).start().enrol()
	w := h.wanted(newest)
	h.put(w)
	before := h.awaitServing()
	must(t, syscall.Kill(before.Process.PID, syscall.SIGSTOP))
	// It accepts connections and answers none (F170).
	h.await("the probe to fail", func(s protocol.Seen) bool { return !s.Probe.Serving && s.Probe.Error != "" && s.Process.Running })
	w.Run = false
	h.put(w)
	if s := h.awaitStopped(); !strings.HasPrefix(s.Process.Exit, "killed by SIGKILL") {
		t.Errorf("exit %q", s.Process.Exit)
	}
	w.Run = true
	h.put(w)
	if s := h.awaitServing(); s.Data.MemberID != before.Data.MemberID {
		t.Errorf("member %s became %s", before.Data.MemberID, s.Data.MemberID)
	}
	w.Run = false
	h.put(w)
	if s := h.awaitStopped(); strings.Contains(s.Process.Exit, "SIGKILL") { // SIGTERM was enough
		t.Errorf("exit %q", s.Process.Exit)
	}
}

func TestRotatesEtcdsLog(t *testing.T) {
	t.Parallel()
	const limit = 4 << 10
	h := newCluster(t).newHost(t, "m1", func(o *agent.Options) { o.LogLimit, o.RetryMax = limit, time.Second }).prefetch(newest).start().enrol()
	h.put(h.wanted(newest))
	before := h.awaitServing()
	log := filepath.Join(h.opts.Dir, "etcd.log")
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return -1
		}
		return info.Size()
	}
	eventually(t, "the log to be rotated", func() bool { return size(log+".1") > limit && size(log) <= limit })
	// More starts, more log: never more than three are kept.
	for rounds := 0; rounds < 20 && size(log+".3") < 0; rounds++ {
		pid := h.awaitServing().Process.PID
		must(t, syscall.Kill(pid, syscall.SIGTERM))
		h.await("another etcd", func(s protocol.Seen) bool { return s.Probe.Serving && s.Process.PID != pid })
		eventually(t, "the log to be rotated", func() bool { return size(log) <= limit })
	}
	eventually(t, "the log to be rotated once more", func() bool {
		f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		_, err = f.WriteString(strings.Repeat("a long line ", 1000) + "\n")
		must(t, err)
		must(t, f.Close())
		raw, err := os.ReadFile(log + ".3")
		return err == nil && strings.Contains(string(raw), "a long line")
	})
	if size(log+".4") >= 0 {
		t.Error("a fourth is kept")
	}
	// etcd goes on writing where the file begins now: no hole before it.
	raw, err := os.ReadFile(log)
	must(t, err)
	if strings.Contains(string(raw), "\x00") {
		t.Error("etcd writes behind a hole")
	}
	if s := h.seen(); s.Data.MemberID != before.Data.MemberID {
		t.Errorf("seen: %+v", s)
	}
}

func TestWrongChecksumIsSeen(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").start().enrol()
	w := h.wanted(newest)
	wrong := strings.Repeat("0", 64)
	w.SHA256 = map[string]string{"amd64": wrong, "arm64": wrong}
	h.put(w)
	s := h.await("the release to fail", func(s protocol.Seen) bool { return s.Release.State == protocol.ReleaseFailed && s.Refusal != "" })
	if !strings.Contains(s.Release.Message, wrong) || s.Process.Starts != 0 {
		t.Errorf("seen: %+v", s)
	}
	w.SHA256 = nil
	h.put(w)
	h.awaitServing()
}
