package agent

import (
	"bytes"
	"encoding/json"
	"time"
)

// joinPatience is how long a member that joined may take from having applied
// the leader's snapshot to serving clients before it is helped.
const joinPatience = 500 * time.Millisecond

// logTime is how etcd writes times, in the machine's zone; fractions of a
// second are read without being named.
const logTime = "2006-01-02T15:04:05Z0700"

// waitsInVain reads etcd's log: whether the last run applied a snapshot and
// has not served clients since. Etcd serves nobody before its own name has come
// through the log. It proposes that at its start, and when the proposal
// is already in the snapshot that it gets then, nothing ever tells it so; it
// proposes again after seven seconds. A restart finds the name at once.
func waitsInVain(log []byte, now time.Time) (vain, serves bool) {
	var applied time.Time
	for line := range bytes.Lines(log) {
		var entry struct{ Msg, TS string }
		if json.Unmarshal(line, &entry) != nil {
			continue
		}
		switch entry.Msg {
		case startMark:
			applied, serves = time.Time{}, false
		case "applied snapshot":
			// An unreadable time counts as long ago.
			if applied, _ = time.Parse(logTime, entry.TS); applied.IsZero() {
				applied = time.Unix(0, 0)
			}
		case "ready to serve client requests":
			serves = true
		}
	}
	return !serves && !applied.IsZero() && now.Sub(applied) >= joinPatience, serves
}

// helpJoin stops a member that waits in vain, once in its life; it is started
// again at once.
func (s *supervisor) helpJoin(now time.Time) {
	r, f := s.current(), s.state.get()
	if r == nil || r.PID == s.served || f.Helped || f.Wanted == nil || f.Wanted.Found || f.Started == nil || !s.stopping.IsZero() {
		return
	}
	log, err := tail(s.opts.etcdLog(), tailLength)
	if err != nil {
		return
	}
	vain, serves := waitsInVain(log, now)
	if serves {
		s.served = r.PID
	}
	if !vain {
		return
	}
	if err := s.state.update(func(f *facts) { f.Helped = true }); err != nil {
		s.log.Error("that the member is helped could not be noted", "error", err)
		return
	}
	s.log.Info("etcd has the snapshot and waits for what is in it; starting it again", "pid", r.PID)
	s.rejoin = true
	s.stopEtcd(now, r)
}
