// Package security tests what keeps strangers out, on real processes: what lies
// on a machine's disk, what processes and logs give away, and who is let in at
// each port.
package security

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.FromSlogHandler(slog.DiscardHandler)) // or clients complain that there is none
	os.Exit(rig.Main(m))
}

// fleet is two clusters that are Ready: main, three machines of the local
// actuator, and other, one machine of a program's.
type fleet struct {
	*rig.Fleet
	python      *rig.Python
	controller  *rig.Process
	clusters    []*v1alpha1.EtcdCluster // main, other
	authorities []credentials.Authorities
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{Fleet: rig.NewFleet(t), python: rig.NewPython(t)}
	f.controller = f.StartController("--exec-actuator", "python="+f.python.Script, "--log-level", "debug")
	f.Apply("main")
	f.Apply("other", func(c *v1alpha1.EtcdCluster) {
		c.Spec.Replicas, c.Spec.MachineTemplate.Actuator = 1, "python"
	})
	for _, name := range []string{"main", "other"} {
		cluster := f.WaitReady(name)
		a, err := credentials.Load(t.Context(), f.API.Client, cluster, true)
		if err != nil {
			t.Fatal(err)
		}
		f.clusters, f.authorities = append(f.clusters, cluster), append(f.authorities, a)
	}
	return f
}

// TestRunningClusters looks at two clusters from all sides. They are set up
// once, as nothing here changes them.
func TestRunningClusters(t *testing.T) {
	f := newFleet(t)
	disk := f.disk(t)
	keys := f.keys(t, disk)
	t.Run("Modes", func(t *testing.T) { modes(t, disk) })
	t.Run("NoWayToTheManagementCluster", func(t *testing.T) { noWayBack(t, f, disk) })
	t.Run("NoAuthorityOnDisk", func(t *testing.T) { noAuthority(t, f, disk) })
	t.Run("NoBootstrapIdentity", func(t *testing.T) { noBootstrap(t, f, disk) })
	t.Run("KeysStayWhereTheyAre", func(t *testing.T) { keysStay(t, disk, keys) })
	t.Run("Processes", func(t *testing.T) { processes(t, f, keys) })
	t.Run("ControllerLog", func(t *testing.T) { controllerLog(t, f, keys) })
	t.Run("Ports", func(t *testing.T) { ports(t, f, disk) })
}

// file is a file on a machine's disk.
type file struct {
	path    string
	machine string // folder that is the machine's disk
	mode    fs.FileMode
	content []byte // without the zeros that a log of etcd ends in
}

// disk reads all that is on the disks of all machines.
func (f *fleet) disk(t *testing.T) []file {
	t.Helper()
	var all []file
	for _, pattern := range []string{filepath.Join(f.Dir, "machines", "*"), filepath.Join(f.python.Machines, "*")} {
		machines, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range machines {
			if !strings.HasPrefix(filepath.Base(dir), ".") {
				all = append(all, readAll(t, dir)...)
			}
		}
	}
	machines := map[string]bool{}
	for _, each := range all {
		machines[each.machine] = true
	}
	if len(machines) != 4 {
		t.Fatalf("there are %d machines' disks, want 4", len(machines))
	}
	return all
}

func readAll(t *testing.T, dir string) []file {
	t.Helper()
	var all []file
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // etcd renames and removes files of its own
		}
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		found := file{path: path, machine: dir, mode: info.Mode()}
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			found.content = []byte(strings.TrimRight(string(raw), "\x00"))
		}
		all = append(all, found)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// deadline of one attempt to get in somewhere.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Timeout)
	t.Cleanup(cancel)
	return ctx
}
