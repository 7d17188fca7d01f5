package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// deleteTimeout bounds a Delete whose caller does not.
const deleteTimeout = 2 * time.Minute

// Delete ends the machine's processes, its etcd among them, and removes its
// directory. It goes on where an earlier one was interrupted.
func (a *Actuator) Delete(ctx context.Context, m machine.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	s, err := a.openFor(ctx, m.UID)
	if err != nil {
		return err
	}
	defer s.close()
	if err := a.clear(ctx, s, m.UID); err != nil {
		return fmt.Errorf("delete machine %s: %w", m.Name, err)
	}
	return nil
}

func (a *Actuator) clear(ctx context.Context, s *store, uid string) error {
	err := a.setAside(ctx, s, uid)
	if errors.Is(err, os.ErrNotExist) {
		// Its directory is gone or set aside. Processes may be left, and may
		// have made the directory again before they ended.
		if err = a.stop(ctx, process{}, uid); err == nil {
			err = a.setAside(ctx, s, uid)
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, prefix := range []string{newPrefix, deletedPrefix} {
		if err := s.root.RemoveAll(prefix + uid); err != nil {
			return fmt.Errorf("remove its directory: %w", err)
		}
	}
	return s.sync(".")
}

// setAside stops the machine and takes its directory out of sight in one step,
// so that what is half removed is never taken for a machine. The error is
// os.ErrNotExist when there is no such directory.
func (a *Actuator) setAside(ctx context.Context, s *store, uid string) error {
	lock, err := s.lockMachine(ctx, uid)
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // open for its lock
	p, err := s.readPID(uid)
	if err != nil {
		return err
	}
	if err := a.stop(ctx, p, uid); err != nil {
		return err
	}
	if err := s.root.RemoveAll(deletedPrefix + uid); err != nil {
		return fmt.Errorf("remove what is half removed: %w", err)
	}
	if err := s.root.Rename(uid, deletedPrefix+uid); err != nil {
		return fmt.Errorf("set its directory aside: %s", opaque(err))
	}
	a.log.Info("machine deleted", "uid", uid)
	return s.sync(".")
}

// stop ends the agent first, which would start etcd again, and then everything
// else, until nothing is found any more.
func (a *Actuator) stop(ctx context.Context, recorded process, uid string) error {
	dir := filepath.Join(a.machines, uid)
	for {
		agents, others, err := processesOf(dir)
		if err != nil {
			return err
		}
		running, err := recorded.running()
		if err != nil {
			return err
		}
		if running {
			agents = append(agents, recorded)
		}
		if len(agents)+len(others) == 0 {
			return nil
		}
		if err := end(ctx, agents, a.grace); err != nil {
			return err
		}
		if err := end(ctx, others, a.grace); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stop its processes: %w", err)
		}
	}
}
