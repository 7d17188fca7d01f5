// Package machinetest is the suite that every driver of machines passes: the
// contract of machine.Actuator as tests. It knows no driver; each brings what
// the suite needs to look behind it.
package machinetest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// Deadline of everything that is waited for; it is only reached in failure.
const Deadline = 2 * time.Minute

// Driver is an actuator under test, on an empty place of its own.
type Driver struct {
	Actuator machine.Actuator
	// Bootstrap is data for one machine.
	Bootstrap func(m machine.Machine) []byte
	// Reopen returns the actuator as another process of the controller has it.
	Reopen func(t *testing.T) machine.Actuator
	// LoseAnswer returns an actuator that does its work and whose answers never
	// arrive. Nil: answers are dropped by the suite.
	LoseAnswer func(t *testing.T) machine.Actuator
	// Stop stops a machine from outside and keeps its disk.
	Stop func(t *testing.T, m machine.Machine)
	// Blind hides the place where machines are and returns what ends that.
	Blind func(t *testing.T) (restore func())
	// Starts is how often the machine was started with the disk it has now; it
	// is 0 if there is no such disk.
	Starts func(t *testing.T, m machine.Machine) int
	// Remains lists what there is of a machine: processes, files.
	Remains func(t *testing.T, m machine.Machine) []string
}

// Run runs the suite; open is called once for each of its tests.
func Run(t *testing.T, open func(t *testing.T) Driver) {
	for _, test := range []struct {
		name string
		run  func(*suite)
	}{
		{"create makes one machine", (*suite).create},
		{"create repeated changes nothing", (*suite).createAgain},
		{"create at the same time makes one machine", (*suite).createConcurrently},
		{"create whose answer is lost made the machine", (*suite).createAnswerLost},
		{"create interrupted is taken up", (*suite).createInterrupted},
		{"create starts a stopped machine with its address and disk", (*suite).createStopped},
		{"observe knows no machine that never was", (*suite).observeNothing},
		{"observe is not certain when blind", (*suite).observeBlind},
		{"observe changes nothing", (*suite).observeOnly},
		{"update changes nothing else", (*suite).update},
		{"update of what never was is not found", (*suite).updateNothing},
		{"delete leaves nothing", (*suite).delete},
		{"delete of what never was is no error", (*suite).deleteNothing},
		{"delete twice, and at the same time", (*suite).deleteTwice},
		{"delete of a stopped machine leaves nothing", (*suite).deleteStopped},
		{"delete is an error when blind", (*suite).deleteBlind},
		{"clusters of the same names live side by side", (*suite).sameNames},
		{"a cancelled context ends every call", (*suite).cancelled},
		{"a UID is a name and not a path", (*suite).strangeUIDs},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), Deadline)
			t.Cleanup(cancel)
			test.run(&suite{T: t, Driver: open(t), ctx: ctx})
		})
	}
}

type suite struct {
	*testing.T
	Driver

	ctx context.Context
}

// machine returns one of a name whose end the test sees to.
func (s *suite) machine(name string) machine.Machine {
	m := machine.Machine{
		UID: "uid-" + rand.Text(), Name: name, Namespace: "default", Cluster: "demo",
		ClusterUID: "cluster-" + rand.Text(), Tags: map[string]string{"test": "machinetest"},
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Deadline)
		defer cancel()
		if err := s.Actuator.Delete(ctx, m); err != nil {
			s.Errorf("delete machine %s at the end: %v", m.UID, err)
		}
	})
	return m
}

func (s *suite) mustCreate(m machine.Machine) machine.Instance {
	s.Helper()
	if err := s.Actuator.Create(s.ctx, m, s.Bootstrap(m)); err != nil {
		s.Fatalf("create: %v", err)
	}
	return s.await(m, machine.Running)
}

// await observes until the machine is in a state and, when it runs, until its
// disk was written to.
func (s *suite) await(m machine.Machine, state machine.State) machine.Instance {
	s.Helper()
	var last machine.Instance
	s.eventually("machine is "+string(state), func() bool {
		var err error
		if last, err = s.Actuator.Observe(s.ctx, m); err != nil {
			s.Fatalf("observe: %v", err)
		}
		return last.State == state && (state != machine.Running || s.Starts(s.T, m) > 0)
	})
	if len(last.Addresses) == 0 || last.ProviderID == "" {
		s.Fatalf("a %s machine has no address or no provider ID: %+v", state, last)
	}
	return last
}

func (s *suite) mustBeGone(m machine.Machine) {
	s.Helper()
	if _, err := s.Actuator.Observe(s.ctx, m); !errors.Is(err, machine.ErrNotFound) {
		s.Errorf("observe after the end: %v, want ErrNotFound", err)
	}
	if left := s.Remains(s.T, m); len(left) > 0 {
		s.Errorf("the deleted machine left %q", left)
	}
}

func (s *suite) mustBeSame(before, after machine.Instance) {
	s.Helper()
	if after.ProviderID != before.ProviderID || !slices.Equal(after.Addresses, before.Addresses) {
		s.Errorf("the machine is another one now: %+v, was %+v", after, before)
	}
}

func (s *suite) eventually(what string, is func() bool) {
	s.Helper()
	Eventually(s.T, s.ctx, what, is)
}

// Eventually waits until something is so, and fails the test when it is not
// before the context ends.
func Eventually(t testing.TB, ctx context.Context, what string, is func() bool) { //nolint:revive // t first, as in testing
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
