package stories

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

const (
	writeDeadline = 5 * time.Second
	writePause    = 20 * time.Millisecond
)

// load is writers that write all the time, as consumers with a deadline do:
// what an attempt leaves open is attempted again until then.
type load struct {
	clients []*clientv3.Client
	end     context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	wrote map[string]bool // keys whose write was acknowledged
	seen  tally
}

// tally is what writers saw up to a moment.
type tally struct {
	acknowledged, repeated int
	failed                 []error
	leaders                int // changes of the term
	gap                    time.Duration
	term                   uint64
	last                   time.Time
}

// startLoad starts writers on a cluster, each with a client of its own.
func startLoad(t *testing.T, f *rig.Fleet, cluster *v1alpha1.EtcdCluster, writers int) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{end: cancel, wrote: map[string]bool{}}
	for i := range writers {
		etcd := f.Etcd(cluster)
		l.clients = append(l.clients, etcd)
		l.running.Go(func() { l.write(ctx, etcd, fmt.Sprintf("load/%d/", i)) })
	}
	t.Cleanup(func() { l.stop() })
	rig.Eventually(t, rig.Timeout, "writes to be acknowledged", func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.seen.acknowledged < writers {
			return fmt.Errorf("%d are", l.seen.acknowledged)
		}
		return nil
	})
	return l
}

// follow gives the writers the endpoints that a cluster publishes.
func (l *load) follow(c *v1alpha1.EtcdCluster) {
	if len(c.Status.Endpoints) == 0 {
		return
	}
	for _, etcd := range l.clients {
		etcd.SetEndpoints(c.Status.Endpoints...)
	}
}

func (l *load) write(ctx context.Context, etcd *clientv3.Client, prefix string) {
	tick := time.NewTicker(writePause)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.one(ctx, etcd, prefix+fmt.Sprint(n))
		}
	}
}

func (l *load) one(ctx context.Context, etcd *clientv3.Client, key string) {
	within, cancel := context.WithTimeout(ctx, writeDeadline)
	defer cancel()
	tick := time.NewTicker(writePause)
	defer tick.Stop()
	for attempt := 0; ; attempt++ {
		put, err := etcd.Put(within, key, "x")
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		switch {
		case err == nil:
			l.acknowledge(key, put.Header.RaftTerm, time.Now())
		case within.Err() != nil:
			l.seen.failed = append(l.seen.failed, fmt.Errorf("%s at %s: %w", key, time.Now().Format(time.TimeOnly), err))
		default:
			l.seen.repeated++
		}
		l.mu.Unlock()
		if err == nil || within.Err() != nil {
			return
		}
		select {
		case <-within.Done():
		case <-tick.C:
		}
	}
}

func (l *load) acknowledge(key string, term uint64, now time.Time) {
	l.wrote[key] = true
	l.seen.acknowledged++
	if l.seen.term != 0 && term > l.seen.term {
		l.seen.leaders++
	}
	l.seen.term = max(l.seen.term, term)
	if !l.seen.last.IsZero() {
		l.seen.gap = max(l.seen.gap, now.Sub(l.seen.last))
	}
	l.seen.last = now
}

// since is what was seen since the last call.
func (l *load) since() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.seen
	l.seen = tally{term: seen.term, last: seen.last}
	return seen
}

// mayFail allows each writer one failed write for each change of the leader
// and for each fault.
func (l *load) mayFail(t *testing.T, when string, faults int) {
	t.Helper()
	seen := l.since()
	t.Logf("%s: %d writes acknowledged, %d attempts repeated, %d writes failed, %d changes of the leader, longest gap %s",
		when, seen.acknowledged, seen.repeated, len(seen.failed), seen.leaders, seen.gap.Round(time.Millisecond))
	if seen.acknowledged == 0 {
		t.Errorf("%s: no write was acknowledged", when)
	}
	if len(seen.failed) > (seen.leaders+faults)*len(l.clients) {
		t.Errorf("%s: more writes failed than faults and the leader's changes explain: %v", when, seen.failed)
	}
}

// stop ends the writers. It may be called again.
func (l *load) stop() {
	l.end()
	l.running.Wait()
}

// kept asserts that a cluster holds all that was acknowledged.
func (l *load) kept(t *testing.T, f *rig.Fleet, cluster *v1alpha1.EtcdCluster) {
	t.Helper()
	l.stop()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Timeout)
	defer cancel()
	read, err := f.Etcd(cluster).Get(ctx, "load/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, kv := range read.Kvs {
		there[string(kv.Key)] = true
	}
	var lost []string
	for key := range l.wrote {
		if !there[key] {
			lost = append(lost, key)
		}
	}
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %s", len(lost), len(l.wrote), strings.Join(lost, ", "))
	}
	if len(l.wrote) == 0 {
		t.Error("nothing was written")
	}
}
