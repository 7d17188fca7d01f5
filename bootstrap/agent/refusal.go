package agent

import (
	"fmt"
	"net/http"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/datadir"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// refusal is a command declined. Nothing was changed.
type refusal struct {
	code    string
	message string
	status  int // of HTTP; zero: by code
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

func refuse(code, format string, args ...any) error {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

func (r *refusal) httpStatus() int {
	switch {
	case r.status != 0:
		return r.status
	case r.code == protocol.CodeInvalid:
		return http.StatusBadRequest
	case r.code == protocol.CodeNotEnrolled:
		return http.StatusForbidden
	}
	return http.StatusConflict
}

// refuseByFacts declines what this machine must not do, however well it is asked.
func refuseByFacts(w protocol.Wanted, f facts, content datadir.Content) error {
	if !w.Run {
		return nil
	}
	if f.Fenced {
		return refuse(protocol.CodeFenced, "this machine's member was removed from its cluster; it never runs a member again")
	}
	if problem := refuseFounding(w, f, content); problem != "" {
		return refuse(protocol.CodeFounded, "%s", problem)
	}
	if problem := contradiction(w, content); problem != "" {
		return refuse(protocol.CodeWrongData, "%s", problem)
	}
	return nil
}

// refuseFounding says why a machine must not take part in founding, or "". It
// founds for one token only, and on data that it had and lost never again: the
// same member with an empty log could vote twice (F026, F027).
func refuseFounding(w protocol.Wanted, f facts, content datadir.Content) string {
	if !w.Found {
		return ""
	}
	lost := judge(content, f).State == protocol.DataLost
	switch {
	case f.Founded != nil && f.Founded.Token != w.Token:
		return fmt.Sprintf("this machine took part in founding with another token at %s", f.Founded.At.UTC().Format("2006-01-02T15:04:05Z"))
	case f.Founded == nil && f.Started != nil:
		return "a member joined here already"
	case f.Founded != nil && lost:
		return "this machine took part in founding already, and its data is gone"
	case lost:
		return "a member ran here already, and its data is gone"
	}
	return ""
}
