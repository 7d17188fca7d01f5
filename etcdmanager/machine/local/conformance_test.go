package local_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/machinetest"
)

func TestMain(m *testing.M) {
	machinetest.StandIn()
	if len(os.Args) == 3 && os.Args[1] == createRole {
		createAndExit(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string) *local.Actuator {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, err := local.New(local.Options{Dir: dir, Executable: executable})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The agents are stand-ins, to be quick; the tests of whole clusters run the
// real one through the same driver.
func TestConformance(t *testing.T) {
	machinetest.Run(t, func(t *testing.T) machinetest.Driver {
		dir := t.TempDir()
		place := machinetest.Place{Machines: filepath.Join(dir, "machines")}
		return machinetest.Driver{
			Actuator:  open(t, dir),
			Bootstrap: func(machine.Machine) []byte { return []byte(`{"test":"bootstrap"}`) },
			Reopen:    func(t *testing.T) machine.Actuator { return open(t, dir) },
			Stop:      place.Stop, Blind: place.Blind, Starts: place.Starts, Remains: place.Remains,
		}
	})
}

func itoa(pid int) string { return strconv.Itoa(pid) }
