package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/machinetest"
)

const secret = `{"key":"very private"}`

var demo = machine.Machine{UID: "11112222-3333", Name: "demo-0", Namespace: "default", Cluster: "demo", ClusterUID: "c"}

// rig is a directory of machines and an actuator on it.
type rig struct {
	*testing.T
	*local.Actuator
	machinetest.Place

	dir string
	ctx context.Context
}

func newRig(t *testing.T) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), machinetest.Deadline)
	t.Cleanup(cancel)
	dir := t.TempDir()
	r := &rig{t, open(t, dir), machinetest.Place{Machines: filepath.Join(dir, "machines")}, dir, ctx}
	t.Cleanup(func() {
		if err := r.Delete(context.Background(), demo); err != nil {
			t.Errorf("delete at the end: %v", err)
		}
	})
	return r
}

func (r *rig) create() machine.Instance {
	r.Helper()
	before := r.Starts(r.T, demo)
	if err := r.Create(r.ctx, demo, []byte(secret)); err != nil {
		r.Fatal(err)
	}
	machinetest.Eventually(r.T, r.ctx, "the agent started", func() bool { return r.Starts(r.T, demo) > before })
	return r.observe()
}

// awaitStart waits until the agent that is there now has started.
func (r *rig) awaitStart() {
	r.Helper()
	machinetest.Eventually(r.T, r.ctx, "the agent started", func() bool { return r.Starts(r.T, demo) > 0 })
}

func (r *rig) observe() machine.Instance {
	r.Helper()
	i, err := r.Observe(r.ctx, demo)
	if err != nil {
		r.Fatal(err)
	}
	return i
}

func (r *rig) path(elements ...string) string {
	return filepath.Join(append([]string{r.Machines, demo.UID}, elements...)...)
}

// agentPID as the actuator wrote it down.
func (r *rig) agentPID() int {
	r.Helper()
	raw, err := os.ReadFile(r.path("agent.pid"))
	if err != nil {
		r.Fatal(err)
	}
	var p struct{ PID int }
	if err := json.Unmarshal(raw, &p); err != nil {
		r.Fatal(err)
	}
	return p.PID
}

func TestWhatIsOnDiskIsPrivate(t *testing.T) {
	r := newRig(t)
	r.create()
	for path, want := range map[string]os.FileMode{
		r.Machines: 0o700, r.path(): 0o700,
		r.path("bootstrap.json"): 0o600, r.path("machine.json"): 0o600, r.path("agent.log"): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
	raw, err := os.ReadFile(r.path("machine.json"))
	if err != nil {
		t.Fatal(err)
	}
	var written struct{ UID, Name, Namespace, Cluster, Address string }
	if err := json.Unmarshal(raw, &written); err != nil {
		t.Fatal(err)
	}
	want := struct{ UID, Name, Namespace, Cluster, Address string }{
		demo.UID, demo.Name, demo.Namespace, demo.Cluster, r.observe().Addresses[0],
	}
	if written != want {
		t.Errorf("machine.json says %+v, want %+v", written, want)
	}
}

// The agent is nobody's child in spirit: no terminal and no pipe ties it to the
// controller (F121), nor does it see what the controller may.
func TestAgentIsDetached(t *testing.T) {
	t.Setenv("KUBECONFIG", "/management/kubeconfig")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "very private")
	r := newRig(t)
	r.create()
	pid := r.agentPID()
	if session, err := unix.Getsid(pid); err != nil || session != pid {
		t.Errorf("the agent is in session %d, %v; want its own, %d", session, err, pid)
	}
	for fd, want := range map[string]string{"0": os.DevNull, "1": r.path("agent.log"), "2": r.path("agent.log")} {
		if got, err := os.Readlink(filepath.Join("/proc", itoa(pid), "fd", fd)); err != nil || got != want {
			t.Errorf("file %s of the agent is %s, %v; want %s", fd, got, err, want)
		}
	}
	for _, file := range []string{"environ", "cmdline"} {
		raw, err := os.ReadFile(filepath.Join("/proc", itoa(pid), file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte("KUBECONFIG")) || bytes.Contains(raw, []byte("very private")) {
			t.Errorf("%s of the agent has what is not its own", file)
		}
	}
}

// The pid file may name a PID that somebody else has by now.
func TestPIDFileOfAnother(t *testing.T) {
	r := newRig(t)
	r.create()
	machinetest.Kill(t, r.agentPID())
	raw, err := os.ReadFile(r.path("agent.pid"))
	if err != nil {
		t.Fatal(err)
	}
	reused := bytes.Replace(raw, []byte(itoa(r.agentPID())), []byte(itoa(os.Getpid())), 1)
	for name, content := range map[string][]byte{"reused": reused, "torn": raw[:len(raw)/2], "empty": nil} {
		if err := os.WriteFile(r.path("agent.pid"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if i := r.observe(); i.State != machine.Stopped {
			t.Errorf("%s: the machine is %s, want Stopped", name, i.State)
		}
	}
	r.create()
	if starts := r.Starts(t, demo); starts != 2 {
		t.Errorf("%d starts, want 2", starts)
	}
}

// A crash between the start of the agent and the file must not start another.
func TestAgentWithoutPIDFile(t *testing.T) {
	r := newRig(t)
	r.create()
	if err := os.Remove(r.path("agent.pid")); err != nil {
		t.Fatal(err)
	}
	if i := r.observe(); i.State != machine.Running {
		t.Errorf("the machine is %s, want Running", i.State)
	}
	if err := r.Create(r.ctx, demo, []byte(secret)); err != nil {
		t.Fatal(err)
	}
	if got := r.PIDs(t, demo); len(got) != 2 {
		t.Errorf("processes %d, want one agent and one etcd", got)
	}
	if err := r.Delete(r.ctx, demo); err != nil {
		t.Fatal(err)
	}
	if left := r.Remains(t, demo); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// The agent dies and etcd lives: the machine is stopped, its etcd is not, and
// the next agent finds it running.
func TestAgentDiesAlone(t *testing.T) {
	r := newRig(t)
	before := r.create()
	pids, agent := r.PIDs(t, demo), r.agentPID()
	machinetest.Kill(t, agent)
	if i := r.observe(); i.State != machine.Stopped {
		t.Errorf("the machine is %s, want Stopped", i.State)
	}
	after := r.create()
	if !slices.Equal(after.Addresses, before.Addresses) {
		t.Errorf("address %v, was %v", after.Addresses, before.Addresses)
	}
	for _, pid := range pids {
		if pid != agent && !slices.Contains(r.PIDs(t, demo), pid) {
			t.Errorf("etcd, process %d, was ended with the agent", pid)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	for _, port := range []string{"2378", "2379", "2380"} {
		r := newRig(t)
		first := r.create().Addresses[0]
		if err := r.Delete(r.ctx, demo); err != nil {
			t.Fatal(err)
		}
		release := listen(t, first+":"+port)
		if second := r.create().Addresses[0]; second == first {
			t.Errorf("%s was chosen while its port %s is in use", second, port)
		}
		release()
	}
}

// An address is the machine's for life: others wait or are waited for.
func TestAddressTakenWhileStopped(t *testing.T) {
	r := newRig(t)
	address := r.create().Addresses[0]
	r.Stop(t, demo)
	release := listen(t, address+":2378")
	if err := r.Create(r.ctx, demo, []byte(secret)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("create: %v, want that its address is in use", err)
	}
	release()
	if i := r.create(); i.Addresses[0] != address {
		t.Errorf("address %s, was %s", i.Addresses[0], address)
	}
}

func listen(t *testing.T, address string) (release func()) {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	release = func() { _ = l.Close() }
	t.Cleanup(release)
	return release
}

// A disk that is not mounted any more, or another one in its place, is no
// fleet without machines (F162).
func TestParentMissing(t *testing.T) {
	r := newRig(t)
	r.create()
	aside := r.Machines + ".aside"
	if err := os.Rename(r.Machines, aside); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.RemoveAll(r.Machines)
		if err := os.Rename(aside, r.Machines); err != nil {
			t.Error(err)
		}
	})
	check := func(what string) {
		t.Helper()
		if _, err := r.Observe(r.ctx, demo); err == nil || errors.Is(err, machine.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			t.Errorf("observe with the directory %s: %v", what, err)
		}
		if err := r.Delete(r.ctx, demo); err == nil {
			t.Errorf("delete with the directory %s says it is done", what)
		}
		if list, err := r.List(r.ctx); err == nil {
			t.Errorf("list with the directory %s: %v", what, list)
		}
	}
	check("gone")
	open(t, r.dir)
	check("that of another disk")
}

func TestDirectoryOfMachineRemovedByHand(t *testing.T) {
	r := newRig(t)
	etcd := r.create().Addresses[0] + ":2379"
	machinetest.Eventually(t, r.ctx, "etcd is up and writes no more", func() bool {
		c, err := net.Dial("tcp", etcd)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	if err := os.RemoveAll(r.path()); err != nil {
		t.Fatal(err)
	}
	if i := r.observe(); i.State != machine.Running || i.Message == "" {
		t.Errorf("%+v, want it running, with a message: its etcd still has members to serve", i)
	}
	if err := r.Create(r.ctx, demo, []byte(secret)); err == nil {
		t.Error("a second machine was made beside the processes of the first")
	}
	if err := r.Delete(r.ctx, demo); err != nil {
		t.Fatal(err)
	}
	if left := r.Remains(t, demo); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestHalfMadeAndHalfRemoved(t *testing.T) {
	r := newRig(t)
	for _, prefix := range []string{".new-", ".deleted-"} {
		if err := os.MkdirAll(filepath.Join(r.Machines, prefix+demo.UID, "agent"), 0o700); err != nil {
			t.Fatal(err)
		}
		if i := r.observe(); i.State != machine.Stopped || i.Message == "" {
			t.Errorf("%s: %+v, want Stopped with a message", prefix, i)
		}
		if list, err := r.List(r.ctx); err != nil || len(list) != 1 || list[0].UID != demo.UID {
			t.Errorf("%s: list %+v, %v; want it in there, to be deleted", prefix, list, err)
		}
		err := r.Create(r.ctx, demo, []byte(secret))
		if wanted := prefix == ".new-"; (err == nil) != wanted {
			t.Errorf("%s: create: %v", prefix, err)
		}
		if err := r.Delete(r.ctx, demo); err != nil {
			t.Fatal(err)
		}
		if left := r.Remains(t, demo); len(left) > 0 {
			t.Errorf("%s: left: %q", prefix, left)
		}
	}
}

func TestListAndUpdate(t *testing.T) {
	r := newRig(t)
	if list, err := r.List(r.ctx); err != nil || len(list) != 0 {
		t.Errorf("list of nothing: %v, %v", list, err)
	}
	r.create()
	changed := demo
	changed.Tags = map[string]string{"team": "storage"}
	if err := r.Update(r.ctx, changed); err != nil {
		t.Fatal(err)
	}
	list, err := open(t, r.dir).List(r.ctx)
	if err != nil || len(list) != 1 || list[0].Name != demo.Name || list[0].Tags["team"] != "storage" {
		t.Errorf("list: %+v, %v", list, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	r := newRig(t)
	strange := demo
	strange.Config = json.RawMessage(`{"size":"large"}`)
	if err := r.Create(r.ctx, strange, []byte(secret)); !errors.Is(err, machine.ErrInvalid) {
		t.Errorf("create with config: %v, want ErrInvalid", err)
	}
	if err := r.Create(r.ctx, demo, nil); !errors.Is(err, machine.ErrInvalid) {
		t.Errorf("create without bootstrap data: %v, want ErrInvalid", err)
	}
	if left := r.Remains(t, demo); len(left) > 0 {
		t.Errorf("a refused create left %q", left)
	}
}

// A directory reached through a link is the same directory: what /proc says is
// compared with its real path.
func TestDirectoryBehindLink(t *testing.T) {
	r := newRig(t)
	r.create()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(r.dir, link); err != nil {
		t.Fatal(err)
	}
	linked := open(t, link)
	if i, err := linked.Observe(r.ctx, demo); err != nil || i.State != machine.Running {
		t.Errorf("observe: %+v, %v", i, err)
	}
	if err := linked.Delete(r.ctx, demo); err != nil {
		t.Fatal(err)
	}
	if left := r.Remains(t, demo); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A machine is enrolled once: fresh bootstrap data reaches only one that was not.
func TestBootstrapDataOfStoppedMachine(t *testing.T) {
	r := newRig(t)
	r.create()
	const fresh = `{"key":"fresh"}`
	r.Stop(t, demo)
	if err := r.Create(r.ctx, demo, []byte(fresh)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(r.path("bootstrap.json")); err != nil || string(got) != fresh {
		t.Errorf("bootstrap data before the first contact: %s, %v", got, err)
	}
	r.Stop(t, demo)
	if err := os.Remove(r.path("bootstrap.json")); err != nil {
		t.Fatal(err)
	}
	if err := r.Create(r.ctx, demo, []byte(fresh)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.path("bootstrap.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an enrolled machine was given bootstrap data again: %v", err)
	}
}

func TestAgentThatCannotStart(t *testing.T) {
	r := newRig(t)
	broken, err := local.New(local.Options{Dir: r.dir, Executable: "/nonexistent/etcdmanager"})
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.Create(r.ctx, demo, []byte(secret)); err == nil || strings.Contains(err.Error(), "very private") {
		t.Errorf("create: %v, want an error without secrets", err)
	}
	before := r.observe()
	if before.State != machine.Stopped || len(before.Addresses) != 1 {
		t.Errorf("%+v, want Stopped, with its address", before)
	}
	if after := r.create(); after.Addresses[0] != before.Addresses[0] {
		t.Errorf("address %s, was %s", after.Addresses[0], before.Addresses[0])
	}
}

func TestLogHasNoBootstrapData(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r.Actuator, err = local.New(local.Options{
		Dir: r.dir, Executable: executable, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.create()
	if !strings.Contains(log.String(), "machine="+demo.Name) || strings.Contains(log.String(), "very private") {
		t.Errorf("log: %s", &log)
	}
}
