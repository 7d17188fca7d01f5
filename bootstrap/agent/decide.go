package agent

import (
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/datadir"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// situation is one look at everything that the next move depends on.
type situation struct {
	facts   facts
	content datadir.Content
	release protocol.Release
	running bool
	// wal is the log that the running process writes to; zero: not known yet.
	wal     uint64
	now     time.Time
	retryAt time.Time // not to be started before
}

// move is what the supervisor does next.
type move int

const (
	rest     move = iota
	start         // etcd
	stop          // etcd: SIGTERM, later SIGKILL
	setAside      // the data of a fenced machine
)

// decide says what to do now and, where etcd is wanted and held back, why.
func decide(s situation) (next move, refusal string) {
	w := s.facts.Wanted
	switch {
	case s.facts.Fenced:
		return decideFenced(s), ""
	case w == nil:
		return rest, "" // a running etcd is left alone until somebody says what is wanted
	case s.running:
		return decideRunning(s)
	case !w.Run:
		return rest, ""
	}
	if err := refuseByFacts(*w, s.facts, s.content); err != nil {
		return rest, err.Error()
	}
	switch data := judge(s.content, s.facts); data.State {
	case protocol.DataLost, protocol.DataForeign:
		return rest, "the data directory is " + data.State + ": " + data.Message
	}
	switch {
	case s.release.State == protocol.ReleaseFailed:
		return rest, "etcd " + w.Version + " is not on this machine: " + s.release.Message
	case s.release.State != protocol.ReleaseReady || s.release.Version != w.Version, s.now.Before(s.retryAt):
		return rest, ""
	}
	return start, ""
}

func decideFenced(s situation) move {
	switch {
	case s.running:
		return stop
	case s.facts.Aside == "" && s.content.Kind != datadir.Absent:
		return setAside
	}
	return rest
}

// decideRunning stops what must not run on. Data that merely can't be read
// stops nothing: etcd, which has it open, may well go on.
func decideRunning(s situation) (move, string) {
	switch {
	case !s.facts.Wanted.Run:
		return stop, ""
	case s.content.Kind == datadir.Unreadable:
		return rest, ""
	case s.facts.Started == nil:
		return rest, "" // it is making its data
	case s.content.Kind != datadir.Whole, s.wal != 0 && s.content.WAL != s.wal:
		return stop, "the data directory was taken away from the running etcd"
	}
	if data := judge(s.content, s.facts); data.State == protocol.DataForeign {
		return stop, "the data directory is " + data.State + ": " + data.Message
	}
	return rest, ""
}
