package rig

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Process is a child process of a test. It ends with the test at the latest.
type Process struct {
	PID  int
	Log  string // file with its output
	cmd  *exec.Cmd
	done chan struct{}
}

// StartProcess starts a program with its output in a file, which is shown if
// the test fails.
func StartProcess(t testing.TB, name string, env []string, program string, args ...string) *Process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), name+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	// It is ended by a signal of the test's choice and not with its context.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	p := &Process{PID: cmd.Process.Pid, Log: log.Name(), cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // its status is in cmd.ProcessState
	}()
	t.Cleanup(func() {
		p.Stop(t)
		if t.Failed() {
			t.Logf("%s, the end of its log:\n%s", name, Tail(p.Log))
		}
	})
	return p
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill(t testing.TB) { p.end(t, syscall.SIGKILL) }

// Stop sends SIGTERM and waits for the end.
func (p *Process) Stop(t testing.TB) { p.end(t, syscall.SIGTERM) }

func (p *Process) end(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal process %d: %v", p.PID, err)
	}
	<-p.done
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// State is how the process ended; only after Done.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Tail is the end of a file.
func Tail(path string) string {
	const most = 12_000
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err.Error()
	}
	if len(content) > most {
		content = content[len(content)-most:]
		content = content[bytes.IndexByte(content, '\n')+1:]
	}
	return string(content)
}
