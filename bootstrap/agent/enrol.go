package agent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/identity"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// firstContact is the identity from the bootstrap data: good until the machine
// has its own, and never after.
type firstContact struct {
	cert tls.Certificate
	pool *x509.CertPool
}

// meetMachine learns who this machine is, from its own notes or, the first
// time, from the bootstrap data. The answer is nil for an enrolled machine,
// whose bootstrap data is deleted should it still or again be there.
func meetMachine(opts Options, st *state) (*firstContact, error) {
	if st.get().Enrolled {
		return nil, forgetBootstrap(opts.Bootstrap)
	}
	raw, err := os.ReadFile(opts.Bootstrap)
	if err != nil {
		return nil, fmt.Errorf("reading the bootstrap data of a machine that is not enrolled: %w", err)
	}
	data, err := bootstrap.Parse(raw)
	if err != nil {
		return nil, err
	}
	if known := st.get(); known.MachineUID != "" && (known.MachineUID != data.MachineUID || known.ClusterUID != data.ClusterUID) {
		return nil, fmt.Errorf("the directory belongs to machine %s of cluster %s, and the bootstrap data to machine %s of cluster %s",
			known.MachineUID, known.ClusterUID, data.MachineUID, data.ClusterUID)
	}
	pair, err := tls.X509KeyPair([]byte(data.Certificate), []byte(data.Key))
	if err != nil {
		return nil, errors.New("the certificate and the key of the bootstrap data do not belong together")
	}
	pool, err := pki.Pool([]byte(data.AgentCA))
	if err != nil {
		return nil, fmt.Errorf("bootstrap data: %w", err)
	}
	return &firstContact{cert: pair, pool: pool}, st.update(func(f *facts) {
		f.Cluster, f.ClusterUID, f.Machine, f.MachineUID = data.Cluster, data.ClusterUID, data.Machine, data.MachineUID
	})
}

func forgetBootstrap(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("deleting the bootstrap data: %w", err)
	}
	return nil
}

func openIdentity(opts Options, st *state) (*identity.Store, error) {
	f := st.get()
	who := identity.Machine{ClusterUID: f.ClusterUID, UID: f.MachineUID, Address: net.ParseIP(opts.Address)}
	store, err := identity.Open(opts.Dir, who, f.Enrolled)
	if err != nil {
		return nil, err
	}
	if store.Enrolled() {
		// Also when a crash came between the two.
		return store, noteEnrolled(opts, st)
	}
	return store, nil
}

func noteEnrolled(opts Options, st *state) error {
	if !st.get().Enrolled {
		if err := st.update(func(f *facts) { f.Enrolled = true }); err != nil {
			return err
		}
	}
	return forgetBootstrap(opts.Bootstrap)
}

// serverTLS presents the machine's own identity as soon as there is one, and
// lets in the controller of its own cluster alone.
func serverTLS(st *state, store *identity.Store, first *firstContact) *tls.Config {
	want := pki.ControllerName(st.get().ClusterUID)
	current := func() (*tls.Certificate, *x509.CertPool) {
		if cert, pool := store.Agent(); cert != nil {
			return cert, pool
		}
		return &first.cert, first.pool
	}
	return pki.ServerTLS(
		func() (*tls.Certificate, error) { cert, _ := current(); return cert, nil },
		func() *x509.CertPool { _, pool := current(); return pool },
		func(cn string) error {
			if cn != want {
				return fmt.Errorf("%q is not the controller of this machine's cluster", cn)
			}
			return nil
		})
}
