package agent_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/client"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/bootstrap/release"
)

const (
	deadline = 120 * time.Second // for anything; nothing here is about speed
	newest   = "3.7.3"
)

// optionsVariable makes the test binary an agent, so that there is a process
// to kill.
const optionsVariable = "ETCDMANAGER_TEST_AGENT"

func TestMain(m *testing.M) {
	if raw := os.Getenv(optionsVariable); raw != "" {
		var opts agent.Options
		if err := json.Unmarshal([]byte(raw), &opts); err != nil {
			panic(err)
		}
		if err := agent.Run(context.Background(), opts); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "releases")
	if err != nil {
		panic(err)
	}
	fetched.Dir = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// fetched has releases for the hosts that don't fetch their own, which takes
// long with the race detector.
var fetched release.Fetcher

// prefetch gives the host a release as if it had fetched it.
func (h *host) prefetch(version string) *host {
	h.t.Helper()
	from, err := fetched.Ensure(h.t.Context(), version, mirror(h.t, version), nil, nil)
	must(h.t, err)
	to := filepath.Join(h.opts.Dir, "releases", filepath.Base(from.Dir))
	must(h.t, os.MkdirAll(to, 0o755))
	files, err := os.ReadDir(from.Dir)
	must(h.t, err)
	for _, file := range files {
		must(h.t, os.Link(filepath.Join(from.Dir, file.Name()), filepath.Join(to, file.Name())))
	}
	return h
}

// cluster has what the controller of one cluster holds.
type cluster struct {
	uid                    string
	agents, clients, peers *pki.Authority
	cert, key              []byte // the controller's, towards agents
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{uid: fmt.Sprintf("c-%08x", rand.Uint32())}
	for _, a := range []**pki.Authority{&c.agents, &c.clients, &c.peers} {
		made, err := pki.NewAuthority("test", time.Now())
		must(t, err)
		*a = made
	}
	c.cert, c.key = c.controller(t, time.Hour)
	return c
}

func (c *cluster) controller(t *testing.T, life time.Duration) (cert, key []byte) {
	t.Helper()
	now := time.Now()
	if life < 0 {
		// The authority backdates by an hour.
		now = now.Add(life)
		life = time.Minute
	}
	cert, key, err := c.agents.IssuePair(pki.Leaf{Name: pki.ControllerName(c.uid), Usage: pki.Client, Life: life}, now)
	must(t, err)
	return cert, key
}

// host is a machine with its agent.
type host struct {
	t       *testing.T
	cluster *cluster
	name    string
	uid     string
	opts    agent.Options
	client  *client.Client
	conf    func(cert, key []byte) *client.Client

	stop func()
}

func (c *cluster) newHost(t *testing.T, name string, change ...func(*agent.Options)) *host {
	t.Helper()
	h := &host{t: t, cluster: c, name: name, uid: fmt.Sprintf("m-%08x", rand.Uint32())}
	dir := t.TempDir()
	h.opts = agent.Options{
		Dir: filepath.Join(dir, "agent"), Bootstrap: filepath.Join(dir, "bootstrap.json"),
		Address: fmt.Sprintf("127.%d.%d.%d", 16+os.Getpid()%200, 1+rand.IntN(250), 2+rand.IntN(250)),
		Version: "test", Log: slog.New(slog.DiscardHandler),
		ProbeInterval: 200 * time.Millisecond, DataInterval: 500 * time.Millisecond,
	}
	if testing.Verbose() {
		h.opts.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	for _, f := range change {
		f(&h.opts)
	}
	h.writeBootstrap()
	h.conf = func(cert, key []byte) *client.Client {
		conf, err := pki.ClientTLS(cert, key, c.agents.CertPEM(), func(cn string) error {
			if cn != pki.AgentName(h.uid) && cn != pki.BootstrapName(h.uid) {
				return errors.New("another machine")
			}
			return nil
		})
		must(t, err)
		return client.New(h.opts.Address, conf)
	}
	h.client = h.conf(c.cert, c.key)
	t.Cleanup(h.client.CloseIdle)
	t.Cleanup(h.killEtcd)
	return h
}

func (h *host) writeBootstrap() {
	h.t.Helper()
	cert, key, err := h.cluster.agents.IssuePair(pki.Leaf{
		Name: pki.BootstrapName(h.uid), IPs: []net.IP{net.ParseIP(h.opts.Address)}, Usage: pki.Server, Life: time.Hour,
	}, time.Now())
	must(h.t, err)
	raw, err := json.Marshal(bootstrap.Data{
		Cluster: "test", ClusterUID: h.cluster.uid, Machine: h.name, MachineUID: h.uid,
		AgentCA: string(h.cluster.agents.CertPEM()), Certificate: string(cert), Key: string(key),
	})
	must(h.t, err)
	must(h.t, os.WriteFile(h.opts.Bootstrap, raw, 0o600))
}

// start runs the agent in this process, until stop.
func (h *host) start() *host {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, h.opts) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Errorf("the agent of %s: %v", h.name, err)
		}
	})
	h.t.Cleanup(h.stop)
	h.await("the agent to answer", func(protocol.Seen) bool { return true })
	return h
}

// spawn runs the agent as a process of its own.
func (h *host) spawn() *exec.Cmd {
	h.t.Helper()
	opts := h.opts
	opts.Log = nil
	raw, err := json.Marshal(opts)
	must(h.t, err)
	self, err := os.Executable()
	must(h.t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), optionsVariable+"="+string(raw))
	must(h.t, cmd.Start())
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	h.await("the agent to answer", func(protocol.Seen) bool { return true })
	return cmd
}

func (h *host) killEtcd() {
	raw, err := os.ReadFile(filepath.Join(h.opts.Dir, "etcd.pid"))
	if err != nil {
		return
	}
	var note struct{ PID int }
	if json.Unmarshal(raw, &note) != nil || note.PID <= 1 || !h.isEtcd(note.PID) {
		return
	}
	_ = syscall.Kill(note.PID, syscall.SIGKILL)
	eventually(h.t, "etcd to be gone", func() bool {
		_, _ = syscall.Wait4(note.PID, nil, syscall.WNOHANG, nil)
		return !h.isEtcd(note.PID)
	})
}

func (h *host) isEtcd(pid int) bool {
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(cmdline), "--data-dir="+h.opts.Dir+"/")
}

// sign answers a machine's requests as the controller does.
func (c *cluster) sign(t *testing.T, h *host, r protocol.Requests) protocol.Identity {
	t.Helper()
	ips := []net.IP{net.ParseIP(h.opts.Address)}
	sign := func(a *pki.Authority, csr, name string, usage pki.Usage, ips []net.IP) string {
		cert, err := a.Sign([]byte(csr), pki.Leaf{Name: name, IPs: ips, Usage: usage, Life: time.Hour}, time.Now())
		must(t, err)
		return string(cert)
	}
	return protocol.Identity{
		Agent:    sign(c.agents, r.Agent, pki.AgentName(h.uid), pki.Server, ips),
		Server:   sign(c.clients, r.Server, pki.ServerName(h.uid), pki.Server, ips),
		Peer:     sign(c.peers, r.Peer, pki.PeerName(c.uid), pki.Peer, ips),
		Client:   sign(c.clients, r.Client, pki.ProbeName(h.uid), pki.Client, nil),
		AgentCA:  string(c.agents.CertPEM()),
		ClientCA: string(c.clients.CertPEM()),
		PeerCA:   string(c.peers.CertPEM()),
	}
}

func (h *host) enrol() *host {
	h.t.Helper()
	requests, err := h.client.Requests(h.t.Context())
	must(h.t, err)
	_, err = h.client.PutIdentity(h.t.Context(), 1, h.cluster.sign(h.t, h, requests))
	must(h.t, err)
	return h
}

// wanted is a member that founds, with the others.
func (h *host) wanted(version string, others ...*host) protocol.Wanted {
	w := protocol.Wanted{
		Name: h.name, Run: true, Version: version, Mirror: mirror(h.t, version), Token: "token-" + h.cluster.uid, Found: true,
	}
	for _, o := range append([]*host{h}, others...) {
		w.InitialCluster = append(w.InitialCluster, protocol.Peer{Name: o.name, URL: o.peerURL()})
	}
	return w
}

func (h *host) peerURL() string {
	return fmt.Sprintf("https://%s:%d", h.opts.Address, bootstrap.PortPeer)
}

// etcdClient talks to the host's etcd as a consumer does.
func (h *host) etcdClient() *clientv3.Client {
	h.t.Helper()
	cert, key, err := h.cluster.clients.IssuePair(pki.Leaf{Name: pki.EtcdClientName(), Usage: pki.Client, Life: time.Hour}, time.Now())
	must(h.t, err)
	pair, err := tls.X509KeyPair(cert, key)
	must(h.t, err)
	roots, err := pki.Pool(h.cluster.clients.CertPEM())
	must(h.t, err)
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{fmt.Sprintf("https://%s:%d", h.opts.Address, bootstrap.PortClient)},
		TLS:       &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots},
		Logger:    zap.NewNop(),
	})
	must(h.t, err)
	h.t.Cleanup(func() { _ = etcd.Close() })
	return etcd
}

func (h *host) put(w protocol.Wanted) {
	h.t.Helper()
	_, err := h.client.PutMember(h.t.Context(), 1, w)
	must(h.t, err)
}

// refused asserts that a command is declined with a code.
func (h *host) refused(w protocol.Wanted, code string) string {
	h.t.Helper()
	_, err := h.client.PutMember(h.t.Context(), 1, w)
	return refusedWith(h.t, err, code)
}

func refusedWith(t *testing.T, err error, code string) string {
	t.Helper()
	var declined *client.RefusedError
	if !errors.As(err, &declined) || declined.Code != code {
		t.Fatalf("got %v, want a refusal with code %s", err, code)
	}
	return declined.Message
}

func (h *host) seen() protocol.Seen {
	h.t.Helper()
	seen, err := h.client.Seen(h.t.Context(), true)
	must(h.t, err)
	return seen
}

// await asks until what is seen is as wanted.
func (h *host) await(what string, done func(protocol.Seen) bool) protocol.Seen {
	h.t.Helper()
	var last protocol.Seen
	var lastErr error
	ok := poll(func() bool {
		last, lastErr = h.client.Seen(h.t.Context(), true)
		return lastErr == nil && done(last)
	})
	if !ok {
		raw, _ := json.MarshalIndent(last, "", "  ")
		h.t.Fatalf("waited in vain for %s: %v\n%s", what, lastErr, raw)
	}
	return last
}

func (h *host) awaitServing() protocol.Seen {
	h.t.Helper()
	return h.await("etcd to serve", func(s protocol.Seen) bool { return s.Probe.Serving && s.Data.State == protocol.DataPresent })
}

func (h *host) awaitStopped() protocol.Seen {
	h.t.Helper()
	return h.await("etcd to stop", func(s protocol.Seen) bool { return !s.Process.Running })
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !poll(done) {
		t.Errorf("waited in vain for %s", what)
	}
}

func poll(done func() bool) bool { return pollEvery(50*time.Millisecond, done) }

func pollEvery(interval time.Duration, done func() bool) bool {
	limit := time.NewTimer(deadline)
	defer limit.Stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if done() {
			return true
		}
		select {
		case <-limit.C:
			return false
		case <-tick.C:
		}
	}
}

// mirror is where make testbin put the releases.
func mirror(t *testing.T, version string) string {
	t.Helper()
	dir, err := filepath.Abs("../../bin/testbin/mirror")
	must(t, err)
	if _, err := os.Stat(filepath.Join(dir, "v"+version)); err != nil {
		t.Fatalf("there is no release of etcd %s to test with; run make testbin: %v", version, err)
	}
	return "file://" + dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
