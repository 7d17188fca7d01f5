package sim

import (
	"flag"
	"fmt"
	"testing"
)

var (
	states = flag.Int("explore.states", 0, "visit this many states in all, instead of what an ordinary run does")
	runs   = flag.Int("explore.runs", 0, "live this many random runs, instead of what an ordinary run does")
	seed   = flag.Uint64("explore.seed", 0, "replay the random run with this seed")
)

// ordinary is how many states an ordinary run visits at least.
const ordinary = 1_100_000

// TestEveryReachableState visits every state that can be reached, to the depth
// that is printed, and holds each against what must hold of every membership
// call and of every state (F198). Of a sample of them faults stop, and each
// must come to rest as wanted.
func TestEveryReachableState(t *testing.T) {
	starts := []struct {
		name  string
		start State
	}{
		{"1 member, 2 faults", Founded(1, 2)},
		{"3 members, 2 faults", Founded(3, 2)},
		{"5 members, 1 fault", Founded(5, 1)},
		{"founding of 3, 2 faults", Unfounded(3, 2)},
		{"founding of 1, 2 faults", Unfounded(1, 2)},
		{"3 members, 3 faults", Founded(3, 3)},
		{"5 members, 2 faults", Founded(5, 2)},
	}
	budget := ordinary
	if *states > 0 {
		budget = *states
	}
	total := 0
	for i, c := range starts {
		share := (budget - total) / (len(starts) - i)
		r := Exploration{Decide: Decide, MaxStates: share, Converge: 61, Workers: 2}.Run(c.start)
		total += r.States
		t.Logf("%s: %s", c.name, r)
		if r.Violation != "" {
			t.FailNow()
		}
	}
	t.Logf("%d states in all", total)
	if total < min(budget, 1_000_000) {
		t.Errorf("only %d states were visited", total)
	}
}

// TestRandomLives lives long runs. A failure prints its seed; run it again
// with -args -explore.seed=SEED.
func TestRandomLives(t *testing.T) {
	first, n := uint64(1), 3000
	if *runs > 0 {
		n = *runs
	}
	if *seed > 0 {
		first, n = *seed, 1
	}
	total := 0
	for s := first; s < first+uint64(n); s++ {
		events, trace, v := Random{Decide: Decide, Seed: s, Episodes: 12}.Run()
		total += events
		if v != "" {
			t.Fatalf("seed %d: %s\n%s", s, v, lines(trace))
		}
	}
	t.Logf("%d lives, %d events", n, total)
}

func lines(trace []string) string {
	text := ""
	for i, line := range trace {
		text += fmt.Sprintf("%4d  %s\n", i, line)
	}
	return text
}
