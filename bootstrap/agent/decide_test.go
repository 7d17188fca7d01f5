package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/datadir"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	whole := datadir.Content{Kind: datadir.Whole, MemberID: "a", ClusterID: "c", WAL: 5, Dir: 3}
	ran := &started{Token: "t", MemberID: "a", ClusterID: "c"}
	ready := protocol.Release{Version: "3.7.3", State: protocol.ReleaseReady}
	member := func(change ...func(*protocol.Wanted)) *protocol.Wanted {
		w := &protocol.Wanted{Run: true, Version: "3.7.3", Token: "t", Found: true}
		for _, f := range change {
			f(w)
		}
		return w
	}
	stopped := func(w *protocol.Wanted) { w.Run = false }
	joins := func(w *protocol.Wanted) { w.Found = false }
	fresh := facts{Wanted: member()}
	settled := facts{Wanted: member(), Begun: &begun{Dir: 3}, Founded: &founded{Token: "t"}, Started: ran}
	fenced := facts{Wanted: member(stopped), Fenced: true, Begun: &begun{Dir: 3}, Started: ran}
	with := func(f facts, change func(*facts)) facts { change(&f); return f }

	for name, c := range map[string]struct {
		s    situation
		next move
		says string // of the refusal; "-": none
	}{
		"nothing wanted":            {situation{release: ready}, rest, "-"},
		"nothing wanted, but runs":  {situation{running: true}, rest, "-"},
		"first start":               {situation{facts: fresh, release: ready}, start, "-"},
		"release on its way":        {situation{facts: fresh, release: protocol.Release{Version: "3.7.3", State: protocol.ReleaseFetching}}, rest, "-"},
		"another release is ready":  {situation{facts: fresh, release: protocol.Release{Version: "3.6.16", State: protocol.ReleaseReady}}, rest, "-"},
		"release failed":            {situation{facts: fresh, release: protocol.Release{State: protocol.ReleaseFailed, Message: "no mirror"}}, rest, "no mirror"},
		"too early":                 {situation{facts: fresh, release: ready, retryAt: now.Add(time.Second)}, rest, "-"},
		"time has come":             {situation{facts: fresh, release: ready, retryAt: now}, start, "-"},
		"existing data":             {situation{facts: settled, content: whole, release: ready}, start, "-"},
		"not wanted to run":         {situation{facts: facts{Wanted: member(stopped)}, release: ready}, rest, "-"},
		"runs and is not to":        {situation{facts: facts{Wanted: member(stopped)}, running: true}, stop, "-"},
		"runs well":                 {situation{facts: settled, content: whole, running: true, wal: 5}, rest, "-"},
		"runs, data unreadable":     {situation{facts: settled, content: datadir.Content{Kind: datadir.Unreadable}, running: true, wal: 5}, rest, "-"},
		"runs, data being made":     {situation{facts: with(settled, func(f *facts) { f.Started = nil }), content: datadir.Content{Kind: datadir.Partial, Dir: 3}, running: true}, rest, "-"},
		"data taken from under it":  {situation{facts: settled, content: datadir.Content{Kind: datadir.Empty, Dir: 3}, running: true, wal: 5}, stop, "taken away"},
		"another log in its place":  {situation{facts: settled, content: datadir.Content{Kind: datadir.Whole, MemberID: "a", ClusterID: "c", WAL: 6, Dir: 3}, running: true, wal: 5}, stop, "taken away"},
		"not the member it joined":  {situation{facts: with(settled, func(f *facts) { f.Wanted = member(func(w *protocol.Wanted) { w.MemberID = "b" }) }), content: whole, running: true, wal: 5}, stop, "member b"},
		"lost (F026)":               {situation{facts: with(settled, func(f *facts) { f.Wanted = member(joins) }), content: datadir.Content{Kind: datadir.Empty, Dir: 3}, release: ready}, rest, "Lost"},
		"lost, founding (F027)":     {situation{facts: settled, content: datadir.Content{Kind: datadir.Absent}, release: ready}, rest, "AlreadyFounded"},
		"founding died early":       {situation{facts: with(settled, func(f *facts) { f.Started = nil }), content: datadir.Content{Kind: datadir.Empty, Dir: 3}, release: ready}, start, "-"},
		"founding left half a one":  {situation{facts: with(settled, func(f *facts) { f.Started = nil }), content: datadir.Content{Kind: datadir.Partial, Dir: 3}, release: ready}, start, "-"},
		"founding lost its place":   {situation{facts: with(settled, func(f *facts) { f.Started = nil }), content: datadir.Content{Kind: datadir.Empty, Dir: 4}, release: ready}, rest, "gone"},
		"joining lost its place":    {situation{facts: facts{Wanted: member(joins), Begun: &begun{Dir: 3}}, content: datadir.Content{Kind: datadir.Absent}, release: ready}, rest, "Lost"},
		"founds with another token": {situation{facts: with(settled, func(f *facts) { f.Founded = &founded{Token: "u"} }), content: whole, release: ready}, rest, "AlreadyFounded"},
		"another's data":            {situation{facts: with(settled, func(f *facts) { f.Started = &started{MemberID: "b", ClusterID: "c"} }), content: whole, release: ready}, rest, "Foreign"},
		"data from nowhere":         {situation{facts: fresh, content: whole, release: ready}, rest, "Foreign"},
		"half a restore (F080)":     {situation{facts: fresh, content: datadir.Content{Kind: datadir.Partial, Problem: "half"}, release: ready}, rest, "half"},
		"unreadable":                {situation{facts: settled, content: datadir.Content{Kind: datadir.Unreadable, Problem: "input/output error"}, release: ready}, rest, "input/output error"},
		"IDs differ in writing":     {situation{facts: with(settled, func(f *facts) { f.Wanted = member(func(w *protocol.Wanted) { w.MemberID = "0A" }) }), content: whole, release: ready}, start, "-"},
		"fenced and running (F024)": {situation{facts: fenced, content: whole, running: true}, stop, "-"},
		"fenced with data":          {situation{facts: fenced, content: whole}, setAside, "-"},
		"fenced without data":       {situation{facts: fenced, release: ready}, rest, "-"},
		"fenced, set aside":         {situation{facts: with(fenced, func(f *facts) { f.Aside = "there" }), content: whole, release: ready}, rest, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			c.s.now = now
			next, why := decide(c.s)
			if next != c.next || (c.says == "-") != (why == "") || c.says != "-" && !strings.Contains(why, c.says) {
				t.Errorf("decided %d because %q, want %d because of %q", next, why, c.next, c.says)
			}
		})
	}
}
