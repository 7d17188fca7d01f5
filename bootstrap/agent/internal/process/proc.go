package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

var bootID = sync.OnceValues(func() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(raw)), err
})

var errEnded = errors.New("the process has ended")

// inspect reads what identifies a process. Of a zombie it says errEnded too.
func inspect(pid int) (Process, error) {
	boot, err := bootID()
	if err != nil {
		return Process{}, err
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, err
	}
	// The second field is the command in parentheses and may hold anything.
	_, rest, ok := cutLast(raw, []byte(") "))
	fields := bytes.Fields(rest)
	const state, threads, starttime = 0, 17, 19 // fields 3, 20 and 22 of proc(5)
	if !ok || len(fields) <= starttime {
		return Process{}, fmt.Errorf("/proc/%d/stat is not understood", pid)
	}
	ticks, err := strconv.ParseUint(string(fields[starttime]), 10, 64)
	if err != nil {
		return Process{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	found := Process{PID: pid, Ticks: ticks, Boot: boot, Since: startedAt(pid)}
	// The first thread may be a zombie while others still end, and hold files
	// and ports.
	if s := fields[state][0]; s == 'X' || s == 'Z' && (string(fields[threads]) == "0" || string(fields[threads]) == "1") {
		return found, errEnded
	}
	return found, nil
}

// startedAt is close enough for a report: /proc/PID appears with the process.
func startedAt(pid int) time.Time {
	info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func cutLast(raw, sep []byte) (before, after []byte, found bool) {
	i := bytes.LastIndex(raw, sep)
	if i < 0 {
		return raw, nil, false
	}
	return raw[:i], raw[i+len(sep):], true
}

func parsePID(name string) (int, bool) {
	pid, err := strconv.Atoi(name)
	return pid, err == nil && pid > 0
}

// hasArgument finds both forms, "--name=value" and "--name value".
func hasArgument(pid int, argument string) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	name, value, _ := strings.Cut(argument, "=")
	args := strings.Split(string(raw), "\x00")
	for i, arg := range args {
		if arg == argument || arg == name && i+1 < len(args) && args[i+1] == value {
			return true
		}
	}
	return false
}
