package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// Create writes the machine down with an address of its own, and then starts
// its agent, unless there is one and it runs.
func (a *Actuator) Create(ctx context.Context, m machine.Machine, data []byte) error {
	if err := takesNoConfig(m.Config); err != nil {
		return fmt.Errorf("create machine %s: %w", m.Name, err)
	}
	s, err := a.openFor(ctx, m.UID)
	if err != nil {
		return err
	}
	defer s.close()
	if err := a.settle(ctx, s, m, data); err != nil {
		return fmt.Errorf("create machine %s: %w", m.Name, err)
	}
	if err := a.start(ctx, s, m.UID, data); err != nil {
		return fmt.Errorf("create machine %s: %w", m.Name, err)
	}
	return nil
}

func takesNoConfig(config json.RawMessage) error {
	var fields map[string]any
	if len(config) == 0 {
		return nil
	}
	if err := json.Unmarshal(config, &fields); err != nil || len(fields) > 0 {
		return fmt.Errorf("the local actuator takes no config: %w", machine.ErrInvalid)
	}
	return nil
}

// settle makes the machine's directory, whole or not at all.
func (a *Actuator) settle(ctx context.Context, s *store, m machine.Machine, data []byte) error {
	lock, err := s.lockAll(ctx)
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // open for its lock
	if made, err := s.exists(m.UID); err != nil || made {
		return err
	}
	if leaving, err := s.exists(deletedPrefix + m.UID); err != nil {
		return err
	} else if leaving {
		return errors.New("it is being deleted")
	}
	if agents, others, err := processesOf(filepath.Join(a.machines, m.UID)); err != nil {
		return err
	} else if len(agents)+len(others) > 0 {
		return errors.New("its directory is gone but processes of it still run: delete it first")
	}
	if len(data) == 0 {
		return fmt.Errorf("no bootstrap data: %w", machine.ErrInvalid)
	}
	address, err := a.chooseAddress(ctx, s, m.UID)
	if err != nil {
		return err
	}
	if err := s.lay(record{m, address}, data); err != nil {
		return err
	}
	a.log.Info("machine made", "cluster", m.Cluster, "machine", m.Name, "uid", m.UID, "address", address)
	return nil
}

// lay fills a directory aside and renames it into place.
func (s *store) lay(r record, data []byte) error {
	aside := newPrefix + r.UID
	if err := s.root.RemoveAll(aside); err != nil {
		return fmt.Errorf("clear what is half made: %w", err)
	}
	if err := s.root.Mkdir(aside, 0o700); err != nil {
		return fmt.Errorf("make its directory: %w", err)
	}
	if err := s.writeFile(filepath.Join(aside, bootstrapFile), data); err != nil {
		return err
	}
	if err := s.writeRecord(aside, r); err != nil {
		return err
	}
	if err := s.root.Rename(aside, r.UID); err != nil {
		return fmt.Errorf("make its directory: %w", err)
	}
	return s.sync(".")
}

// start makes sure that the agent runs, once.
func (a *Actuator) start(ctx context.Context, s *store, uid string, data []byte) error {
	lock, err := s.lockMachine(ctx, uid)
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // open for its lock
	r, err := s.readRecord(uid)
	if err != nil {
		return err
	}
	running, err := a.agentRuns(s, uid)
	if err != nil || running {
		return err
	}
	// Etcd may run on: the agent adopts it.
	if err := free(ctx, r.Address, bootstrap.PortAgent); err != nil {
		return fmt.Errorf("its address is in use by another process: %w", err)
	}
	if err := s.refreshBootstrap(uid, data); err != nil {
		return err
	}
	p, err := a.launch(s, r)
	if err != nil {
		return fmt.Errorf("start its agent: %w", err)
	}
	a.log.Info("agent started", "cluster", r.Cluster, "machine", r.Name, "uid", uid, "address", r.Address, "pid", p.PID)
	return s.writePID(uid, p)
}

// refreshBootstrap gives a machine that was stopped before its first contact an
// identity that has not expired. One that was enrolled has removed the file.
func (s *store) refreshBootstrap(uid string, data []byte) error {
	name := filepath.Join(uid, bootstrapFile)
	if waiting, err := s.exists(name); err != nil || !waiting || len(data) == 0 {
		return err
	}
	return s.writeFile(name, data)
}

// launch starts the agent in a session of its own, with files only: a pipe
// would end with this process, or block the agent (F121).
func (a *Actuator) launch(s *store, r record) (process, error) {
	if a.executable == "" {
		return process{}, errors.New("no executable is set")
	}
	if err := s.rotateLog(r.UID); err != nil {
		return process{}, err
	}
	log, err := s.root.OpenFile(filepath.Join(r.UID, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return process{}, err
	}
	defer log.Close() //nolint:errcheck // the agent has its own
	null, err := os.Open(os.DevNull)
	if err != nil {
		return process{}, err
	}
	defer null.Close() //nolint:errcheck // only read from
	dir := filepath.Join(a.machines, r.UID)
	child, err := os.StartProcess(a.executable, []string{
		a.executable, "agent",
		"--dir", filepath.Join(dir, agentDir),
		"--address", r.Address,
		"--bootstrap", filepath.Join(dir, bootstrapFile),
	}, &os.ProcAttr{
		Dir: dir, Env: environment(), Files: []*os.File{null, log, log},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return process{}, err
	}
	pid := child.Pid
	if err := child.Release(); err != nil {
		return process{}, err
	}
	return identify(pid)
}

// environment is what a machine may know of the controller's: how to run and
// how to reach releases, and nothing that opens the management cluster.
func environment() []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
