package agent

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// watcher looks at the other members from this machine. The controller, which
// may be cut off from a member that its peers see well, asks for that before
// it gives the member up (F168).
type watcher struct {
	own      string // this machine's peer URL
	interval time.Duration
	tls      func() *tls.Config // nil before enrolment
	members  func(context.Context) []string

	mu   sync.Mutex
	seen []protocol.Peering
}

func newWatcher(opts Options, p *prober, wanted func() *protocol.Wanted) *watcher {
	w := &watcher{own: opts.peerURL(), interval: opts.ProbeInterval, tls: p.tls}
	var last []string // kept for when the own etcd does not answer
	w.members = func(ctx context.Context) []string {
		if urls := p.memberURLs(ctx); len(urls) > 0 {
			last = urls
		}
		if told := wanted(); len(last) == 0 && told != nil {
			for _, peer := range told.InitialCluster {
				last = append(last, peer.URL)
			}
		}
		return last
	}
	return w
}

func (w *watcher) run(ctx context.Context) {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *watcher) latest() []protocol.Peering {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// look asks every other member for a linearizable read, all at once.
func (w *watcher) look(ctx context.Context) {
	conf := w.tls()
	if conf == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*probeDeadline)
	defer cancel()
	urls := slices.DeleteFunc(slices.Clone(w.members(ctx)), func(u string) bool { return u == w.own })
	seen := make([]protocol.Peering, len(urls))
	var asked sync.WaitGroup
	for i, peer := range urls {
		asked.Go(func() {
			err := read(ctx, clientOf(peer), conf)
			seen[i] = protocol.Peering{URL: peer, Serving: err == nil, At: time.Now()}
			if err != nil {
				seen[i].Error = err.Error()
			}
		})
	}
	asked.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = seen
}

// clientOf is where a member that other members reach at a URL serves clients.
func clientOf(peerURL string) string {
	u, err := url.Parse(peerURL)
	if err != nil {
		return peerURL
	}
	u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(bootstrap.PortClient))
	return u.String()
}

func read(ctx context.Context, endpoint string, conf *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, probeDeadline)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: conf, Context: ctx, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	_, err = client.Get(ctx, probeKey, clientv3.WithCountOnly())
	return err
}

// memberURLs lists the peer URLs of all members as the own etcd knows them, at
// once and without asking the others.
func (p *prober) memberURLs(ctx context.Context) []string {
	conf := p.tls()
	if conf == nil || !p.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeDeadline)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.url}, TLS: conf, Context: ctx, Logger: zap.NewNop()})
	if err != nil {
		return nil
	}
	defer func() { _ = client.Close() }()
	list, err := client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil
	}
	var urls []string
	for _, member := range list.Members {
		if len(member.PeerURLs) > 0 {
			urls = append(urls, member.PeerURLs[0])
		}
	}
	return urls
}
