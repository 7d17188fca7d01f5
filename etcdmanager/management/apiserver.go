package management

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

const (
	apiServerGrace = 15 * time.Second
	portAPI        = "api"
)

// APIServerOptions say where a kube-apiserver runs and on which etcd.
type APIServerOptions struct {
	Dir        string   // for its certificates, log and kubeconfig; made if it is not there
	Binary     string   // of kube-apiserver
	Endpoints  []string // client URLs of the etcd it keeps its objects in
	EtcdCA     string   // file: whom to believe to be that etcd
	EtcdCert   string   // file: what to show to it
	EtcdKey    string   // file
	Kubeconfig string   // where to write it; by default Dir/kubeconfig
	ExtraArgs  []string // more flags, as --name=value
	Log        *slog.Logger
}

// APIServer is a running kube-apiserver on loopback, kept running until Stop.
// It authorizes by RBAC, lets nobody in anonymously and needs no controllers.
type APIServer struct {
	child      *child
	place      place
	ids        *identities
	admin      pair
	kubeconfig string
}

// StartAPIServer runs a kube-apiserver and waits until it is ready, three
// minutes at most. The context bounds the start alone. Started again on the
// same Dir it has the same address and certificates, so that its kubeconfig
// stays good. A *StartError says how its log ends.
func StartAPIServer(ctx context.Context, o APIServerOptions) (*APIServer, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s, err := prepareAPIServer(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("prepare a kube-apiserver in %s: %w", o.Dir, err)
	}
	client, err := httpClient(s.ids.authority.CertPEM(), s.admin)
	if err != nil {
		return nil, err
	}
	if err := s.child.start(ctx); err != nil {
		return nil, err
	}
	err = waitReady(ctx, s.child, client, s.place.url(portAPI)+"/readyz")
	if err == nil {
		err = s.waitDefaultNamespace(ctx)
	}
	if err != nil {
		s.Stop(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

func prepareAPIServer(ctx context.Context, o APIServerOptions) (*APIServer, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &APIServer{kubeconfig: o.Kubeconfig, child: &child{
		name: "kube-apiserver", path: o.Binary, log: o.Log, grace: apiServerGrace, onDeath: syscall.SIGKILL,
		logFile: filepath.Join(dir, "kube-apiserver.log"), pidFile: filepath.Join(dir, "kube-apiserver.pid"),
	}}
	if s.child.log == nil {
		s.child.log = slog.Default()
	}
	if s.kubeconfig == "" {
		s.kubeconfig = filepath.Join(dir, "kubeconfig")
	}
	if s.ids, err = openIdentities(filepath.Join(dir, "pki"), "etcdmanager kube-apiserver", time.Now()); err != nil {
		return nil, err
	}
	if err := endLeftover(ctx, s.child.pidFile, apiServerGrace); err != nil {
		return nil, fmt.Errorf("end the kube-apiserver of an earlier run: %w", err)
	}
	if s.place, err = takePlace(filepath.Join(dir, "kube-apiserver.place"), portAPI); err != nil {
		return nil, err
	}
	if err := s.issue(); err != nil {
		return nil, err
	}
	s.child.args = append(s.args(o), o.ExtraArgs...)
	return s, writeKubeconfig(s.kubeconfig, s.place.url(portAPI), s.ids.authority.CertPEM(), s.admin)
}

// issue makes the certificates, and the key that signs service accounts.
func (s *APIServer) issue() error {
	_, err := s.ids.leaf("server", pki.Leaf{
		Name: "kube-apiserver", IPs: s.place.ips(), DNS: []string{"localhost", "kubernetes.default.svc"}, Usage: pki.Server,
	})
	if err != nil {
		return err
	}
	if s.admin, err = s.ids.leaf("admin", pki.Leaf{Name: "etcdmanager-admin", Usage: pki.Client}, "system:masters"); err != nil {
		return err
	}
	file := s.ids.keyFile("service-accounts")
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	key, err := pki.NewKey()
	if err != nil {
		return err
	}
	raw, err := x509.MarshalECPrivateKey(key) // kube-apiserver finds the public key in this form only
	if err != nil {
		return err
	}
	return writePrivate(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}))
}

func (s *APIServer) args(o APIServerOptions) []string {
	address, accounts := s.place.Address.String(), s.ids.keyFile("service-accounts")
	return []string{
		"--etcd-servers=" + strings.Join(o.Endpoints, ","),
		"--etcd-cafile=" + o.EtcdCA, "--etcd-certfile=" + o.EtcdCert, "--etcd-keyfile=" + o.EtcdKey,
		"--bind-address=" + address, "--advertise-address=" + address, "--external-hostname=" + address,
		fmt.Sprintf("--secure-port=%d", s.place.Ports[portAPI]),
		"--tls-cert-file=" + s.ids.certFile("server"), "--tls-private-key-file=" + s.ids.keyFile("server"),
		"--client-ca-file=" + s.ids.certFile("ca"),
		"--anonymous-auth=false", "--authorization-mode=RBAC", "--profiling=false",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + accounts, "--service-account-signing-key-file=" + accounts,
		"--service-cluster-ip-range=10.0.0.0/24",
		// An address on loopback cannot be an endpoint.
		"--endpoint-reconciler-type=none",
		// No controller makes the default service accounts that it asks for.
		"--disable-admission-plugins=ServiceAccount",
		// Few clients: no need to hold as much in memory as for a big cluster.
		"--max-requests-inflight=200", "--max-mutating-requests-inflight=100",
	}
}

// Config for clients, as a member of system:masters. Each call makes a new one.
func (s *APIServer) Config() *rest.Config {
	return &rest.Config{
		Host:  s.place.url(portAPI),
		QPS:   200,
		Burst: 400,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: s.ids.authority.CertPEM(), CertData: s.admin.cert, KeyData: s.admin.key,
		},
	}
}

// Kubeconfig is the path of the file for kubectl.
func (s *APIServer) Kubeconfig() string { return s.kubeconfig }

// LogFile is the path of its log.
func (s *APIServer) LogFile() string { return s.child.logFile }

// PID of the process; 0 while it is being started again.
func (s *APIServer) PID() int { return s.child.PID() }

// Stop ends it and returns when it is gone: in 15 seconds at most, or when the
// context ends.
func (s *APIServer) Stop(ctx context.Context) { s.child.stop(ctx) }
