package release

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// patience is for machines with much else to do.
const patience = 2 * time.Minute

// fleet is the certificates of one cluster under test.
type fleet struct {
	dir          string
	client, peer *pki.Authority
	peerCN       string
	since        time.Time
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{dir: t.TempDir(), peerCN: pki.PeerName("cluster-uid"), since: time.Now().Add(-time.Hour)}
	var err error
	if f.client, err = pki.NewAuthority("demo-etcd-client", f.since); err != nil {
		t.Fatal(err)
	}
	if f.peer, err = pki.NewAuthority("demo-etcd-peer", f.since); err != nil {
		t.Fatal(err)
	}
	return f
}

// member is one of a fleet, not started, on an address of its own.
func (f *fleet) member(t *testing.T, name string) Member {
	t.Helper()
	address := fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()%64, rand.IntN(256), 1+rand.IntN(254))
	dir := filepath.Join(f.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	in := func(file string) string { return filepath.Join(dir, file) }
	m := Member{
		Name: name, DataDir: in("data"), LogFile: in("etcd.log"),
		ClientURL: "https://" + address + ":2379", PeerURL: "https://" + address + ":2380",
		Token: "token", Found: true, PeerCN: f.peerCN,
		Certs: Files{
			ServerCert: in("server.crt"), ServerKey: in("server.key"), ClientCA: in("client-ca.crt"),
			PeerCert: in("peer.crt"), PeerKey: in("peer.key"), PeerCA: in("peer-ca.crt"),
		},
		Settings: protocol.Settings{QuotaBackendBytes: 1 << 30},
	}
	m.InitialCluster = m.Name + "=" + m.PeerURL
	ips := []net.IP{net.ParseIP(address)}
	put(t, m.Certs.ClientCA, f.client.CertPEM())
	put(t, m.Certs.PeerCA, f.peer.CertPEM())
	issue(t, f.client, pki.Leaf{Name: pki.ServerName(name), IPs: ips, Usage: pki.Server}, m.Certs.ServerCert, m.Certs.ServerKey)
	issue(t, f.peer, pki.Leaf{Name: f.peerCN, IPs: ips, Usage: pki.Peer}, m.Certs.PeerCert, m.Certs.PeerKey)
	return m
}

func put(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func issue(t *testing.T, a *pki.Authority, leaf pki.Leaf, certPath, keyPath string) {
	t.Helper()
	leaf.Life = time.Hour
	certPEM, keyPEM, err := a.IssuePair(leaf, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	put(t, certPath, certPEM)
	put(t, keyPath, keyPEM)
}

// start runs a member of a version until the test ends.
func start(t *testing.T, version string, m Member) {
	t.Helper()
	line, err := Flags(version, m)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(etcdBinary(t, version), line...)
	command.Env = []string{} // etcd takes flags from the environment too
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var early strings.Builder // what it says before it logs
	command.Stderr, command.Stdout = &early, &early
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		err := <-ended
		if t.Failed() {
			log, _ := os.ReadFile(m.LogFile)
			t.Logf("%s (%v): %s\n%s", m.Name, err, early.String(), log[max(0, len(log)-1500):])
		}
	})
}

// identity is how a client of a test shows itself; nil: not at all.
type identity struct {
	authority *pki.Authority
	leaf      pki.Leaf
	at        time.Time
}

func (f *fleet) tls(t *testing.T, show *identity) *tls.Config {
	t.Helper()
	pool, err := pki.Pool(append(f.client.CertPEM(), f.peer.CertPEM()...))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if show == nil {
		return config
	}
	leaf := show.leaf
	leaf.Life = 30 * time.Minute
	certPEM, keyPEM, err := show.authority.IssuePair(leaf, show.at)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	// Whatever the server says it would take, show it.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return config
}

func (f *fleet) controller() *identity {
	return &identity{f.client, pki.Leaf{Name: pki.EtcdClientName(), Usage: pki.Client}, time.Now()}
}

func connect(t *testing.T, config *tls.Config, members ...Member) *clientv3.Client {
	t.Helper()
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, m.ClientURL)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: config, Logger: zap.NewNop(), DialTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// visit asks for /version, which both ports of etcd answer without any right
// beyond the connection.
func visit(t *testing.T, url string, config *tls.Config) error {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	response, err := client.Get(url + "/version")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}
