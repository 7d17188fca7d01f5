package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/datadir"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/durable"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/process"
	"github.com/etcdmanager/etcdmanager/bootstrap/release"
)

func (s *supervisor) pidFile() string { return filepath.Join(s.opts.Dir, "etcd.pid") }

// adopt takes up the etcd that an earlier agent started, if it still runs: the
// one it wrote down, or one that it had no time to write down.
func (s *supervisor) adopt() {
	if raw, err := os.ReadFile(s.pidFile()); err == nil {
		var r run
		if err := json.Unmarshal(raw, &r); err != nil {
			s.log.Warn("the note of the running etcd is unreadable", "error", err)
		} else if running, _ := r.Poll(); running {
			s.setRun(&r)
			s.log.Info("adopted the running etcd", "pid", r.PID, "version", r.Version)
			return
		}
	}
	if s.adoptUnnoted() {
		return
	}
	if _, err := os.Stat(s.pidFile()); err == nil {
		s.forgetRun()
	}
}

func (s *supervisor) adoptUnnoted() bool {
	found, exe, ok := process.Find(s.opts.releases(), "--data-dir="+s.opts.dataDir())
	if !ok {
		return false
	}
	found.Version = strings.TrimPrefix(filepath.Base(filepath.Dir(exe)), "v")
	s.log.Info("adopted a running etcd that was not noted", "pid", found.PID, "version", found.Version)
	s.remember(&run{Process: found})
	return true
}

func (s *supervisor) remember(r *run) {
	s.setRun(r)
	raw, err := json.Marshal(r)
	if err == nil {
		err = durable.WriteFile(s.pidFile(), raw, durable.Private)
	}
	if err != nil {
		// It is found again without the note.
		s.log.Error("the running etcd could not be noted", "error", err)
	}
}

func (s *supervisor) forgetRun() {
	if err := os.Remove(s.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("the note of an ended etcd stays", "error", err)
	}
}

func (s *supervisor) startEtcd(now time.Time, at situation) {
	if s.adoptUnnoted() {
		return
	}
	_, binaries := s.fetch.now()
	s.lookedAt = time.Time{}
	if err := s.launch(now, at, binaries); err != nil {
		s.log.Error("etcd could not be started", "error", err)
		s.postpone(now, false)
		if errors.Is(err, os.ErrNotExist) {
			s.fetch.again()
		}
		if err := s.state.update(func(f *facts) { f.Exit = "not started: " + err.Error() }); err != nil {
			s.log.Error("a failed start could not be noted", "error", err)
		}
	}
}

func (s *supervisor) launch(now time.Time, at situation, binaries release.Binaries) error {
	w := *at.facts.Wanted
	empty := at.content.Kind != datadir.Whole
	found := empty && w.Found
	flags, err := release.Flags(w.Version, s.opts.member(w, at.facts, s.certs, found))
	if err != nil {
		return err
	}
	if err := s.noteStart(now, w.Token, empty, found); err != nil {
		return err
	}
	if err := markStart(s.opts.etcdLog(), w.Version); err != nil {
		return err
	}
	p, err := process.Start(binaries.Etcd, flags, s.opts.Dir, s.opts.etcdLog())
	if err != nil {
		return err
	}
	p.Version = w.Version
	s.log.Info("started etcd", "pid", p.PID, "version", p.Version, "new", empty, "founding", found, "reason", w.Reason)
	s.remember(&run{Process: p})
	return nil
}

// noteStart writes down, before etcd starts, what must be known should
// everything stop right after (F027).
func (s *supervisor) noteStart(now time.Time, token string, empty, found bool) error {
	var mark *begun
	if empty {
		var err error
		if mark, err = s.emptyDir(now); err != nil {
			return err
		}
	}
	return s.state.update(func(f *facts) {
		f.Starts++
		if mark != nil && (f.Begun == nil || f.Begun.Dir != mark.Dir) {
			f.Begun = mark
		}
		if found && f.Founded == nil {
			f.Founded = &founded{Token: token, At: now}
		}
	})
}

// emptyDir makes the data directory, or clears away what a start left that
// died before it had a log: joining with an outdated list does so every time
// (F028), so only the last such remains are kept. The directory itself stays
// and tells that nothing was taken from it.
func (s *supervisor) emptyDir(now time.Time) (*begun, error) {
	dir := s.opts.dataDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	member := filepath.Join(dir, "member")
	if _, err := os.Lstat(member); err == nil {
		remains := s.aside("half-made")
		if err := errors.Join(os.RemoveAll(remains), s.move(member, remains)); err != nil {
			return nil, err
		}
	}
	if err := durable.SyncDir(s.opts.Dir); err != nil {
		return nil, err
	}
	return &begun{At: now, Dir: datadir.Look(dir).Dir}, nil
}

func (s *supervisor) aside(name string) string { return filepath.Join(s.opts.Dir, "aside", name) }

// move renames durably, and never over something.
func (s *supervisor) move(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("moving %s: %s exists already", from, to)
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(durable.SyncDir(filepath.Dir(to)), durable.SyncDir(filepath.Dir(from)))
}

// setAsideFenced is repeated until it is noted: a directory that was moved
// before a crash is found to be absent, and none is moved twice.
func (s *supervisor) setAsideFenced(now time.Time) {
	target := s.aside(now.UTC().Format("20060102T150405.000Z") + "-" + dataDirName)
	err := s.move(s.opts.dataDir(), target)
	if err == nil {
		err = s.state.update(func(f *facts) { f.Aside = target })
	}
	if err != nil {
		s.log.Error("the data of a fenced member could not be set aside", "error", err)
		return
	}
	s.lookedAt = time.Time{}
	s.log.Info("the member is fenced", "data", target)
}

func (s *supervisor) stopEtcd(now time.Time, r *run) {
	if r == nil {
		return
	}
	sig, name := unix.SIGTERM, "SIGTERM"
	switch {
	case s.stopping.IsZero():
		s.stopping = now
	case s.killing || now.Sub(s.stopping) < s.opts.StopDeadline:
		return
	default:
		s.killing = true
		sig, name = unix.SIGKILL, "SIGKILL"
	}
	s.log.Info("stopping etcd", "pid", r.PID, "signal", name)
	if err := r.Signal(sig); err != nil {
		s.log.Error("etcd could not be signalled", "signal", name, "error", err)
		s.killing = false
	}
}
