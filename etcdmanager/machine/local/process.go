package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pollInterval is how often a lock or an ending process is looked at.
const pollInterval = 20 * time.Millisecond

// process is one process and no other: PIDs are used again, a PID together
// with its start time and the boot it is counted from is not.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot
	Boot  string `json:"boot"`
}

// stat is the part of /proc/PID/stat that matters here.
type stat struct {
	state   string
	parent  int
	threads int
	start   uint64
}

// ended says that nothing of the process is left but its exit status. A dead
// first thread alone does not say so: others may still hold files and ports.
func (s stat) ended() bool {
	return (s.state == "Z" || s.state == "X") && s.threads <= 1
}

func bootID() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot's identity: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

func readStat(pid int) (stat, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	// The second field is the command in parentheses, which may hold anything.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("/proc/%d/stat has too few fields", pid)
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return stat{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	threads, err := strconv.Atoi(fields[17])
	if err != nil {
		return stat{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return stat{fields[0], parent, threads, start}, nil
}

// identify makes a PID that is in use now into a process.
func identify(pid int) (process, error) {
	boot, err := bootID()
	if err != nil {
		return process{}, err
	}
	st, err := readStat(pid)
	if err != nil {
		return process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return process{pid, st.start, boot}, nil
}

// running says whether this very process still runs. One that ended and is a
// child of ours is reaped.
func (p process) running() (bool, error) {
	if p.PID <= 0 {
		return false, nil
	}
	boot, err := bootID()
	if err != nil {
		return false, err
	}
	st, err := readStat(p.PID)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at process %d: %w", p.PID, err)
	}
	if boot != p.Boot || st.start != p.Start {
		return false, nil
	}
	if !st.ended() {
		return true, nil
	}
	if st.parent == os.Getpid() {
		_, _ = unix.Wait4(p.PID, nil, unix.WNOHANG, nil)
	}
	return false, nil
}

// signal reaches this process or none: the handle is taken first and holds on
// to whoever has the PID, then that one's identity is compared.
func (p process) signal(sig syscall.Signal) error {
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	defer handle.Release() //nolint:errcheck // nothing to lose
	running, err := p.running()
	if err != nil || !running {
		return err
	}
	if err := handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

// end stops processes, with SIGTERM first, and returns when none runs.
func end(ctx context.Context, processes []process, grace time.Duration) error {
	patience := time.NewTimer(grace)
	defer patience.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for _, p := range processes {
		if err := p.signal(unix.SIGTERM); err != nil {
			return err
		}
	}
	for {
		left, err := stillRunning(processes)
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for process %d to end: %w", left[0].PID, ctx.Err())
		case <-patience.C:
			for _, p := range left {
				if err := p.signal(unix.SIGKILL); err != nil {
					return err
				}
			}
		case <-tick.C:
		}
	}
}

func stillRunning(processes []process) ([]process, error) {
	var left []process
	for _, p := range processes {
		running, err := p.running()
		if err != nil {
			return nil, err
		}
		if running {
			left = append(left, p)
		}
	}
	return left, nil
}

// processesOf finds what runs for the machine in a directory, however it was
// started: programs that lie in it, and those told on their command line to
// keep their data in it. Somebody's editor or pager in there is left alone.
func processesOf(dir string) (agents, others []process, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, nil, fmt.Errorf("list the processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		arguments := commandLine(pid)
		isAgent := keepsDataIn(arguments, filepath.Join(dir, agentDir), "dir") && slices.Contains(arguments, "agent")
		if !isAgent && !keepsDataIn(arguments, dir, "dir", "data-dir") && !runsFrom(pid, arguments, dir) {
			continue
		}
		p, err := identify(pid)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // ended meanwhile
		}
		if err != nil {
			return nil, nil, err
		}
		if isAgent {
			agents = append(agents, p)
		} else {
			others = append(others, p)
		}
	}
	return agents, others, nil
}

func commandLine(pid int) []string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(raw) == 0 {
		return nil // ended, or a kernel thread
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
}

func runsFrom(pid int, arguments []string, dir string) bool {
	if len(arguments) > 0 && under(arguments[0], dir) {
		return true
	}
	program, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	return err == nil && under(program, dir)
}

// keepsDataIn says whether one of the flags points to dir or below.
func keepsDataIn(arguments []string, dir string, flags ...string) bool {
	for i, argument := range arguments {
		name, value, joined := strings.Cut(argument, "=")
		if !strings.HasPrefix(name, "-") || !slices.Contains(flags, strings.TrimLeft(name, "-")) {
			continue
		}
		if !joined && i+1 < len(arguments) {
			value = arguments[i+1]
		}
		if under(value, dir) {
			return true
		}
	}
	return false
}

func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
