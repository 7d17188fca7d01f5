package chaos

import (
	"testing"
	"time"
)

func TestGap(t *testing.T) {
	l := &load{began: time.Now().Add(-20 * time.Second), acked: []time.Duration{
		1 * time.Second, 9 * time.Second, 10 * time.Second, 12 * time.Second, 19 * time.Second,
	}}
	if got := l.gap(8 * time.Second); got != 7*time.Second {
		t.Errorf("the longest gap since 8s is %s, want 7s", got)
	}
	if got := l.gap(2 * time.Second); got != 7*time.Second {
		t.Errorf("the longest gap since 2s is %s, want 7s, from the moment on", got)
	}
	l.acked = l.acked[:4]
	if got := l.gap(8 * time.Second); got < 8*time.Second {
		t.Errorf("the longest gap is %s, and nothing was answered since 12s of 20s", got)
	}
}

// TestRevisionGoesBack: an answer is held to those before its question, and
// not to those meanwhile.
func TestRevisionGoesBack(t *testing.T) {
	l := &load{}
	l.advance(7, 0, "the first")
	before := l.highest.Load()
	l.advance(9, before, "meanwhile")
	l.advance(8, before, "a slow one")
	if err := l.verdict(); err != nil {
		t.Errorf("an answer that was overtaken: %v", err)
	}
	l.advance(8, l.highest.Load(), "a late one")
	if l.verdict() == nil {
		t.Error("a revision of 8 asked for after an answer at 9 is taken")
	}
}
