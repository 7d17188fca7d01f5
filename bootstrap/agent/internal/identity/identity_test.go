package identity

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

var who = Machine{ClusterUID: "c", UID: "m", Address: net.ParseIP("127.9.9.9")}

func open(t *testing.T, dir string, enrolled bool) *Store {
	t.Helper()
	s, err := Open(dir, who, enrolled)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sign(t *testing.T, a *pki.Authority, requests protocol.Requests) protocol.Identity {
	t.Helper()
	one := func(csr, name string, usage pki.Usage, ips ...net.IP) string {
		cert, err := a.Sign([]byte(csr), pki.Leaf{Name: name, IPs: ips, Usage: usage, Life: time.Hour}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return string(cert)
	}
	ca := string(a.CertPEM())
	return protocol.Identity{
		Agent:   one(requests.Agent, pki.AgentName("m"), pki.Server, who.Address),
		Server:  one(requests.Server, pki.ServerName("m"), pki.Server, who.Address),
		Peer:    one(requests.Peer, pki.PeerName("c"), pki.Peer, who.Address),
		Client:  one(requests.Client, pki.ProbeName("m"), pki.Client),
		AgentCA: ca, ClientCA: ca, PeerCA: ca,
	}
}

func install(t *testing.T, s *Store, a *pki.Authority, fresh bool) {
	t.Helper()
	requests, err := s.Requests(fresh)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Install(sign(t, a, requests), time.Now()); err != nil {
		t.Fatal(err)
	}
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestKeysStayUntilCertificatesCome(t *testing.T) {
	dir := t.TempDir()
	fingerprint := func() string {
		requests, err := open(t, dir, false).Requests(false)
		if err != nil {
			t.Fatal(err)
		}
		print, err := pki.RequestFingerprint([]byte(requests.Agent))
		if err != nil {
			t.Fatal(err)
		}
		return print
	}
	// The controller signs for the keys it saw first, and for no others.
	if first, again := fingerprint(), fingerprint(); first != again {
		t.Error("another start made other keys")
	}
}

func TestInterruptedInstallLeavesTheOldIdentity(t *testing.T) {
	dir, a := t.TempDir(), authority(t)
	s := open(t, dir, false)
	install(t, s, a, false)
	before := s.Certificates()

	// As a crash leaves it: files of the next generation, the link not moved.
	half := filepath.Join(dir, "identities", "3")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "server.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, true)
	if got := s.Certificates(); len(got) != 4 || got[0] != before[0] {
		t.Errorf("certificates %v, before %v", got, before)
	}
	install(t, s, a, true)
	s = open(t, dir, true)
	if s.Generation() != 3 || !s.Enrolled() {
		t.Errorf("generation %d", s.Generation())
	}
}

func TestIssuerIsToldAmongAuthoritiesOfOneName(t *testing.T) {
	dir, old, next := t.TempDir(), authority(t), authority(t)
	s := open(t, dir, false)
	requests, err := s.Requests(false)
	if err != nil {
		t.Fatal(err)
	}
	id := sign(t, next, requests)
	bundle := string(old.CertPEM()) + string(next.CertPEM())
	id.AgentCA, id.ClientCA, id.PeerCA = bundle, bundle, bundle
	if err := s.Install(id, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, cert := range s.Certificates() {
		if cert.Issuer != next.Fingerprint() {
			t.Errorf("%s is by %s, want %s", cert.Name, cert.Issuer, next.Fingerprint())
		}
	}
}

func TestInstallRefusesByTheMachinesClock(t *testing.T) {
	a := authority(t)
	s := open(t, t.TempDir(), false)
	requests, err := s.Requests(false)
	if err != nil {
		t.Fatal(err)
	}
	id := sign(t, a, requests)
	var invalid *InvalidError
	for _, skew := range []time.Duration{-2 * time.Hour, 2 * time.Hour} { // F140
		if err := s.Install(id, time.Now().Add(skew)); !errors.As(err, &invalid) {
			t.Errorf("a clock off by %v: %v", skew, err)
		}
	}
	if s.Enrolled() {
		t.Error("enrolled")
	}
}

func TestIdentityThatIsGone(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, who, true); !errors.Is(err, ErrGone) {
		t.Errorf("nothing there: %v", err)
	}
	open(t, dir, false)
	if _, err := Open(dir, who, true); !errors.Is(err, ErrGone) {
		t.Errorf("keys without certificates: %v", err)
	}
}
