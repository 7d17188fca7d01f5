package rig

import (
	"context"
	"testing"
	"time"
)

const (
	pollEvery = 100 * time.Millisecond
	// Timeout is a deadline for anything with processes, also on a machine
	// with two busy cores.
	Timeout = 2 * time.Minute
)

// Eventually asks check until it answers nil. The test fails when that takes
// longer than timeout, with what was waited for and the last answer.
func Eventually(t testing.TB, timeout time.Duration, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		// The deadline's own error would hide what was wrong.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for: %s; last answer: %v", timeout, what, last)
		case <-ticker.C:
		}
	}
}
