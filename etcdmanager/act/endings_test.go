package act

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// slow is an actuator that takes its time to delete.
type slow struct {
	machine.Actuator
	takes time.Duration
	calls atomic.Int32
	err   error
}

func (s *slow) Delete(context.Context, machine.Machine) error {
	s.calls.Add(1)
	<-time.After(s.takes)
	return s.err
}

// TestSlowEndIsNotWaitedFor ends a machine that takes far longer than a look:
// the looks go on, and the actuator is asked once.
func TestSlowEndIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e endings
		actuator := &slow{takes: time.Minute}
		began := time.Now()
		for range 3 {
			if done, err := e.end(t.Context(), actuator, machine.Machine{UID: "u"}); done || err != nil {
				t.Errorf("at first: %t, %v", done, err)
			}
		}
		if took := time.Since(began); took > endPatience || actuator.calls.Load() != 1 {
			t.Errorf("three looks took %s and made %d calls", took, actuator.calls.Load())
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if done, err := e.end(t.Context(), actuator, machine.Machine{UID: "u"}); !done || err != nil {
			t.Errorf("in the end: %t, %v", done, err)
		}
	})
}

// TestEndIsAskedForAgain asks an actuator that failed once more.
func TestEndIsAskedForAgain(t *testing.T) {
	var e endings
	actuator := &slow{err: errors.New("not now")}
	for range 2 {
		if done, err := e.end(t.Context(), actuator, machine.Machine{UID: "u"}); done || !errors.Is(err, actuator.err) {
			t.Errorf("%t, %v", done, err)
		}
	}
	if actuator.calls.Load() != 2 {
		t.Errorf("%d calls", actuator.calls.Load())
	}
}
