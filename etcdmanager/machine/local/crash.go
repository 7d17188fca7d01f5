package local

import (
	"context"
	"path/filepath"
	"syscall"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// Processes lists the PIDs of a machine's agent and of what else runs on it,
// which is etcd. It is for demonstrations and tests, as is Crash.
func (a *Actuator) Processes(ctx context.Context, m machine.Machine) (agents, others []int, err error) {
	s, err := a.openFor(ctx, m.UID)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	agentProcesses, otherProcesses, err := processesOf(filepath.Join(a.machines, m.UID))
	for _, p := range agentProcesses {
		agents = append(agents, p.PID)
	}
	for _, p := range otherProcesses {
		others = append(others, p.PID)
	}
	return agents, others, err
}

// Crash kills a machine's processes at once, as a power cut would. The machine
// stays, stopped, with its disk as it was.
func (a *Actuator) Crash(ctx context.Context, m machine.Machine) error {
	s, err := a.openFor(ctx, m.UID)
	if err != nil {
		return err
	}
	defer s.close()
	agents, others, err := processesOf(filepath.Join(a.machines, m.UID))
	if err != nil {
		return err
	}
	// The agent first, or it would start etcd again.
	for _, p := range append(agents, others...) {
		if err := p.signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}
