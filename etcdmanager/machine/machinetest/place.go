package machinetest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// Place is a directory of machines that are local processes, with a folder
// named by the UID for each and the agent's directory in its folder agent. It
// gives a Driver its eyes.
type Place struct {
	Machines string
}

// Starts is Driver.Starts.
func (p Place) Starts(t *testing.T, m machine.Machine) int {
	t.Helper()
	starts, err := os.ReadFile(filepath.Join(p.Machines, m.UID, "agent", startsFile))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(starts, []byte("\n"))
}

// Stop is Driver.Stop. It kills the whole machine, as a power cut does.
func (p Place) Stop(t *testing.T, m machine.Machine) {
	t.Helper()
	for _, pid := range p.PIDs(t, m) {
		Kill(t, pid)
	}
}

// Kill kills a process and waits until it has ended.
func Kill(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
		t.Fatalf("kill process %d: %v", pid, err)
	}
	Eventually(t, t.Context(), "process "+strconv.Itoa(pid)+" ended", func() bool { return !Alive(pid) })
}

// Blind is Driver.Blind: the directory is as empty as the mount point of a disk
// that is not there.
func (p Place) Blind(t *testing.T) (restore func()) {
	t.Helper()
	aside := p.Machines + ".unmounted"
	if err := os.Rename(p.Machines, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.Machines, 0o700); err != nil {
		t.Fatal(err)
	}
	done := false
	restore = func() {
		if done {
			return
		}
		done = true
		if err := os.Remove(p.Machines); err != nil {
			t.Errorf("the empty directory was written to: %v", err)
			return
		}
		if err := os.Rename(aside, p.Machines); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(restore)
	return restore
}

// Remains is Driver.Remains.
func (p Place) Remains(t *testing.T, m machine.Machine) []string {
	t.Helper()
	entries, err := os.ReadDir(p.Machines)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		if strings.Contains(e.Name(), m.UID) {
			left = append(left, e.Name())
		}
	}
	for _, pid := range p.PIDs(t, m) {
		left = append(left, "process "+strconv.Itoa(pid))
	}
	return left
}

// PIDs of all processes that have to do with a machine.
func (p Place) PIDs(t *testing.T, m machine.Machine) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(line, []byte(filepath.Join(p.Machines, m.UID)+"/")) && Alive(pid) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// Alive says whether anything of a process is left but its exit status.
func Alive(pid int) bool {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	rest := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	// A dead first thread with others is not the end: they hold its ports.
	return len(rest) > 17 && (rest[0] != "Z" && rest[0] != "X" || rest[17] > "1")
}
