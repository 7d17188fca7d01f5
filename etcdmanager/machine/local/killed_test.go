package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
)

// createRole makes the test binary create the demo machine in a directory, as
// a controller that can be killed.
const createRole = "create-machine"

func createAndExit(dir string) {
	executable, err := os.Executable()
	if err == nil {
		var a *local.Actuator
		if a, err = local.New(local.Options{Dir: dir, Executable: executable}); err == nil {
			err = a.Create(context.Background(), demo, []byte(secret))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = unix.Kill(os.Getpid(), unix.SIGKILL) // the race detector would take a second to exit
}

// The controller is killed at any moment of a creation (F164): there is one
// machine in the end, with one agent, and nothing of it is left after its end.
func TestControllerKilled(t *testing.T) {
	r := newRig(t)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out, err := osexec.CommandContext(r.ctx, executable, createRole, r.dir).CombinedOutput()
	length := time.Since(began)
	if len(out) > 0 {
		t.Fatalf("create: %v: %s", err, out)
	}
	for range 20 {
		if err := r.Delete(r.ctx, demo); err != nil {
			t.Fatal(err)
		}
		if left := r.Remains(t, demo); len(left) > 0 {
			t.Fatalf("left: %q", left)
		}
		moment := time.Duration(rand.Int64N(int64(length)))
		ctx, cancel := context.WithTimeout(r.ctx, moment)
		err := osexec.CommandContext(ctx, executable, createRole, r.dir).Run()
		cancel()
		t.Logf("killed after %s: %v; %q", moment, err, r.Remains(t, demo))
		if err := r.Create(r.ctx, demo, []byte(secret)); err != nil {
			t.Fatal(err)
		}
		r.awaitStart()
		if starts := r.Starts(t, demo); starts != 1 {
			t.Errorf("the machine was started %d times, want once", starts)
		}
	}
}
