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
const ordinary = 1_500_000

// after is a start in which something happened already.
func after(s State, events ...Event) State {
	for _, e := range events {
		s.Apply(e, Decide)
	}
	return s
}

var origins = []struct {
	name  string
	start State
	whole bool // every state is visited, however many there are
}{
	{"1 member, 1 fault", Founded(1, 1), true},
	{"3 members, 1 fault", Founded(3, 1), true},
	{"5 members, 1 fault", Founded(5, 1), true},
	{"founding of 1, 1 fault", Unfounded(1, 1), true},
	{"1 member, 2 faults", Founded(1, 2), true},
	{"3 members, one gone, 1 fault more", after(Founded(3, 2), Event{machineGone, 1}), true},
	{"5 members, two gone, 1 fault more", after(Founded(5, 3), Event{machineGone, 1}, Event{machineGone, 3}), true},
	{"3 members, one to be replaced, 1 fault", after(Founded(3, 2), Event{replaceAsked, 0}), true},
	{"from 1 to 3, 1 fault", after(Founded(1, 2), Event{scaledUp, 0}), true},
	{"from 3 to 5, 1 fault", after(Founded(3, 2), Event{scaledUp, 0}), true},
	{"from 3 to 1, 1 fault", after(Founded(3, 2), Event{scaledDown, 0}), true},
	{"3 members, record lost, 1 fault more", after(Founded(3, 2), Event{recordIsLost, 0}), true},
	{"3 members, 2 faults", Founded(3, 2), false},
	{"founding of 3, 2 faults", Unfounded(3, 2), false},
	{"3 members, 3 faults", Founded(3, 3), false},
	{"5 members, 2 faults", Founded(5, 2), false},
	{"founding of 1, 2 faults", Unfounded(1, 2), false},
}

// TestEveryReachableState visits every state that can be reached, to the depth
// that is printed, and holds each against what must hold of every membership
// call and of every state (F198). Of a sample of them faults stop, and each
// must come to rest as wanted.
func TestEveryReachableState(t *testing.T) {
	budget := ordinary / share
	if *states > 0 {
		budget = *states
	}
	total := 0
	for i, c := range origins {
		limit := (budget - total) / (len(origins) - i)
		if c.whole && share == 1 {
			limit = 1 << 30
		}
		r := Exploration{Decide: Decide, MaxStates: max(limit, 1000), Converge: 61, Workers: 2}.Run(c.start)
		total += r.States
		t.Logf("%s: %s", c.name, r)
		if r.Violation != "" {
			t.FailNow()
		}
		if c.whole && share == 1 && !r.Complete {
			t.Errorf("%s: states are left", c.name)
		}
	}
	t.Logf("%d states in all", total)
	if total < 1_000_000/share {
		t.Errorf("only %d states were visited", total)
	}
}

// TestRandomLives lives long runs. A failure prints its seed; run it again
// with -args -explore.seed=SEED.
func TestRandomLives(t *testing.T) {
	first, n := uint64(1), 1000/share
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
