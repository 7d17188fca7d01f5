// Package agent runs on an etcd machine. It carries out the one member that it
// was told to run, reports what it really sees, and keeps etcd running while
// the controller, the management cluster or the network is gone. An agent that
// stops, crashes or is replaced never touches a running etcd.
//
// It must import neither client-go nor controller-runtime nor the deciding side
// under etcdmanager/, and holds no credential of the management cluster.
package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/durable"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

const shutdownDeadline = 3 * time.Second

// Run is the agent's whole life: it serves until ctx ends, which is no error,
// and leaves etcd running then. It returns durable.ErrLocked, wrapped, when
// another agent has the directory, and an error when it can't listen or its
// directory is not as an agent left it.
func Run(ctx context.Context, opts Options) error {
	opts, err := opts.withDefaults()
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	lock, err := durable.Lock(filepath.Join(opts.Dir, "agent.lock"))
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	defer func() { _ = lock.Close() }()
	m, conf, err := assemble(opts)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	address := net.JoinHostPort(opts.Address, strconv.Itoa(bootstrap.PortAgent))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if err := m.live(ctx, tls.NewListener(listener, conf)); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// assemble reads what earlier agents left and takes up the etcd that runs.
func assemble(opts Options) (*machine, *tls.Config, error) {
	st, err := openState(opts.Dir)
	if err != nil {
		return nil, nil, err
	}
	first, err := meetMachine(opts, st)
	if err != nil {
		return nil, nil, err
	}
	store, err := openIdentity(opts, st)
	if err != nil {
		return nil, nil, err
	}
	opts.Log = opts.Log.With("cluster", st.get().Cluster, "machine", st.get().Machine)
	etcd := newSupervisor(opts, st, store.EtcdFiles())
	if w := st.get().Wanted; w != nil {
		etcd.fetch.set(*w)
	}
	etcd.adopt()
	own := newProber(opts, store.Probe, etcd.running)
	return &machine{
		opts: opts, log: opts.Log, state: st, identity: store, etcd: etcd, prober: own,
		watcher: newWatcher(opts, own, func() *protocol.Wanted { return st.get().Wanted }),
	}, serverTLS(st, store, first), nil
}

// live runs every part until ctx ends or serving fails, and waits for all.
func (m *machine) live(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts sync.WaitGroup
	parts.Go(func() { m.etcd.supervise(ctx) })
	parts.Go(func() { m.etcd.fetch.run(ctx) })
	parts.Go(func() { m.prober.run(ctx) })
	parts.Go(func() { m.watcher.run(ctx) })
	parts.Go(func() { rotateLog(ctx, m.opts) })
	server := newServer(m)
	parts.Go(func() {
		<-ctx.Done()
		// The deadline is for answers that are being written.
		stopping, stopped := context.WithTimeout(context.WithoutCancel(ctx), shutdownDeadline)
		defer stopped()
		if server.Shutdown(stopping) != nil {
			_ = server.Close()
		}
	})
	m.log.Info("agent serves", "address", listener.Addr().String(), "dir", m.opts.Dir, "enrolled", m.identity.Enrolled())
	err := server.Serve(listener)
	cancel()
	parts.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
