package management

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"syscall"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// store is the etcd of the management API: one member, on loopback, spoken to
// over mutual TLS because loopback is shared with every user of the machine.
type store struct {
	child *child
	place place
	ids   *identities
}

const (
	etcdGrace  = 15 * time.Second
	portClient = "client"
	portPeer   = "peer"
)

// startStore runs etcd in dir and waits until it answers.
func startStore(ctx context.Context, dir, binary string, log *slog.Logger) (*store, error) {
	ids, err := openIdentities(filepath.Join(dir, "pki"), "etcdmanager management etcd", time.Now())
	if err != nil {
		return nil, err
	}
	s := &store{ids: ids, child: &child{
		name: "etcd", path: binary, log: log, grace: etcdGrace,
		// SIGTERM: it is to end well even when its parent did not.
		onDeath: syscall.SIGTERM,
		logFile: filepath.Join(dir, "etcd.log"), pidFile: filepath.Join(dir, "etcd.pid"),
	}}
	// The port of a leftover is free only when the leftover is gone.
	if err := endLeftover(ctx, s.child.pidFile, etcdGrace); err != nil {
		return nil, fmt.Errorf("end the etcd of an earlier run: %w", err)
	}
	if s.place, err = takePlace(filepath.Join(dir, "etcd.place"), portClient, portPeer); err != nil {
		return nil, err
	}
	caller, err := s.issue()
	if err != nil {
		return nil, err
	}
	client, err := httpClient(ids.authority.CertPEM(), caller)
	if err != nil {
		return nil, err
	}
	s.child.args = s.args(dir)
	if err := s.child.start(ctx); err != nil {
		return nil, err
	}
	if err := waitReady(ctx, s.child, client, s.place.url(portClient)+"/health"); err != nil {
		s.child.stop(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

// issue makes the certificates and answers that of the only client.
func (s *store) issue() (pair, error) {
	// Both usages: etcd's own gateway dials the port it serves (F132).
	if _, err := s.ids.leaf("server", pki.Leaf{Name: "etcd", IPs: s.place.ips(), Usage: pki.Peer}); err != nil {
		return pair{}, err
	}
	return s.ids.leaf("client", pki.Leaf{Name: "kube-apiserver", Usage: pki.Client})
}

func (s *store) args(dir string) []string {
	cert, key, ca := s.ids.certFile("server"), s.ids.keyFile("server"), s.ids.certFile("ca")
	client, peer := s.place.url(portClient), s.place.url(portPeer)
	return []string{
		"--name=management",
		"--data-dir=" + filepath.Join(dir, "data"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=management=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + ca, "--cert-file=" + cert, "--key-file=" + key,
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + ca, "--peer-cert-file=" + cert, "--peer-key-file=" + key,
		"--peer-cert-allowed-cn=etcd", // a client's certificate is no peer's
		"--tls-min-version=TLS1.2",
		"--log-level=warn",
	}
}
