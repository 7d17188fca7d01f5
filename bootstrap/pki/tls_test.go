package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// talk lets a client and a server shake hands over loopback and exchange a
// byte each way, and answers what the client and the server came to.
func talk(t *testing.T, client, server *tls.Config) (state tls.ConnectionState, clientErr, serverErr error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	served := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			served <- err
			return
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(patience))
		served <- exchange(tls.Server(conn, server))
	}()
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	secured := tls.Client(conn, client)
	clientErr = exchange(secured)
	_ = conn.Close()
	return secured.ConnectionState(), clientErr, <-served
}

func exchange(conn *tls.Conn) error {
	if err := conn.Handshake(); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

func only(want string) func(string) error {
	return func(cn string) error {
		if cn != want {
			return fmt.Errorf("it is %s and not %s", cn, want)
		}
		return nil
	}
}

// holder is a certificate with its key, issued at a time.
func holder(t *testing.T, a *Authority, leaf Leaf, at time.Time) (certPEM, keyPEM []byte) {
	t.Helper()
	if leaf.Life == 0 {
		leaf.Life = time.Hour
	}
	certPEM, keyPEM, err := a.IssuePair(leaf, at)
	if err != nil {
		t.Fatal(err)
	}
	return certPEM, keyPEM
}

func serve(t *testing.T, a *Authority, leaf Leaf, at time.Time, clients *Authority) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(holder(t, a, leaf, at))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := Pool(clients.CertPEM())
	if err != nil {
		t.Fatal(err)
	}
	return ServerTLS(
		func() (*tls.Certificate, error) { return &pair, nil },
		func() *x509.CertPool { return pool },
		only("controller"))
}

func dial(t *testing.T, a *Authority, leaf Leaf, at time.Time, believed *Authority) *tls.Config {
	t.Helper()
	certPEM, keyPEM := holder(t, a, leaf, at)
	config, err := ClientTLS(certPEM, keyPEM, believed.CertPEM(), only("agent"))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestAgentAndControllerKnowEachOther(t *testing.T) {
	now := time.Now()
	long := now.Add(-48 * time.Hour)
	ours, theirs := newAuthority(t, "ca", long), newAuthority(t, "ca", long)
	agent, controller := Leaf{Name: "agent", Usage: Server}, Leaf{Name: "controller", Usage: Client}
	server := serve(t, ours, agent, now, ours)
	client := dial(t, ours, controller, now, ours)

	for _, test := range []struct {
		name           string
		client, server *tls.Config
		want           string // the refusal, as whoever refuses says it; empty: they talk
	}{
		{"as it should be, at any address", client, server, ""},
		{"client of another cluster", dial(t, theirs, controller, now, ours), server, "unknown authority"},
		{"client expired", dial(t, ours, controller, long, ours), server, "expired"},
		{"client not valid yet", dial(t, ours, controller, now.Add(3*time.Hour), ours), server, "not yet valid"},
		{"client with a server's certificate", dial(t, ours, Leaf{Name: "controller", Usage: Server}, now, ours), server, "incompatible key usage"},
		{"client with another name", dial(t, ours, Leaf{Name: "agent", Usage: Client}, now, ours), server, "it is agent and not controller"},
		{"server of another cluster", client, serve(t, theirs, agent, now, ours), "unknown authority"},
		{"server expired", client, serve(t, ours, agent, long, ours), "expired"},
		{"server with a client's certificate", client, serve(t, ours, Leaf{Name: "agent", Usage: Client}, now, ours), "incompatible key usage"},
		{"server with another name", client, serve(t, ours, Leaf{Name: "other", Usage: Server}, now, ours), "it is other and not agent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, clientErr, serverErr := talk(t, test.client, test.server)
			if test.want == "" {
				if clientErr != nil || serverErr != nil {
					t.Fatalf("client: %v; server: %v", clientErr, serverErr)
				}
				return
			}
			if clientErr == nil {
				t.Fatal("the client was answered")
			}
			if said := fmt.Sprint(clientErr, serverErr); !strings.Contains(said, test.want) {
				t.Errorf("client: %v; server: %v; want …%s…", clientErr, serverErr, test.want)
			}
		})
	}
}

func TestServerRefusesClientsThatShowLess(t *testing.T) {
	now := time.Now()
	a := newAuthority(t, "ca", now)
	server := serve(t, a, Leaf{Name: "agent", Usage: Server}, now, a)
	client := dial(t, a, Leaf{Name: "controller", Usage: Client}, now, a)

	anonymous := client.Clone()
	anonymous.Certificates = nil
	if _, err, _ := talk(t, anonymous, server); err == nil {
		t.Error("a client without a certificate was answered")
	}
	old := client.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, err, _ := talk(t, old, server); err == nil {
		t.Error("TLS 1.2 was spoken")
	}
}

// TestLeafIsNoAuthority: the holder of a leaf cannot make itself another one.
func TestLeafIsNoAuthority(t *testing.T) {
	now := time.Now()
	a := newAuthority(t, "ca", now)
	certPEM, keyPEM := holder(t, a, Leaf{Name: "machine", Usage: Peer}, now)
	key, err := ParseKey(keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	impostor := &Authority{cert: decode(t, certPEM), key: key}
	forged, forgedKey := holder(t, impostor, Leaf{Name: "controller", Usage: Client}, now)
	client, err := ClientTLS(append(forged, certPEM...), forgedKey, a.CertPEM(), only("agent"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err, _ := talk(t, client, serve(t, a, Leaf{Name: "agent", Usage: Server}, now, a)); err == nil {
		t.Error("a client was believed whose certificate a machine signed")
	}
}

// TestServerReloadsAtEveryHandshake: new certificates and authorities count at
// once, and a client that the old ones let in cannot resume.
func TestServerReloadsAtEveryHandshake(t *testing.T) {
	now := time.Now()
	old, next := newAuthority(t, "ca", now), newAuthority(t, "ca", now)
	var current atomic.Pointer[Authority]
	current.Store(old)
	server := ServerTLS(
		func() (*tls.Certificate, error) {
			certPEM, keyPEM, err := current.Load().IssuePair(Leaf{Name: "agent", Usage: Server, Life: time.Hour}, now)
			if err != nil {
				return nil, err
			}
			pair, err := tls.X509KeyPair(certPEM, keyPEM)
			return &pair, err
		},
		func() *x509.CertPool { pool, _ := Pool(current.Load().CertPEM()); return pool },
		only("controller"))
	controller := Leaf{Name: "controller", Usage: Client}
	before, after := dial(t, old, controller, now, old), dial(t, next, controller, now, next)
	before.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	before.ServerName = "agent" // the key of the cache

	for range 2 {
		state, err, _ := talk(t, before, server)
		if err != nil {
			t.Fatal(err)
		}
		if state.DidResume {
			t.Error("a session was resumed")
		}
	}
	current.Store(next)
	if _, err, _ := talk(t, before, server); err == nil {
		t.Error("the old authority is still believed")
	}
	if _, err, _ := talk(t, after, server); err != nil {
		t.Errorf("the new authority is not believed: %v", err)
	}
}

func TestTLSNeedsAuthoritiesAndNames(t *testing.T) {
	now := time.Now()
	a := newAuthority(t, "ca", now)
	certPEM, keyPEM := holder(t, a, Leaf{Name: "controller", Usage: Client}, now)
	if _, err := ClientTLS(certPEM, keyPEM, nil, only("agent")); err == nil {
		t.Error("a client without authorities would believe the operating system's")
	}
	if _, err := ClientTLS(certPEM, keyPEM, a.CertPEM(), nil); err == nil {
		t.Error("a client would talk to any agent")
	}
	client := dial(t, a, Leaf{Name: "controller", Usage: Client}, now, a)
	pair, err := tls.X509KeyPair(holder(t, a, Leaf{Name: "agent", Usage: Server}, now))
	if err != nil {
		t.Fatal(err)
	}
	have := func() (*tls.Certificate, error) { return &pair, nil }
	none := func() *x509.CertPool { return nil }
	if _, err, _ := talk(t, client, ServerTLS(have, none, only("controller"))); err == nil {
		t.Error("a server without authorities believes the operating system's")
	}
	missing := func() (*tls.Certificate, error) { return nil, errors.New("no certificate yet") }
	pool, err := Pool(a.CertPEM())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = talk(t, client, ServerTLS(missing, func() *x509.CertPool { return pool }, only("controller")))
	if err == nil || !strings.Contains(err.Error(), "no certificate yet") {
		t.Errorf("got %v", err)
	}
}
