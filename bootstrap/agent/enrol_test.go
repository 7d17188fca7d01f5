package agent_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/client"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// knownAs is a client that believes one name only.
func (h *host) knownAs(want string) *client.Client {
	h.t.Helper()
	conf, err := pki.ClientTLS(h.cluster.cert, h.cluster.key, h.cluster.agents.CertPEM(), func(cn string) error {
		if cn != want {
			return errors.New("it is " + cn)
		}
		return nil
	})
	must(h.t, err)
	c := client.New(h.opts.Address, conf)
	h.t.Cleanup(c.CloseIdle)
	return c
}

func TestBootstrapIdentityIsForOnce(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").start()
	first, own := h.knownAs(pki.BootstrapName(h.uid)), h.knownAs(pki.AgentName(h.uid))
	requests, err := first.Requests(t.Context())
	must(t, err)
	if _, err := own.Seen(t.Context(), false); err == nil {
		t.Error("the agent has a name of its own before enrolment")
	}
	_, err = first.PutIdentity(t.Context(), 1, h.cluster.sign(t, h, requests))
	must(t, err)
	if _, err := first.Seen(t.Context(), false); err == nil {
		t.Error("the bootstrap identity is shown after enrolment")
	}
	if s, err := own.Seen(t.Context(), false); err != nil || !s.Enrolled {
		t.Errorf("enrolled: %+v, %v", s, err)
	}
	if _, err := os.Stat(h.opts.Bootstrap); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the bootstrap data is still there: %v", err)
	}
	// Nor does it come back with a restart, even if someone writes it again.
	h.stop()
	h.writeBootstrap()
	h.start()
	if _, err := own.Seen(t.Context(), false); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(h.opts.Bootstrap); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("bootstrap data of an enrolled machine is kept: %v", err)
	}
	// Losing the identity is no way back either.
	h.stop()
	must(t, os.RemoveAll(filepath.Join(h.opts.Dir, "identity")))
	h.writeBootstrap()
	if err := agent.Run(t.Context(), h.opts); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("an agent whose identity is gone: %v", err)
	}
}

func TestConnectionOfFirstContactCannotRenew(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").start()
	requests, err := h.client.Requests(t.Context())
	must(t, err)
	body, err := json.Marshal(h.cluster.sign(t, h, requests))
	must(t, err)
	pair, err := tls.X509KeyPair(h.cluster.cert, h.cluster.key)
	must(t, err)
	conf := &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true} //nolint:gosec // whoever it is
	// Both connections are made before enrolment, with the bootstrap identity.
	put := func(conn net.Conn) (status int, answer string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://agent/v1/identity", bytes.NewReader(body))
		must(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(protocol.EpochHeader, "1")
		resp, err := (&http.Transport{
			DialTLSContext:    func(context.Context, string, string) (net.Conn, error) { return conn, nil },
			DisableKeepAlives: true,
		}).RoundTrip(req)
		must(t, err)
		defer func() { _ = resp.Body.Close() }()
		raw, err := io.ReadAll(resp.Body)
		must(t, err)
		return resp.StatusCode, string(raw)
	}
	early, late := h.dial(t, conf), h.dial(t, conf)
	if status, answer := put(early); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, answer)
	}
	if status, answer := put(late); status != http.StatusBadRequest || !strings.Contains(answer, "before the machine got its certificates") {
		t.Errorf("status %d: %s", status, answer)
	}
}

func (h *host) dial(t *testing.T, conf *tls.Config) *tls.Conn {
	t.Helper()
	conn, err := (&tls.Dialer{Config: conf}).DialContext(t.Context(), "tcp", net.JoinHostPort(h.opts.Address, "2378"))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*tls.Conn)
}

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	h := c.newHost(t, "m1").start()
	attempts := func(stage string) {
		expiredCert, expiredKey := c.controller(t, -2*time.Hour)
		other := newCluster(t)
		leaf := func(name string, usage pki.Usage) [2][]byte {
			cert, key, err := c.agents.IssuePair(pki.Leaf{Name: name, Usage: usage, Life: time.Hour}, time.Now())
			must(t, err)
			return [2][]byte{cert, key}
		}
		for name, pair := range map[string][2][]byte{
			"another cluster's controller": {other.cert, other.key},
			"expired":                      {expiredCert, expiredKey},
			"another name":                 leaf(pki.ControllerName(other.uid), pki.Client),
			"an agent":                     leaf(pki.AgentName(h.uid), pki.Client),
			"not for clients":              leaf(pki.ControllerName(c.uid), pki.Server),
		} {
			stranger := h.conf(pair[0], pair[1])
			if _, err := stranger.Seen(t.Context(), false); err == nil {
				t.Errorf("%s: %s was let in", stage, name)
			}
			stranger.CloseIdle()
		}
		nobody := client.New(h.opts.Address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // whoever it is
		if _, err := nobody.Seen(t.Context(), false); err == nil {
			t.Errorf("%s: a client without a certificate was let in", stage)
		}
		nobody.CloseIdle()
	}
	attempts("before enrolment")
	h.enrol()
	attempts("after enrolment")
	if _, err := h.client.Seen(t.Context(), false); err != nil {
		t.Error(err)
	}
}

func TestRefusesCertificatesThatDoNotFit(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	h, other := c.newHost(t, "m1").start(), c.newHost(t, "m2").start()
	requests, err := h.client.Requests(t.Context())
	must(t, err)
	good := c.sign(t, h, requests)
	foreign, err := other.client.Requests(t.Context())
	must(t, err)
	theirs := c.sign(t, other, foreign)
	for name, c := range map[string]struct {
		change func(*protocol.Identity)
		says   string
	}{
		"another machine's":    {func(id *protocol.Identity) { *id = theirs }, "certificate"},
		"swapped":              {func(id *protocol.Identity) { id.Server, id.Peer = id.Peer, id.Server }, "certificate is for"},
		"another authority's":  {func(id *protocol.Identity) { id.PeerCA = id.ClientCA }, "peer certificate"},
		"authority missing":    {func(id *protocol.Identity) { id.AgentCA = "" }, "agent-ca"},
		"certificate missing":  {func(id *protocol.Identity) { id.Client = "" }, "client"},
		"a leaf for authority": {func(id *protocol.Identity) { id.ClientCA = id.Server }, "client-ca"},
		"peer for servers only (F131)": {func(id *protocol.Identity) {
			cert, err := h.cluster.peers.Sign([]byte(requests.Peer), pki.Leaf{
				Name: pki.PeerName(h.cluster.uid), IPs: []net.IP{net.ParseIP(h.opts.Address)}, Usage: pki.Server, Life: time.Hour,
			}, time.Now())
			must(t, err)
			id.Peer = string(cert)
		}, "incompatible key usage"},
	} {
		t.Run(name, func(t *testing.T) {
			id := good
			c.change(&id)
			_, err := h.client.PutIdentity(t.Context(), 1, id)
			if message := refusedWith(t, err, protocol.CodeInvalid); !strings.Contains(message, c.says) {
				t.Errorf("message %q does not speak of %q", message, c.says)
			}
		})
	}
	if s := h.seen(); s.Enrolled || len(s.Certificates) != 0 {
		t.Errorf("something refused had an effect: %+v", s)
	}
	_, err = h.client.PutIdentity(t.Context(), 1, good)
	must(t, err)
}

func TestRenewsWhileEtcdServes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	h := c.newHost(t, "m1").prefetch(newest).start().enrol()
	h.put(h.wanted(newest))
	before := h.awaitServing()
	same(t, before, h.enrol().awaitServing()) // the same keys

	keys, err := os.ReadFile(filepath.Join(h.opts.Dir, "identity", "server.key"))
	must(t, err)
	requests, err := h.client.NewRequests(t.Context())
	must(t, err)
	_, err = h.client.PutIdentity(t.Context(), 1, c.sign(t, h, requests))
	must(t, err)
	after := h.awaitServing()
	same(t, before, after)
	renewed, err := os.ReadFile(filepath.Join(h.opts.Dir, "identity", "server.key"))
	must(t, err)
	if bytes.Equal(keys, renewed) {
		t.Error("the key is the same")
	}
	for _, cert := range after.Certificates {
		if !cert.NotAfter.After(before.Certificates[0].NotAfter.Add(-time.Second)) {
			t.Errorf("certificate %+v", cert)
		}
	}
	generations, err := os.ReadDir(filepath.Join(h.opts.Dir, "identities"))
	if err != nil || len(generations) != 2 {
		t.Errorf("generations kept: %v, %v", generations, err)
	}
}

func TestOthersCannotReadTheMachinesKeys(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").start().enrol()
	err := filepath.WalkDir(h.opts.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	must(t, err)
}
