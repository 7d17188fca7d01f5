package management

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// Options say where the management API lives.
type Options struct {
	Dir    string // everything of it is kept here; made if it is not there
	BinDir string // made by `make testbin`
	Log    *slog.Logger
}

// API is a running management API with our kinds installed. Its processes are
// started again when they die; they end when this process does.
type API struct {
	lock   *Lock
	store  *store
	server *APIServer
}

// stateName is the folder below Dir that holds the state of the processes.
const (
	stateName      = "management"
	kubeconfigName = "kubeconfig"
)

// Start brings the management API up, as it was if it was there before, and
// waits until it serves our kinds. The context bounds the start alone; it
// takes the lock of Dir until Stop, so the second on one Dir gets an
// *InUseError.
func Start(ctx context.Context, o Options) (*API, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	binaries, err := FindBinaries(o.BinDir)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start the management API: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, stateName), 0o700); err != nil {
		return nil, fmt.Errorf("start the management API: %w", err)
	}
	api := &API{}
	if api.lock, err = Acquire(dir); err != nil {
		return nil, err
	}
	if err := api.start(ctx, dir, binaries, o.Log); err != nil {
		return nil, errors.Join(fmt.Errorf("start the management API: %w", err), api.Stop(context.WithoutCancel(ctx)))
	}
	return api, nil
}

func (a *API) start(ctx context.Context, dir string, binaries Binaries, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	state := filepath.Join(dir, stateName)
	var err error
	if a.store, err = startStore(ctx, state, binaries.Etcd, log); err != nil {
		return err
	}
	ids := a.store.ids
	a.server, err = StartAPIServer(ctx, APIServerOptions{
		Dir:        filepath.Join(state, "apiserver"),
		Binary:     binaries.KubeAPIServer,
		Endpoints:  []string{a.store.place.url(portClient)},
		EtcdCA:     ids.certFile("ca"),
		EtcdCert:   ids.certFile("client"),
		EtcdKey:    ids.keyFile("client"),
		Kubeconfig: filepath.Join(dir, kubeconfigName),
		Log:        log,
	})
	if err != nil {
		return err
	}
	return InstallCRDs(ctx, a.server.Config())
}

// Config for clients, as a member of system:masters.
func (a *API) Config() *rest.Config { return a.server.Config() }

// Kubeconfig is the path of the file for kubectl.
func (a *API) Kubeconfig() string { return a.server.Kubeconfig() }

// PIDs of its processes by name, etcd and kube-apiserver; 0 for one that is
// being started again.
func (a *API) PIDs() map[string]int {
	return map[string]int{"etcd": a.store.child.PID(), "kube-apiserver": a.server.PID()}
}

// Stop ends the processes, the kube-apiserver first, and gives Dir free. What
// they stored stays. It returns when they are gone: in 30 seconds at most, or
// when the context ends.
func (a *API) Stop(ctx context.Context) error {
	if a.server != nil {
		a.server.Stop(ctx)
	}
	if a.store != nil {
		a.store.child.stop(ctx)
	}
	return a.lock.Release()
}

// EndLeftovers ends processes of a management API whose parent died and left
// them. The caller holds the lock of dir.
func EndLeftovers(ctx context.Context, dir string) error {
	state := filepath.Join(dir, stateName)
	server := filepath.Join(state, "apiserver", "kube-apiserver.pid")
	if err := endLeftover(ctx, server, apiServerGrace); err != nil {
		return fmt.Errorf("end the kube-apiserver of %s: %w", dir, err)
	}
	if err := endLeftover(ctx, filepath.Join(state, "etcd.pid"), etcdGrace); err != nil {
		return fmt.Errorf("end the etcd of %s: %w", dir, err)
	}
	return nil
}
