package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/release"
)

const (
	fetchRetryMin = time.Second
	fetchRetryMax = time.Minute
)

// fetching brings the wanted release onto the machine, however often it takes.
type fetching struct {
	fetcher *release.Fetcher
	log     *slog.Logger
	done    func() // called when a release is ready
	wake    chan struct{}

	mu       sync.Mutex
	want     *protocol.Wanted
	abandon  context.CancelFunc // of the attempt at work
	report   protocol.Release
	binaries release.Binaries
}

func newFetching(dir string, log *slog.Logger, done func()) *fetching {
	return &fetching{
		fetcher: &release.Fetcher{Dir: dir, Log: log},
		log:     log,
		done:    done,
		wake:    make(chan struct{}, 1),
	}
}

// set says which release is wanted. One that is being fetched and not wanted
// any more is given up.
func (f *fetching) set(w protocol.Wanted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.Version == "" || f.want != nil && source(*f.want) == source(w) {
		return
	}
	f.want = &w
	f.report = protocol.Release{Version: w.Version, State: protocol.ReleaseFetching}
	f.restart()
}

// again looks at the release on disk once more: starting it failed.
func (f *fetching) again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.report.State == protocol.ReleaseReady {
		f.report.State = protocol.ReleaseFetching
		f.restart()
	}
}

func (f *fetching) restart() {
	if f.abandon != nil {
		f.abandon()
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// source is all that decides which archive is fetched from where.
func source(w protocol.Wanted) string {
	return fmt.Sprint(w.Version, " ", w.Mirror, " ", w.SHA256)
}

// now is how far the wanted release is and, when ready, its programs.
func (f *fetching) now() (protocol.Release, release.Binaries) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report, f.binaries
}

func (f *fetching) run(ctx context.Context) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	wait := fetchRetryMin
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
			wait = fetchRetryMin
		case <-retry.C:
		}
		if f.attempt(ctx) {
			retry.Stop()
			continue
		}
		retry.Reset(wait)
		wait = min(2*wait, fetchRetryMax)
	}
}

// attempt tries once. It answers whether there is nothing left to do.
func (f *fetching) attempt(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	want := f.want
	if want == nil || f.report.State == protocol.ReleaseReady {
		f.mu.Unlock()
		return true
	}
	f.abandon = cancel
	f.mu.Unlock()

	binaries, err := f.fetcher.Ensure(ctx, want.Version, want.Mirror, want.SHA256, func(bytes int64) {
		f.settle(want, func() { f.report.Bytes = bytes })
	})
	if err != nil && ctx.Err() == nil {
		f.log.Warn("the release could not be fetched", "version", want.Version, "error", err)
	}
	f.settle(want, func() {
		f.abandon = nil
		f.binaries = binaries
		if err != nil {
			f.report.State, f.report.Message = protocol.ReleaseFailed, err.Error()
			return
		}
		f.report.State, f.report.Message = protocol.ReleaseReady, ""
	})
	if err == nil {
		f.done()
	}
	return err == nil
}

// settle changes the report unless another release came to be wanted.
func (f *fetching) settle(want *protocol.Wanted, change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.want == want {
		change()
	}
}
