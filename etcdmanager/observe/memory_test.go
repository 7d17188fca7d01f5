package observe

import (
	"testing"
	"time"
)

func TestSilenceCountsFromItsBeginning(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	m := memory{by: map[string]*trace{}}
	if got := m.note("c", "m", at(0), false, false, false, ""); got.silentSince != at(0) {
		t.Errorf("silent since %s, want the first look", got.silentSince)
	}
	// A machine that is told to run its member only later is silent from then.
	if got := m.note("c", "m", at(50), false, true, false, ""); got.silentSince != at(50) {
		t.Errorf("silent since %s, want since it was told to run", got.silentSince)
	}
	if got := m.note("c", "m", at(60), false, true, false, ""); got.silentSince != at(50) {
		t.Errorf("silent since %s, want the beginning of the silence", got.silentSince)
	}
	if got := m.note("c", "m", at(61), true, true, false, ""); !got.silentSince.IsZero() {
		t.Errorf("silent since %s though it serves", got.silentSince)
	}
	// The silence after it served counts anew, whether its agent says so or not.
	if got := m.note("c", "m", at(70), false, false, false, ""); got.silentSince != at(70) {
		t.Errorf("silent since %s, want the new silence", got.silentSince)
	}
}

func TestGoneIsForgottenWhenSeen(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := memory{by: map[string]*trace{}}
	m.note("c", "m", start, false, false, true, "")
	if got := m.note("c", "m", start.Add(time.Second), false, false, false, ""); !got.goneSince.IsZero() {
		t.Errorf("gone since %s though it was seen again (F162)", got.goneSince)
	}
	if got := m.note("c", "m", start.Add(2*time.Second), false, false, true, ""); got.goneSince != start.Add(2*time.Second) {
		t.Errorf("gone since %s, want the second time", got.goneSince)
	}
}

func TestProgressIsChange(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := memory{by: map[string]*trace{}}
	if got := m.note("c", "m", start, false, false, false, "a"); got.progressAt != start {
		t.Errorf("progress at %s, want the first sight", got.progressAt)
	}
	m.note("c", "m", start.Add(time.Second), false, false, false, "b")
	if got := m.note("c", "m", start.Add(2*time.Second), false, false, false, "b"); got.progressAt != start.Add(time.Second) {
		t.Errorf("progress at %s, want when it changed", got.progressAt)
	}
}

func TestForgetsOnlyOneClustersMachines(t *testing.T) {
	m := memory{by: map[string]*trace{}}
	m.note("c", "stays", time.Now(), false, false, false, "")
	m.note("c", "goes", time.Now(), false, false, false, "")
	m.note("d", "other", time.Now(), false, false, false, "")
	m.forget(func(cluster, machine string) bool { return cluster == "c" && machine != "stays" })
	if len(m.by) != 2 || m.by["goes"] != nil {
		t.Errorf("left are %v", m.by)
	}
}
