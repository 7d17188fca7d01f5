package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// program copies a real program into a folder that stands for releases, so
// that a process can be told by the file it runs.
func program(t *testing.T, name string) (releases, path string) {
	t.Helper()
	raw, err := os.ReadFile("/bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	releases = t.TempDir()
	path = filepath.Join(releases, name)
	if err := os.WriteFile(path, raw, 0o700); err != nil {
		t.Fatal(err)
	}
	return releases, path
}

func awaitEnd(t *testing.T, p Process) (exit string) {
	t.Helper()
	await(t, "the process to end", func() bool {
		var running bool
		running, exit = p.Poll()
		return !running
	})
	return exit
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-limit.C:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

func TestStartFindSignal(t *testing.T) {
	t.Setenv("ETCD_NAME", "would contradict the flags")
	t.Setenv("GOMEMLIMIT", "1GiB")
	releases, bash := program(t, "bash")
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	marker := "--data-dir=" + dir
	p, err := Start(bash, []string{"-c", "env; echo ready; while :; do read -t 60 <> <(:); done", marker}, dir, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Signal(unix.SIGKILL) })
	if running, exit := p.Poll(); !running {
		t.Fatalf("ended at once: %s", exit)
	}
	await(t, "its output", func() bool {
		out, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(out), "ready")
	})
	if session, err := unix.Getsid(p.PID); err != nil || session != p.PID {
		t.Errorf("session %d, %v: it would get the terminal's signals", session, err)
	}
	found, exe, ok := Find(releases, marker)
	if !ok || found.PID != p.PID || found.Ticks != p.Ticks || exe != bash {
		t.Errorf("found %+v at %s, %v", found, exe, ok)
	}
	if _, _, ok := Find(t.TempDir(), marker); ok {
		t.Error("found below another folder")
	}
	if _, _, ok := Find(releases, marker+"x"); ok {
		t.Error("found by another argument")
	}

	// A PID that came to be another's is never signalled.
	another := p
	another.Ticks++
	if running, _ := another.Poll(); running {
		t.Error("another process with the PID counts as running")
	}
	if err := another.Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	if running, exit := p.Poll(); !running {
		t.Fatalf("a signal to another process hit: %s", exit)
	}

	if err := p.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := awaitEnd(t, p); exit != "killed by SIGKILL" {
		t.Errorf("exit %q", exit)
	}
	if err := p.Signal(unix.SIGTERM); err != nil {
		t.Errorf("a signal to what has ended: %v", err)
	}
	out, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(out), "ETCD_NAME") || !strings.Contains(string(out), "GOMEMLIMIT=1GiB") {
		t.Errorf("its output, %v:\n%s", err, out)
	}
}

func TestExitStatus(t *testing.T) {
	_, bash := program(t, "bash")
	dir := t.TempDir()
	p, err := Start(bash, []string{"-c", "echo bad >&2; exit 7"}, dir, filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if exit := awaitEnd(t, p); exit != "exit status 7" {
		t.Errorf("exit %q", exit)
	}
	if out, err := os.ReadFile(filepath.Join(dir, "log")); string(out) != "bad\n" {
		t.Errorf("output %q, %v", out, err)
	}
	if running, exit := p.Poll(); running || exit != "gone" {
		t.Errorf("asked again: %v %q", running, exit)
	}
	if _, err := Start(filepath.Join(dir, "nothing"), nil, dir, filepath.Join(dir, "log")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("starting what is not there: %v", err)
	}
}
