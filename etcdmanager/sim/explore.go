package sim

import (
	"fmt"
	"strings"
	"sync"
)

// Exploration visits every state that can be reached from a start, breadth
// first, each once.
type Exploration struct {
	Decide Planner
	// MaxStates ends it, after the level in which that many were reached, or
	// before a level that would exceed it by far.
	MaxStates int
	// Converge, if not zero, has one of so many states stop suffering faults
	// and requires that it comes to rest as wanted.
	Converge int
	Workers  int
}

// Result of an Exploration.
type Result struct {
	States, Edges int
	// Depth is how many events deep every state was visited; Complete says
	// that there are no others.
	Depth    int
	Complete bool
	// Converged counts states from which faults stopped, Hopeless those of
	// them whose data was lost beyond repair.
	Converged, Hopeless int
	Violation           Violation
	Trace               []string
}

func (r Result) String() string {
	text := fmt.Sprintf("%d states, %d transitions, depth %d", r.States, r.Edges, r.Depth)
	if r.Complete {
		text += ", complete"
	}
	text += fmt.Sprintf("; from %d of them faults stopped, %d of which were beyond repair", r.Converged, r.Hopeless)
	if r.Violation != "" {
		text += fmt.Sprintf("\nviolated: %s\n  %s", r.Violation, strings.Join(r.Trace, "\n  "))
	}
	return text
}

// node remembers how a state was reached first.
type node struct {
	parent uint32
	event  Event
}

type successor struct {
	state     State
	key       uint64
	parent    uint32
	event     Event
	violation Violation
}

// Run explores from a start.
func (x Exploration) Run(start State) Result {
	r := Result{States: 1}
	nodes := []node{{}}
	seen := map[uint64]struct{}{start.Key(): {}}
	level, first := []State{start}, uint32(0)
	for len(level) > 0 && r.Violation == "" && r.States < x.MaxStates {
		var next []State
		for at := 0; at < len(level) && r.Violation == ""; at += chunk * x.Workers {
			for _, batch := range x.expand(level, first, at) {
				for i := range batch {
					b := &batch[i]
					r.Edges++
					if b.violation != "" {
						r.Violation, r.Trace = b.violation, trace(start, nodes, b.parent, b.event, x.Decide)
						return r
					}
					if _, known := seen[b.key]; known {
						continue
					}
					seen[b.key] = struct{}{}
					nodes = append(nodes, node{b.parent, b.event})
					next = append(next, b.state)
				}
			}
		}
		r.States = len(nodes)
		if v, at := x.converge(&r, next, len(nodes)-len(next)); v != "" {
			r.Violation, r.Trace = v, trace(start, nodes, nodes[at].parent, nodes[at].event, x.Decide)
			return r
		}
		level, first = next, uint32(len(nodes)-len(next))
		r.Depth++
	}
	r.Complete = len(level) == 0
	return r
}

// chunk is how many states a worker expands at a time.
const chunk = 2048

// expand has each worker expand one chunk of a level. What comes of it does
// not depend on how many they are.
func (x Exploration) expand(level []State, first uint32, at int) [][]successor {
	batches := make([][]successor, x.Workers)
	var wg sync.WaitGroup
	for w := range x.Workers {
		from := min(at+w*chunk, len(level))
		to := min(from+chunk, len(level))
		wg.Go(func() {
			var events []Event
			for i := from; i < to; i++ {
				events = level[i].Events(events[:0], false)
				for _, e := range events {
					s := level[i]
					v := s.Apply(e, x.Decide)
					batches[w] = append(batches[w], successor{s, s.Key(), first + uint32(i), e, v})
				}
			}
		})
	}
	wg.Wait()
	return batches
}

// converge stops the faults of some of a level's states.
func (x Exploration) converge(r *Result, states []State, first int) (Violation, int) {
	if x.Converge == 0 {
		return "", 0
	}
	for i := range states {
		if states[i].Key()%uint64(x.Converge) != 0 {
			continue
		}
		s := states[i]
		r.Converged++
		hopeless, v := s.Settle(x.Decide)
		if hopeless {
			r.Hopeless++
		}
		if v != "" {
			return v, first + i
		}
	}
	return "", 0
}

// trace replays how a state was reached, and one event more.
func trace(start State, nodes []node, at uint32, last Event, decide Planner) []string {
	events := []Event{last}
	for at != 0 {
		events = append([]Event{nodes[at].event}, events...)
		at = nodes[at].parent
	}
	s := start
	lines := make([]string, 0, len(events))
	for _, e := range events {
		lines = append(lines, s.describe(e))
		s.Apply(e, decide)
	}
	return append(lines, "then: "+s.String())
}
