package machinetest

import (
	"context"
	"errors"
	"sync"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

func (s *suite) observeNothing() {
	s.mustBeGone(s.machine("demo-0"))
}

// A place that cannot be looked at says nothing of machines: taken for an empty
// one, the whole fleet would be replaced (F162, F168).
func (s *suite) observeBlind() {
	m, never := s.machine("demo-0"), s.machine("demo-1")
	before := s.mustCreate(m)
	restore := s.Blind(s.T)
	for _, asked := range []machine.Machine{m, never} {
		if i, err := s.Actuator.Observe(s.ctx, asked); err == nil || errors.Is(err, machine.ErrNotFound) {
			s.Errorf("observe when blind: %+v, %v; want an error other than ErrNotFound", i, err)
		}
	}
	if err := s.Actuator.Update(s.ctx, m); err == nil || errors.Is(err, machine.ErrNotFound) {
		s.Errorf("update when blind: %v, want an error other than ErrNotFound", err)
	}
	if err := s.Actuator.Create(s.ctx, m, s.Bootstrap(m)); err == nil {
		s.Error("create when blind made a second machine")
	}
	restore()
	s.mustBeSame(before, s.await(m, machine.Running))
}

func (s *suite) observeOnly() {
	m := s.machine("demo-0")
	s.mustCreate(m)
	s.Stop(s.T, m)
	for range 3 {
		s.await(m, machine.Stopped)
	}
	if starts := s.Starts(s.T, m); starts != 1 {
		s.Errorf("to observe a stopped machine started it: %d starts", starts)
	}
}

func (s *suite) update() {
	m := s.machine("demo-0")
	before := s.mustCreate(m)
	m.Tags = map[string]string{"test": "machinetest", "changed": "yes"}
	for range 2 {
		if err := s.Actuator.Update(s.ctx, m); err != nil {
			s.Fatalf("update: %v", err)
		}
	}
	s.mustBeSame(before, s.await(m, machine.Running))
	if starts := s.Starts(s.T, m); starts != 1 {
		s.Errorf("an update started the machine: %d starts", starts)
	}
}

func (s *suite) updateNothing() {
	m := s.machine("demo-0")
	if err := s.Actuator.Update(s.ctx, m); !errors.Is(err, machine.ErrNotFound) {
		s.Errorf("update: %v, want ErrNotFound", err)
	}
	s.mustBeGone(m)
}

func (s *suite) delete() {
	m, other := s.machine("demo-0"), s.machine("demo-1")
	s.mustCreate(m)
	s.mustCreate(other)
	if len(s.Remains(s.T, m)) == 0 {
		s.Fatal("the driver sees nothing of a running machine: the test would prove nothing")
	}
	if err := s.Actuator.Delete(s.ctx, m); err != nil {
		s.Fatalf("delete: %v", err)
	}
	s.mustBeGone(m)
	s.await(other, machine.Running)
}

func (s *suite) deleteNothing() {
	m := s.machine("demo-0")
	if err := s.Actuator.Delete(s.ctx, m); err != nil {
		s.Errorf("delete: %v", err)
	}
	s.mustBeGone(m)
}

func (s *suite) deleteTwice() {
	m := s.machine("demo-0")
	s.mustCreate(m)
	var both sync.WaitGroup
	for _, a := range []machine.Actuator{s.Actuator, s.Reopen(s.T)} {
		both.Go(func() {
			if err := a.Delete(s.ctx, m); err != nil {
				s.Errorf("delete: %v", err)
			}
		})
	}
	both.Wait()
	s.mustBeGone(m)
	if err := s.Actuator.Delete(s.ctx, m); err != nil {
		s.Errorf("delete once more: %v", err)
	}
	s.mustBeGone(m)
}

func (s *suite) deleteStopped() {
	m := s.machine("demo-0")
	s.mustCreate(m)
	s.Stop(s.T, m)
	s.await(m, machine.Stopped)
	if err := s.Actuator.Delete(s.ctx, m); err != nil {
		s.Fatalf("delete: %v", err)
	}
	s.mustBeGone(m)
}

// A finalizer is cleared after a delete: it must not succeed unseen.
func (s *suite) deleteBlind() {
	m := s.machine("demo-0")
	before := s.mustCreate(m)
	restore := s.Blind(s.T)
	if err := s.Actuator.Delete(s.ctx, m); err == nil {
		s.Error("delete when blind says it is done")
	}
	restore()
	if i, err := s.Actuator.Observe(s.ctx, m); err != nil {
		s.Errorf("observe after a delete that failed: %v", err)
	} else {
		s.mustBeSame(before, i)
	}
}

func (s *suite) cancelled() {
	m, made := s.machine("demo-0"), s.machine("demo-1")
	s.mustCreate(made)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, observed := s.Actuator.Observe(ctx, m)
	for verb, err := range map[string]error{
		"create":  s.Actuator.Create(ctx, m, s.Bootstrap(m)),
		"observe": observed,
		"update":  s.Actuator.Update(ctx, m),
		"delete":  s.Actuator.Delete(ctx, made),
	} {
		if !errors.Is(err, context.Canceled) {
			s.Errorf("%s with a cancelled context: %v, want context.Canceled", verb, err)
		}
	}
	s.mustBeGone(m)
	s.await(made, machine.Running)
}
