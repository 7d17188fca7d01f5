// Package process starts etcd as a process that outlives whoever started it,
// finds it again, and stops it. Nothing waits on it with a goroutine or a pipe,
// so an agent that ends leaves no trace in it (F121). It may import the standard
// library and x/sys only; what it reads of a process comes from /proc.
package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one run of etcd, told from all others by boot, PID and start time.
type Process struct {
	PID   int       `json:"pid"`
	Ticks uint64    `json:"ticks"` // start time as /proc/PID/stat has it
	Boot  string    `json:"boot"`
	Since time.Time `json:"since"`
	// Version is that of the release started.
	Version string `json:"version"`
}

// inherited are the only variables that etcd gets: any ETCD_… of the agent's
// surroundings would contradict the flags.
var inherited = []string{"PATH", "HOME", "TMPDIR", "TZ", "GOMAXPROCS", "GOMEMLIMIT"}

// Start runs a command in a session of its own, with no input and its output
// appended to the file at log.
func Start(path string, args []string, dir, log string) (Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return Process{}, fmt.Errorf("starting %s: %w", path, err)
	}
	defer func() { _ = null.Close() }()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return Process{}, fmt.Errorf("starting %s: %w", path, err)
	}
	defer func() { _ = out.Close() }()
	proc, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
		Dir:   dir,
		Env:   environment(),
		Files: []*os.File{null, out, out},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return Process{}, fmt.Errorf("starting etcd: %w", err)
	}
	pid := proc.Pid
	// Never Wait: Poll reaps it, whichever agent is its parent.
	_ = proc.Release()
	// It may have ended already, which Poll tells with its exit status.
	started, err := inspect(pid)
	if err != nil && !errors.Is(err, errEnded) {
		return Process{}, fmt.Errorf("starting %s: it cannot be seen in /proc: %w", path, err)
	}
	started.Since = time.Now()
	return started, nil
}

func environment() []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Poll says whether the process still runs and, when it does not, how it ended.
// The end of another's child can't be told: "gone".
func (p Process) Poll() (running bool, exit string) {
	var status unix.WaitStatus
	reaped, err := unix.Wait4(p.PID, &status, unix.WNOHANG, nil)
	switch {
	case err == nil && reaped == p.PID && status.Signaled():
		return false, "killed by " + unix.SignalName(status.Signal())
	case err == nil && reaped == p.PID:
		return false, fmt.Sprintf("exit status %d", status.ExitStatus())
	}
	child := err == nil
	now, err := inspect(p.PID)
	switch {
	case now.Ticks != p.Ticks || now.Boot != p.Boot:
		return false, "gone"
	case err == nil, child && errors.Is(err, errEnded): // not to be reaped before all its threads are
		return true, ""
	}
	return false, "gone"
}

// Signal sends a signal to the process, if it is still this one.
func (p Process) Signal(sig unix.Signal) error {
	// The descriptor is opened first and what it refers to checked then, so
	// that a PID reused in between is never signalled.
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return gone(err)
	}
	defer func() { _ = unix.Close(fd) }()
	now, err := inspect(p.PID)
	if err != nil || now.Ticks != p.Ticks || now.Boot != p.Boot {
		return nil
	}
	return gone(unix.PidfdSendSignal(fd, sig, nil, 0))
}

func gone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// Find looks for a running process by the file it executes, which must be
// below releases, and by one argument. It finds what was started right before
// an agent crashed, too.
func Find(releases, argument string) (Process, string, bool) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return Process{}, "", false
	}
	for _, entry := range procs {
		pid, ok := parsePID(entry.Name())
		if !ok || !hasArgument(pid, argument) {
			continue
		}
		exe, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		if err != nil || !strings.HasPrefix(exe, releases+"/") {
			continue
		}
		found, err := inspect(pid)
		if err != nil {
			continue
		}
		return found, strings.TrimSuffix(exe, " (deleted)"), true
	}
	return Process{}, "", false
}
