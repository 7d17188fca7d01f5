package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/bootstrap/release"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// size of every cluster here.
const size = 3

// plain is three etcd processes as somebody would start them by hand, with the
// flags and certificates that the product gives its members.
type plain struct {
	clients, peers *pki.Authority
	tls            *tls.Config
	members        [size]release.Member
	processes      [size]*exec.Cmd
}

// newPlain lays out everything but the processes: by hand that is done before
// the clock starts.
func newPlain(b *testing.B) *plain {
	b.Helper()
	p := &plain{clients: authority(b, "clients"), peers: authority(b, "peers")}
	dir, addresses := b.TempDir(), map[string]bool{}
	var initial []string
	for i := range p.members {
		address := rig.FreeLoopback(b)
		for addresses[address] {
			address = rig.FreeLoopback(b)
		}
		addresses[address] = true
		p.members[i] = p.lay(b, filepath.Join(dir, fmt.Sprint(i)), fmt.Sprintf("plain-%d", i), address)
		initial = append(initial, p.members[i].Name+"="+p.members[i].PeerURL)
	}
	for i := range p.members {
		p.members[i].InitialCluster = strings.Join(initial, ",")
	}
	certPEM, keyPEM := issue(b, p.clients, pki.Leaf{Name: "bench", Usage: pki.Client})
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		b.Fatal(err)
	}
	pool, err := pki.Pool(p.clients.CertPEM())
	if err != nil {
		b.Fatal(err)
	}
	p.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool}
	b.Cleanup(p.stop)
	return p
}

// lay makes one member's directory with its certificates. Its settings are
// those that an EtcdCluster has by default.
func (p *plain) lay(b *testing.B, dir, name, address string) release.Member {
	b.Helper()
	in := func(file string) string { return filepath.Join(dir, file) }
	m := release.Member{
		Name: name, DataDir: in("data"), LogFile: in("etcd.log"), Token: b.Name(), Found: true, PeerCN: "peer",
		ClientURL: "https://" + net.JoinHostPort(address, "2379"), PeerURL: "https://" + net.JoinHostPort(address, "2380"),
		Certs: release.Files{
			ServerCert: in("server.crt"), ServerKey: in("server.key"), ClientCA: in("clients.crt"),
			PeerCert: in("peer.crt"), PeerKey: in("peer.key"), PeerCA: in("peers.crt"),
		},
		Settings: protocol.Settings{QuotaBackendBytes: 8 << 30, HeartbeatMilliseconds: 100, ElectionMilliseconds: 1000},
	}
	ips := []net.IP{net.ParseIP(address)}
	serverCert, serverKey := issue(b, p.clients, pki.Leaf{Name: name, IPs: ips, Usage: pki.Peer})
	peerCert, peerKey := issue(b, p.peers, pki.Leaf{Name: m.PeerCN, IPs: ips, Usage: pki.Peer})
	if err := os.MkdirAll(m.DataDir, 0o700); err != nil {
		b.Fatal(err)
	}
	for path, content := range map[string][]byte{
		m.Certs.ClientCA: p.clients.CertPEM(), m.Certs.PeerCA: p.peers.CertPEM(),
		m.Certs.ServerCert: serverCert, m.Certs.ServerKey: serverKey, m.Certs.PeerCert: peerCert, m.Certs.PeerKey: peerKey,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

func authority(b *testing.B, name string) *pki.Authority {
	b.Helper()
	a, err := pki.NewAuthority(name, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	return a
}

func issue(b *testing.B, a *pki.Authority, leaf pki.Leaf) (certPEM, keyPEM []byte) {
	b.Helper()
	leaf.Life = time.Hour
	certPEM, keyPEM, err := a.IssuePair(leaf, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	return certPEM, keyPEM
}

func (p *plain) start(b *testing.B) {
	b.Helper()
	for i, m := range p.members {
		flags, err := release.Flags(rig.Version, m)
		if err != nil {
			b.Fatal(err)
		}
		etcd := exec.Command(rig.Etcd(b, rig.Version, "etcd"), flags...)
		etcd.Env = []string{} // etcd takes flags from the environment too
		etcd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := etcd.Start(); err != nil {
			b.Fatal(err)
		}
		p.processes[i] = etcd
	}
}

// stop ends what runs. It may be called again.
func (p *plain) stop() {
	for i := range p.processes {
		p.kill(i)
	}
}

func (p *plain) kill(i int) {
	if etcd := p.processes[i]; etcd != nil {
		_ = etcd.Process.Kill()
		_ = etcd.Wait() // it ends by the signal
		p.processes[i] = nil
	}
}

func (p *plain) urls() []string {
	var urls []string
	for _, m := range p.members {
		urls = append(urls, m.ClientURL)
	}
	return urls
}

// client dials again soon: grpc's own pauses would be measured instead of etcd.
func (p *plain) client(b *testing.B, endpoints ...string) *clientv3.Client {
	b.Helper()
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: p.tls, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond}, MinConnectTimeout: time.Second,
		})},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = etcd.Close() })
	return etcd
}

// waitServing waits until each of the three answers a linearizable read, for
// which there has to be a leader.
func (p *plain) waitServing(b *testing.B) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), rig.Timeout)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, size)
	for i, url := range p.urls() {
		etcd := p.client(b, url)
		wg.Go(func() { errs[i] = untilRead(ctx, etcd) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatalf("plain etcd: %v\n%s", err, rig.Tail(p.members[0].LogFile))
	}
}

func untilRead(ctx context.Context, etcd *clientv3.Client) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		one, cancel := context.WithTimeout(ctx, time.Second)
		// Bare, because the client's own retries have pauses too.
		_, err := etcdserverpb.NewKVClient(etcd.ActiveConnection()).Range(one, &etcdserverpb.RangeRequest{Key: []byte("k")}, grpc.WaitForReady(true))
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a linearizable read: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

func (p *plain) killLeader(b *testing.B) {
	b.Helper()
	for i, url := range p.urls() {
		ctx, cancel := context.WithTimeout(b.Context(), rig.Timeout)
		status, err := p.client(b, url).Status(ctx, url)
		cancel()
		if err != nil {
			b.Fatalf("ask plain etcd who leads: %v", err)
		}
		if status.Leader == status.Header.MemberId {
			p.kill(i)
			return
		}
	}
	b.Fatal("none of the three plain etcd leads")
}
