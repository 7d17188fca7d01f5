package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/datadir"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/identity"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// machine is what is asked and commanded over HTTP.
type machine struct {
	opts     Options
	log      *slog.Logger
	state    *state
	identity *identity.Store
	etcd     *supervisor
	prober   *prober
	watcher  *watcher

	// One command at a time: an older epoch must not slip in behind a newer.
	commands sync.Mutex
}

// admit declines a command of an older epoch and writes down a newer before
// anything comes of it (F165). The caller holds commands.
func (m *machine) admit(header string) error {
	epoch, err := strconv.ParseInt(header, 10, 64)
	if err != nil || epoch < 0 {
		return refuse(protocol.CodeStaleEpoch, "the header %s is missing or not a number", protocol.EpochHeader)
	}
	newest := m.state.get().Epoch
	switch {
	case epoch < newest:
		return refuse(protocol.CodeStaleEpoch, "epoch %d is older than %d", epoch, newest)
	case epoch == newest:
		return nil
	}
	return m.state.update(func(f *facts) { f.Epoch = epoch })
}

func (m *machine) putMember(epoch string, body []byte) error {
	m.commands.Lock()
	defer m.commands.Unlock()
	if err := m.admit(epoch); err != nil {
		return err
	}
	if !m.identity.Enrolled() {
		return refuse(protocol.CodeNotEnrolled, "this machine has no certificates yet")
	}
	var wanted protocol.Wanted
	if err := decodeStrictly(body, &wanted); err != nil {
		return err
	}
	f := m.state.get()
	if err := m.opts.validate(wanted, f, m.etcd.certs); err != nil {
		return err
	}
	if err := refuseByFacts(wanted, f, datadir.Look(m.opts.dataDir())); err != nil {
		return err
	}
	if f.Wanted != nil && reflect.DeepEqual(*f.Wanted, wanted) {
		return nil
	}
	err := m.state.update(func(f *facts) {
		f.Wanted = &wanted
		f.Fenced = f.Fenced || wanted.Fenced
	})
	if err != nil {
		return err
	}
	m.etcd.fetch.set(wanted)
	m.etcd.changed()
	return nil
}

// putIdentity takes certificates. stale says that the connection is older than
// the identity in use.
func (m *machine) putIdentity(epoch string, body []byte, stale bool) error {
	m.commands.Lock()
	defer m.commands.Unlock()
	if err := m.admit(epoch); err != nil {
		return err
	}
	if stale {
		return refuse(protocol.CodeInvalid, "this connection was made before the machine got its certificates; make a new one")
	}
	var signed protocol.Identity
	if err := decodeStrictly(body, &signed); err != nil {
		return err
	}
	err := m.identity.Install(signed, time.Now())
	var invalid *identity.InvalidError
	if errors.As(err, &invalid) {
		return refuse(protocol.CodeInvalid, "%s", invalid.Problem)
	}
	if err != nil {
		return err
	}
	m.etcd.nudge()
	return noteEnrolled(m.opts, m.state)
}

func (m *machine) requests(fresh bool) (protocol.Requests, error) {
	return m.identity.Requests(fresh)
}

// seen looks at everything there is to see.
func (m *machine) seen() protocol.Seen {
	f := m.state.get()
	process, refusal := m.etcd.report()
	release, _ := m.etcd.fetch.now()
	seen := protocol.Seen{
		MachineUID:   f.MachineUID,
		ClusterUID:   f.ClusterUID,
		AgentVersion: m.opts.Version,
		Time:         time.Now().UTC(),
		Epoch:        f.Epoch,
		Enrolled:     m.identity.Enrolled(),
		Fenced:       f.Fenced,
		Wanted:       f.Wanted,
		Release:      release,
		Process:      process,
		Data:         judge(datadir.Look(m.opts.dataDir()), f),
		Probe:        m.prober.latest(),
		Peers:        m.watcher.latest(),
		Certificates: m.identity.Certificates(),
		Refusal:      refusal,
	}
	disk, err := diskOf(m.opts.Dir)
	if err != nil {
		m.log.Warn("the disk could not be looked at", "error", err)
	}
	seen.Disk = disk
	return seen
}

func diskOf(dir string) (protocol.Disk, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return protocol.Disk{}, fmt.Errorf("file system of %s: %w", dir, err)
	}
	block := uint64(fs.Bsize) //nolint:gosec // a block size is positive
	return protocol.Disk{Total: fs.Blocks * block, Free: fs.Bavail * block}, nil
}
