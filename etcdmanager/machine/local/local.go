// Package local makes machines that are processes of this host: each is an
// agent with a directory and a loopback address of its own, so that ports stay
// standard. The processes belong to nobody: they outlive the controller, and
// another one that is given the same directory finds them again.
//
// What exists is read from the directory and from /proc at every call. The
// package needs Linux; of the project it may import the contract it fulfils and
// package bootstrap, and nothing else.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// Grace is what the processes of a machine get between SIGTERM and SIGKILL.
const Grace = 10 * time.Second

// Options of New.
type Options struct {
	// Dir holds the machines, in its folder machines.
	Dir string
	// Executable is the etcdmanager binary, which is also the agent. It may be
	// empty where nothing is created.
	Executable string
	// Log may be nil.
	Log *slog.Logger
}

// Actuator is a machine.Actuator. Any number of them, in any number of
// processes, may share one directory.
type Actuator struct {
	machines   string // absolute, without symbolic links, as /proc shows it
	store      string // identity of that directory
	executable string
	grace      time.Duration
	log        *slog.Logger
}

var _ machine.Actuator = (*Actuator)(nil)

// New opens the machines under a directory, which it makes when there is none.
// From then on a directory that is not this one, such as the empty mount point
// of a disk that went away, is an error and never an empty list.
func New(o Options) (*Actuator, error) {
	if o.Dir == "" {
		return nil, errors.New("the local actuator needs a directory")
	}
	if _, err := bootID(); err != nil {
		return nil, fmt.Errorf("the local actuator needs Linux's /proc: %w", err)
	}
	a := &Actuator{executable: o.Executable, grace: Grace, log: o.Log}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.executable != "" {
		executable, err := filepath.Abs(a.executable)
		if err != nil {
			return nil, fmt.Errorf("locate %s: %w", a.executable, err)
		}
		a.executable = executable
	}
	machines, err := filepath.Abs(filepath.Join(o.Dir, "machines"))
	if err != nil {
		return nil, fmt.Errorf("locate the directory of machines: %w", err)
	}
	if err := os.MkdirAll(machines, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of machines: %w", err)
	}
	if a.machines, err = filepath.EvalSymlinks(machines); err != nil {
		return nil, fmt.Errorf("locate the directory of machines: %w", err)
	}
	if a.store, err = identifyStore(a.machines); err != nil {
		return nil, err
	}
	return a, nil
}

// Update writes the machine's tags down. It returns machine.ErrNotFound like
// Observe.
func (a *Actuator) Update(ctx context.Context, m machine.Machine) error {
	s, err := a.openFor(ctx, m.UID)
	if err != nil {
		return err
	}
	defer s.close()
	dir, err := s.lockMachine(ctx, m.UID)
	if errors.Is(err, os.ErrNotExist) {
		return a.absent(s, m.UID)
	}
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // open for its lock
	r, err := s.readRecord(m.UID)
	if err != nil {
		return err
	}
	r.Tags = m.Tags
	return s.writeRecord(m.UID, r)
}

// List returns every machine there is, also those half made and half removed,
// of which only the UID may be known. To delete them all is to clear the
// directory.
func (a *Actuator) List(ctx context.Context) ([]machine.Machine, error) {
	s, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	uids, err := s.uids()
	if err != nil {
		return nil, err
	}
	list := make([]machine.Machine, 0, len(uids))
	for _, uid := range uids {
		m := machine.Machine{UID: uid}
		if r, err := s.readRecord(uid); err == nil {
			m = r.Machine
		}
		list = append(list, m)
	}
	return list, nil
}
