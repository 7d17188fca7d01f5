package machinetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

func (s *suite) create() {
	m := s.machine("demo-0")
	s.mustCreate(m)
	if starts := s.Starts(s.T, m); starts != 1 {
		s.Errorf("the machine was started %d times, want once", starts)
	}
}

// Retries of a create must not start anything twice (F158, F160).
func (s *suite) createAgain() {
	m := s.machine("demo-0")
	first := s.mustCreate(m)
	for range 3 {
		s.mustBeSame(first, s.mustCreate(m))
	}
	if err := s.Reopen(s.T).Create(s.ctx, m, s.Bootstrap(m)); err != nil {
		s.Errorf("create by the next controller: %v", err)
	}
	if starts := s.Starts(s.T, m); starts != 1 {
		s.Errorf("the machine was started %d times, want once", starts)
	}
}

// Two controllers may be active for a moment (F165).
func (s *suite) createConcurrently() {
	m, others := s.machine("demo-0"), []machine.Machine{s.machine("demo-1"), s.machine("demo-2")}
	var all sync.WaitGroup
	call := func(a machine.Actuator, m machine.Machine) {
		all.Go(func() {
			if err := a.Create(s.ctx, m, s.Bootstrap(m)); err != nil {
				s.Errorf("create: %v", err)
			}
		})
	}
	for range 3 {
		call(s.Actuator, m)
		call(s.Reopen(s.T), m)
	}
	for _, other := range others {
		call(s.Actuator, other)
	}
	all.Wait()
	seen := map[string]bool{}
	for _, made := range append(others, m) {
		address := s.await(made, machine.Running).Addresses[0]
		if seen[address] {
			s.Errorf("two machines have the address %s", address)
		}
		seen[address] = true
		if starts := s.Starts(s.T, made); starts != 1 {
			s.Errorf("machine %s was started %d times, want once", made.Name, starts)
		}
	}
}

func (s *suite) createAnswerLost() {
	m := s.machine("demo-0")
	if s.LoseAnswer != nil {
		err := s.LoseAnswer(s.T).Create(s.ctx, m, s.Bootstrap(m))
		if err == nil || errors.Is(err, machine.ErrNotFound) {
			s.Errorf("create whose answer is lost: %v, want an error that says nothing of the machine", err)
		}
	} else {
		_ = s.Actuator.Create(s.ctx, m, s.Bootstrap(m))
	}
	made := s.await(m, machine.Running)
	if err := s.Reopen(s.T).Create(s.ctx, m, s.Bootstrap(m)); err != nil {
		s.Fatalf("create again: %v", err)
	}
	s.mustBeSame(made, s.await(m, machine.Running))
	if starts := s.Starts(s.T, m); starts != 1 {
		s.Errorf("the machine was started %d times, want once", starts)
	}
}

// A create may be killed anywhere (F164): what it left is taken up, whole.
func (s *suite) createInterrupted() {
	whole, began := s.machine("demo-0"), time.Now()
	if err := s.Actuator.Create(s.ctx, whole, s.Bootstrap(whole)); err != nil {
		s.Fatalf("create: %v", err)
	}
	length := time.Since(began)
	for range 10 {
		m := s.machine("demo-0")
		moment := time.Duration(rand.Int64N(int64(length)))
		ctx, cancel := context.WithTimeout(s.ctx, moment)
		interrupted := s.Actuator.Create(ctx, m, s.Bootstrap(m))
		cancel()
		s.Logf("create interrupted after %s: %v", moment, interrupted)
		if _, err := s.Actuator.Observe(s.ctx, m); err != nil && !errors.Is(err, machine.ErrNotFound) {
			s.Errorf("observe after a create that was interrupted: %v", err)
		}
		s.mustCreate(m)
		if starts := s.Starts(s.T, m); starts != 1 {
			s.Errorf("the machine was started %d times, want once", starts)
		}
		if err := s.Actuator.Delete(s.ctx, m); err != nil {
			s.Errorf("delete: %v", err)
		}
		s.mustBeGone(m)
	}
}

func (s *suite) createStopped() {
	m := s.machine("demo-0")
	before := s.mustCreate(m)
	for starts := 2; starts <= 3; starts++ {
		s.Stop(s.T, m)
		s.mustBeSame(before, s.await(m, machine.Stopped))
		s.mustBeSame(before, s.mustCreate(m))
		s.eventually("the machine was started on the same disk", func() bool { return s.Starts(s.T, m) == starts })
	}
}

func (s *suite) sameNames() {
	one, two := s.machine("demo-0"), s.machine("demo-0")
	first, second := s.mustCreate(one), s.mustCreate(two)
	if first.Addresses[0] == second.Addresses[0] || first.ProviderID == second.ProviderID {
		s.Fatalf("two machines are one: %+v and %+v", first, second)
	}
	if err := s.Actuator.Delete(s.ctx, one); err != nil {
		s.Fatalf("delete: %v", err)
	}
	s.mustBeGone(one)
	s.mustBeSame(second, s.await(two, machine.Running))
	if starts := s.Starts(s.T, two); starts != 1 {
		s.Errorf("the other cluster's machine was started %d times, want once", starts)
	}
}

func (s *suite) strangeUIDs() {
	for _, uid := range []string{"", "..", "../other", "a/b", ".hidden", "a\nb"} {
		m := machine.Machine{UID: uid, Name: "demo-0", Namespace: "default", Cluster: "demo", ClusterUID: "c"}
		if err := s.Actuator.Create(s.ctx, m, []byte("{}")); !errors.Is(err, machine.ErrInvalid) {
			s.Errorf("create with UID %q: %v, want ErrInvalid", uid, err)
		}
		if _, err := s.Actuator.Observe(s.ctx, m); err == nil || errors.Is(err, machine.ErrNotFound) {
			s.Errorf("observe with UID %q: %v, want an error other than ErrNotFound", uid, err)
		}
		if err := s.Actuator.Delete(s.ctx, m); err == nil {
			s.Errorf("delete with UID %q is accepted", uid)
		}
	}
}
