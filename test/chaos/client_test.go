package chaos

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	clientCount = 4
	registers   = 5
	// opTimeout after which what became of an operation is unknown.
	opTimeout = 1500 * time.Millisecond
	// opPause between operations of a client leaves the cores to etcd.
	opPause = 25 * time.Millisecond
)

// ack is a write to a key of its own that was answered.
type ack struct {
	key      string
	value    string
	revision int64
}

// load is the clients of a round and what they saw.
type load struct {
	prefix string
	tls    *tls.Config
	began  time.Time

	endpoints atomic.Pointer[[]string]
	highest   atomic.Int64 // revision in any answer so far
	cancel    context.CancelFunc
	done      sync.WaitGroup

	mu       sync.Mutex
	history  []op
	acks     []ack
	acked    []time.Duration // when writes were answered
	byClient [clientCount]int
	failed   int
	wrong    []string
}

// startLoad begins to write and read below a prefix of the keys.
func startLoad(t *testing.T, prefix string, config *tls.Config, endpoints []string, seed uint64) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{prefix: prefix, tls: config, began: time.Now(), cancel: cancel}
	l.endpoints.Store(&endpoints)
	for n := range clientCount {
		c := &loadClient{load: l, number: n, random: rand.New(rand.NewPCG(seed, uint64(n))), conns: map[string]*clientv3.Client{}}
		l.done.Go(func() { c.run(ctx) })
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

func (l *load) now() time.Duration { return time.Since(l.began) }

// writes counts the answered ones of the client that has fewest.
func (l *load) writes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Min(l.byClient[:])
}

// gap is the longest time without an answered write since a moment.
func (l *load) gap(since time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.acked)
	longest, last := time.Duration(0), since
	for _, at := range l.acked {
		if at > since {
			longest, last = max(longest, at-last), at
		}
	}
	return max(longest, l.now()-last)
}

// loadClient speaks to one member at a time, and to another when that fails.
type loadClient struct {
	*load
	number int
	random *rand.Rand
	conns  map[string]*clientv3.Client
	avoid  string // that failed last
	serial int
	last   map[string]string // what the registers held when it looked last
}

func (c *loadClient) run(ctx context.Context) {
	c.last = map[string]string{}
	defer func() {
		for _, conn := range c.conns {
			_ = conn.Close()
		}
	}()
	ticker := time.NewTicker(opPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		endpoint, conn, err := c.pick()
		if err != nil {
			c.complain("client of %s: %v", endpoint, err)
			return
		}
		if c.random.IntN(4) == 0 {
			err = c.writeOnce(ctx, conn)
		} else {
			err = c.register(ctx, conn)
		}
		c.avoid = ""
		if err != nil {
			c.avoid = endpoint
		}
	}
}

func (c *loadClient) pick() (string, *clientv3.Client, error) {
	endpoints := *c.endpoints.Load()
	for name, conn := range c.conns {
		if !slices.Contains(endpoints, name) {
			_ = conn.Close()
			delete(c.conns, name)
		}
	}
	endpoint := endpoints[c.random.IntN(len(endpoints))]
	for endpoint == c.avoid && len(endpoints) > 1 {
		endpoint = endpoints[c.random.IntN(len(endpoints))]
	}
	if conn := c.conns[endpoint]; conn != nil {
		return endpoint, conn, nil
	}
	// It dials again soon: grpc's own pauses would be measured instead of etcd.
	soon := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1, MaxDelay: 100 * time.Millisecond}, MinConnectTimeout: time.Second}
	conn, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, TLS: c.tls, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithConnectParams(soon)},
		MaxUnaryRetries: 1, // of a member that is gone, another is asked instead
	})
	if err == nil {
		c.conns[endpoint] = conn
	}
	return endpoint, conn, err
}

func (c *loadClient) unique() string {
	c.serial++
	return fmt.Sprintf("%d-%d", c.number, c.serial)
}

// writeOnce writes a key that nobody writes again: it must be there for good.
func (c *loadClient) writeOnce(ctx context.Context, conn *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	value := c.unique()
	a := ack{key: c.prefix + "once/" + value, value: value}
	before := c.highest.Load()
	answer, err := conn.Put(ctx, a.key, a.value)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed++
		return err
	}
	a.revision = answer.Header.Revision
	c.advance(a.revision, before, "a write of "+a.key)
	c.acks = append(c.acks, a)
	c.answered()
	return nil
}

// register does something to a register.
func (c *loadClient) register(ctx context.Context, conn *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	key := fmt.Sprintf("%sregister/%d", c.prefix, c.random.IntN(registers))
	o := op{client: c.number, key: key, kind: []opKind{put, get, get, swap}[c.random.IntN(4)]}
	if o.kind != get {
		o.value = c.unique()
	}
	if o.kind == swap {
		o.expect = c.last[key]
	}
	before := c.highest.Load()
	o.called = c.now()
	revision, err := o.do(ctx, conn)
	o.returned, o.known = c.now(), err == nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, o)
	if err != nil {
		c.failed++ // also the one that the end of the round cut off
		return err
	}
	c.advance(revision, before, fmt.Sprintf("%+v", o))
	if o.kind == put || o.swapped {
		c.last[key] = o.value
		c.answered()
	} else {
		c.last[key] = o.held
	}
	return nil
}

// do sends the operation and takes the answer in. It returns the revision
// that the store had.
func (o *op) do(ctx context.Context, conn *clientv3.Client) (int64, error) {
	switch o.kind {
	case put:
		answer, err := conn.Put(ctx, o.key, o.value)
		if err != nil {
			return 0, err
		}
		o.revision = answer.Header.Revision
		return o.revision, nil
	case get:
		answer, err := conn.Get(ctx, o.key)
		if err != nil {
			return 0, err
		}
		o.found(answer)
		return answer.Header.Revision, nil
	}
	same := clientv3.Compare(clientv3.Value(o.key), "=", o.expect)
	if o.expect == "" {
		same = clientv3.Compare(clientv3.CreateRevision(o.key), "=", 0)
	}
	answer, err := conn.Txn(ctx).If(same).Then(clientv3.OpPut(o.key, o.value)).Else(clientv3.OpGet(o.key)).Commit()
	if err != nil {
		return 0, err
	}
	if o.swapped = answer.Succeeded; o.swapped {
		o.revision = answer.Header.Revision
	} else {
		o.found((*clientv3.GetResponse)(answer.Responses[0].GetResponseRange()))
	}
	return answer.Header.Revision, nil
}

func (o *op) found(answer *clientv3.GetResponse) {
	if len(answer.Kvs) > 0 {
		o.held, o.revision = string(answer.Kvs[0].Value), answer.Kvs[0].ModRevision
	}
}

// advance holds an answer to what was answered before it was asked for.
func (l *load) advance(revision, before int64, what string) {
	if revision < before {
		l.wrong = append(l.wrong, fmt.Sprintf("the revision went back: %s was answered at %d after an answer at %d", what, revision, before))
	}
	for {
		highest := l.highest.Load()
		if revision <= highest || l.highest.CompareAndSwap(highest, revision) {
			return
		}
	}
}

func (c *loadClient) answered() {
	c.byClient[c.number]++
	c.acked = append(c.acked, c.now())
}

func (l *load) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// verdict says what is wrong with what the clients saw.
func (l *load) verdict() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(l.wrong, "\n"))
	}
	if result := linearizable(l.history, checkTimeout); result != "Ok" {
		return fmt.Errorf("is the history of %d operations linearizable? %s", len(l.history), result)
	}
	return nil
}
