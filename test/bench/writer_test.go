package bench

import (
	"context"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdmanager/etcdmanager/test/rig"
)

// Each write has a deadline of its own, short enough to be no gap to speak of.
const (
	writeDeadline = 250 * time.Millisecond
	writePause    = 5 * time.Millisecond
)

// writer writes all the time and measures the longest gap between two writes
// that succeeded.
type writer struct {
	end    context.CancelFunc
	ended  chan struct{}
	mu     sync.Mutex
	seen   count
	wakeup chan struct{} // closed and made anew at each success
}

type count struct {
	attempts, failures int
	gap                time.Duration
}

func startWriter(b *testing.B, etcd *clientv3.Client) *writer {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	w := &writer{end: cancel, ended: make(chan struct{}), wakeup: make(chan struct{})}
	go func() {
		defer close(w.ended)
		w.write(ctx, etcd)
	}()
	b.Cleanup(func() { w.stop() })
	return w
}

func (w *writer) write(ctx context.Context, etcd *clientv3.Client) {
	tick := time.NewTicker(writePause)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		one, cancel := context.WithTimeout(ctx, writeDeadline)
		_, err := etcd.Put(one, "bench/writer", "x")
		cancel()
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		w.mu.Lock()
		w.seen.attempts++
		if err != nil {
			w.seen.failures++
		} else {
			if !last.IsZero() {
				w.seen.gap = max(w.seen.gap, now.Sub(last))
			}
			last = now
			close(w.wakeup)
			w.wakeup = make(chan struct{})
		}
		w.mu.Unlock()
	}
}

// untilWritten waits for the second success from now on: the first may have
// been on its way already.
func (w *writer) untilWritten(b *testing.B) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), rig.Timeout)
	defer cancel()
	for range 2 {
		w.mu.Lock()
		next := w.wakeup
		w.mu.Unlock()
		select {
		case <-next:
		case <-ctx.Done():
			b.Fatalf("no write succeeded in %s", rig.Timeout)
		}
	}
}

// stop ends the writer and tells what it saw. It may be called again.
func (w *writer) stop() count {
	w.end()
	<-w.ended
	return w.seen
}
