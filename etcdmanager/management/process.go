package management

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process identifies one process for good: numbers of processes are reused,
// but not with the same start time since the same boot.
type process struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // clock ticks since boot, as in /proc/PID/stat
	Boot  string `json:"boot"`
}

// identify describes a running process. A zombie counts as gone.
func identify(pid int) (process, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	// The second field is the command's name in parentheses and may hold
	// anything; what follows its last parenthesis is safe to split.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	const state, start = 0, 19
	if len(fields) <= start || fields[state] == "Z" {
		return process{}, fmt.Errorf("look at process %d: %w", pid, os.ErrNotExist)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	return process{PID: pid, Start: fields[start], Boot: strings.TrimSpace(string(boot))}, nil
}

// remember writes a process down so that it can be found after a crash.
func remember(path string, pid int) error {
	p, err := identify(pid)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("remember process %d: %w", pid, err)
	}
	return writePrivate(path, raw)
}

// recall reads what remember wrote. It answers false for a process that does
// not run any more, and for a file that says nothing.
func recall(path string) (process, bool) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return process{}, false
	}
	var p process
	if err := json.Unmarshal(raw, &p); err != nil || p.PID <= 0 {
		return process{}, false
	}
	now, err := identify(p.PID)
	return p, err == nil && now == p
}

// end stops a process that need not be a child: SIGTERM, then SIGKILL when the
// grace is over. It returns when the process is gone.
func (p process) end(ctx context.Context, grace time.Duration) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop process %d: %w", p.PID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	// The number may have passed on before the descriptor was opened.
	if now, err := identify(p.PID); err != nil || now != p {
		return nil
	}
	gentle, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := signalAndWait(gentle, fd, unix.SIGTERM); err == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stop process %d: %w", p.PID, err)
	}
	if err := signalAndWait(ctx, fd, unix.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	return nil
}

func signalAndWait(ctx context.Context, fd int, signal syscall.Signal) error {
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s: %w", signal, err)
	}
	for {
		const slice = 100 // milliseconds between looks at ctx
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, slice)
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for its end: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// endLeftover stops the process that an earlier run left behind, if any, and
// forgets it.
func endLeftover(ctx context.Context, pidFile string, grace time.Duration) error {
	if p, running := recall(pidFile); running {
		if err := p.end(ctx, grace); err != nil {
			return err
		}
	}
	if err := os.Remove(pidFile); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("forget a process: %w", err)
	}
	return nil
}

// String is for messages.
func (p process) String() string { return "process " + strconv.Itoa(p.PID) }
