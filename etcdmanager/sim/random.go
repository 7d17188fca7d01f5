package sim

import (
	"fmt"
	"math/rand/v2"
)

// Random is one long run of a fleet's life, made up from a seed: episodes of
// trouble, after each of which faults stop and the cluster must come to rest.
type Random struct {
	Decide   Planner
	Seed     uint64
	Episodes int
}

// Run lives it. Trace is what happened since the start of the last episode.
func (r Random) Run() (events int, trace []string, v Violation) {
	rng := rand.New(rand.NewPCG(r.Seed, 1))
	n := []int{1, 3, 5}[rng.IntN(3)]
	s := Founded(n, 0)
	if rng.IntN(4) == 0 {
		s = Unfounded(n, 0)
	}
	for range r.Episodes {
		if s.nextMach > 150 || s.nextMemb > 180 {
			break // the model's numbers end here
		}
		s.faults, s.recordLost, s.peak = uint8(1+rng.IntN(4)), false, max(s.replicas, s.nMach)
		trace = []string{"starts with: " + s.String()}
		for range 20 + rng.IntN(150) {
			e, ok := s.pick(rng)
			if !ok {
				break
			}
			events++
			trace = append(trace, s.describe(e))
			if v := s.Apply(e, r.Decide); v != "" {
				return events, append(trace, "then: "+s.String()), v
			}
		}
		hopeless, v := s.Settle(r.Decide)
		if v != "" {
			return events, append(trace, fmt.Sprintf("then: %s", s.String())), v
		}
		if hopeless {
			break
		}
	}
	return events, nil, ""
}

// pick chooses what happens next: a fault now and then, else what gets the
// fleet further, with time passing least often.
func (s *State) pick(rng *rand.Rand) (Event, bool) {
	var calm, time, faults []Event
	for _, e := range s.Events(nil, true) {
		switch {
		case e.kind > firstFault:
			faults = append(faults, e)
		case e.kind == minutes || e.kind == moments:
			time = append(time, e)
		default:
			calm = append(calm, e)
		}
	}
	from := calm
	switch roll := rng.IntN(100); {
	case roll < 8 && len(faults) > 0:
		from = faults
	case roll < 16 && len(time) > 0:
		from = time
	}
	if len(from) == 0 {
		return Event{}, false
	}
	return from[rng.IntN(len(from))], true
}
