package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// Observe looks at the machine's directory and for its agent's process. The
// error is machine.ErrNotFound only when the directory of machines was read
// and has no trace of it, and no process of it runs (F162).
func (a *Actuator) Observe(ctx context.Context, m machine.Machine) (machine.Instance, error) {
	s, err := a.openFor(ctx, m.UID)
	if err != nil {
		return machine.Instance{}, err
	}
	defer s.close()
	instance := machine.Instance{ProviderID: "local://" + m.UID, State: machine.Stopped}
	made, err := s.exists(m.UID)
	if err != nil {
		return machine.Instance{}, err
	}
	if !made {
		return a.remainder(s, m.UID, instance)
	}
	r, err := s.readRecord(m.UID)
	if err != nil {
		return machine.Instance{}, err
	}
	instance.Addresses = []string{r.Address}
	running, err := a.agentRuns(s, m.UID)
	if err != nil {
		return machine.Instance{}, err
	}
	if running {
		instance.State = machine.Running
	} else {
		instance.Message = "the agent does not run; its last words are in " + filepath.Join(a.machines, m.UID, logFile)
	}
	return instance, nil
}

// remainder is what is left of a machine without a directory.
func (a *Actuator) remainder(s *store, uid string, instance machine.Instance) (machine.Instance, error) {
	for _, half := range []struct{ prefix, message string }{
		{newPrefix, "half made"}, {deletedPrefix, "half removed"},
	} {
		there, err := s.exists(half.prefix + uid)
		if err != nil {
			return machine.Instance{}, err
		}
		if there {
			instance.Message = half.message
			return instance, nil
		}
	}
	agents, others, err := processesOf(filepath.Join(a.machines, uid))
	if err != nil {
		return machine.Instance{}, err
	}
	if len(agents)+len(others) == 0 {
		return machine.Instance{}, fmt.Errorf("machine %s: %w", uid, machine.ErrNotFound)
	}
	instance.State = machine.Running
	instance.Message = "its directory is gone, its processes run"
	return instance, nil
}

// absent says for callers other than Observe that a machine is not there.
func (a *Actuator) absent(s *store, uid string) error {
	instance, err := a.remainder(s, uid, machine.Instance{})
	if err != nil {
		return err
	}
	return fmt.Errorf("machine %s: %s", uid, instance.Message)
}

// agentRuns looks for the machine's agent, by its PID file or, when a crash
// came between the start and the file, among all processes.
func (a *Actuator) agentRuns(s *store, uid string) (bool, error) {
	p, err := s.readPID(uid)
	if err != nil {
		return false, err
	}
	if running, err := p.running(); err != nil || running {
		return running, err
	}
	agents, _, err := processesOf(filepath.Join(a.machines, uid))
	return len(agents) > 0, err
}

// readPID returns the agent as it was started last, or none.
func (s *store) readPID(uid string) (process, error) {
	raw, err := s.root.ReadFile(filepath.Join(uid, pidFile))
	if errors.Is(err, os.ErrNotExist) {
		return process{}, nil
	}
	if err != nil {
		return process{}, fmt.Errorf("read the PID file of machine %s: %w", uid, err)
	}
	var p process
	if err := json.Unmarshal(raw, &p); err != nil {
		return process{}, nil //nolint:nilerr // as good as none: the processes are searched
	}
	return p, nil
}

func (s *store) writePID(uid string, p process) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("write the PID file of machine %s: %w", uid, err)
	}
	return s.writeFile(filepath.Join(uid, pidFile), append(raw, '\n'))
}

// logLimit in bytes, above which the agent's log starts anew with the agent.
const logLimit = 16 << 20

func (s *store) rotateLog(uid string) error {
	name := filepath.Join(uid, logFile)
	info, err := s.root.Stat(name)
	if errors.Is(err, os.ErrNotExist) || (err == nil && info.Size() < logLimit) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.root.Rename(name, name+".1")
}
