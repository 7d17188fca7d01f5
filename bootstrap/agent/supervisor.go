package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/datadir"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/process"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/release"
)

const (
	superviseInterval = 200 * time.Millisecond
	settledAfter      = time.Minute // etcd that ran so long is started again without a longer wait
)

// supervisor keeps the wanted member running. It is one loop that looks and
// makes one move at a time; nothing else starts, stops or signals etcd.
type supervisor struct {
	opts  Options
	log   *slog.Logger
	state *state
	certs release.Files
	fetch *fetching
	wake  chan struct{}

	// Of the loop alone.
	stopping time.Time // when SIGTERM was sent; zero: not
	rejoin   bool      // the stopping etcd is to be started again at once
	served   int       // PID of the etcd that was seen to serve clients
	killing  bool
	lookedAt time.Time
	content  datadir.Content
	retry    time.Duration
	retryAt  time.Time

	mu      sync.Mutex
	run     *run // nil: etcd does not run
	refusal string
	eager   bool // what is wanted has changed: don't wait
}

func newSupervisor(opts Options, st *state, certs release.Files) *supervisor {
	s := &supervisor{opts: opts, log: opts.Log, state: st, certs: certs, wake: make(chan struct{}, 1)}
	s.fetch = newFetching(opts.releases(), opts.Log, s.nudge)
	return s
}

// nudge makes the loop look at once.
func (s *supervisor) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// changed tells the loop that another member is wanted than before, which may
// well be one that starts where the last did not (F028).
func (s *supervisor) changed() {
	s.mu.Lock()
	s.eager = true
	s.mu.Unlock()
	s.nudge()
}

func (s *supervisor) running() bool { return s.current() != nil }

func (s *supervisor) current() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

func (s *supervisor) setRun(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = r
}

// supervise runs until ctx ends, and leaves etcd as it is then.
func (s *supervisor) supervise(ctx context.Context) {
	tick := time.NewTicker(superviseInterval)
	defer tick.Stop()
	for {
		s.step(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
		}
	}
}

func (s *supervisor) step(now time.Time) {
	s.watchProcess(now)
	s.look(now)
	s.noteStarted(now)
	s.helpJoin(now)
	running := s.current()
	report, _ := s.fetch.now()
	at := situation{
		facts: s.state.get(), content: s.content, release: report,
		running: running != nil, now: now, retryAt: s.retryAt,
	}
	if running != nil {
		at.wal = running.WAL
	}
	next, why := decide(at)
	if !s.stopping.IsZero() {
		next = stop // once begun it is brought to its end
	}
	s.say(why)
	switch next {
	case start:
		s.startEtcd(now, at)
	case stop:
		s.stopEtcd(now, running)
	case setAside:
		s.setAsideFenced(now)
	case rest:
	}
}

// watchProcess notices that etcd has ended.
func (s *supervisor) watchProcess(now time.Time) {
	s.mu.Lock()
	if s.eager {
		s.eager, s.retryAt, s.retry = false, time.Time{}, 0
	}
	s.mu.Unlock()
	r := s.current()
	if r == nil {
		return
	}
	running, exit := r.Poll()
	if running {
		return
	}
	if line := lastTelling(s.opts.etcdLog()); line != "" {
		exit += ": " + line
	}
	s.log.Warn("etcd ended", "pid", r.PID, "exit", exit, "asked", !s.stopping.IsZero())
	s.setRun(nil)
	s.stopping, s.killing, s.lookedAt = time.Time{}, false, time.Time{}
	s.forgetRun()
	s.postpone(now, now.Sub(r.Since) >= settledAfter)
	if s.rejoin {
		s.rejoin, s.retryAt = false, time.Time{}
	}
	if err := s.state.update(func(f *facts) { f.Exit = exit }); err != nil {
		s.log.Error("how etcd ended could not be noted", "error", err)
	}
}

// postpone sets when etcd may be started next.
func (s *supervisor) postpone(now time.Time, settled bool) {
	if settled || s.retry == 0 {
		s.retry = s.opts.RetryMin
	}
	s.retryAt = now.Add(s.retry)
	s.retry = min(2*s.retry, s.opts.RetryMax)
}

// look reads the data directory: of a running etcd now and then, and often
// until its log has been seen.
func (s *supervisor) look(now time.Time) {
	settled := s.running() && s.state.get().Started != nil
	if settled && now.Sub(s.lookedAt) < s.opts.DataInterval {
		return
	}
	s.lookedAt = now
	s.content = datadir.Look(s.opts.dataDir())
}

// noteStarted writes down whose log has appeared, before anything can happen
// to it, and which log the running process has.
func (s *supervisor) noteStarted(now time.Time) {
	f := s.state.get()
	if s.content.Kind != datadir.Whole || f.Begun == nil {
		return
	}
	if f.Started == nil && f.Wanted != nil {
		mark := &started{Token: f.Wanted.Token, MemberID: s.content.MemberID, ClusterID: s.content.ClusterID, At: now}
		if err := s.state.update(func(f *facts) { f.Started = mark }); err != nil {
			s.log.Error("the member could not be noted", "error", err)
			return
		}
		s.log.Info("the member has its data", "member", mark.MemberID, "cluster", mark.ClusterID)
	}
	if r := s.current(); r != nil && r.WAL == 0 {
		next := *r
		next.WAL = s.content.WAL
		s.remember(&next)
	}
}

// say keeps why etcd is held back, and logs it when it changes.
func (s *supervisor) say(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why != s.refusal && why != "" {
		s.log.Warn("etcd is held back", "reason", why)
	}
	s.refusal = why
}

func (s *supervisor) report() (protocol.Process, string) {
	f := s.state.get()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := protocol.Process{Starts: f.Starts, Exit: f.Exit}
	if r := s.run; r != nil {
		seen.Running, seen.PID, seen.Since, seen.Version = true, r.PID, r.Since, r.Version
	}
	return seen, s.refusal
}

// run is the etcd process that is looked after.
type run struct {
	process.Process
	WAL uint64 `json:"wal,omitempty"` // inode of the directory of its log; zero: not seen yet
}
