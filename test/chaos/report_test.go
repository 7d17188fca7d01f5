package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// report is what is printed in the end.
type report struct {
	rounds, operations, failed, acks int
	replaced                         int
	injected                         map[string]int
	// The longest times without an answered write, of rounds with this fault
	// alone and with others.
	alone, together map[string]time.Duration
}

func newReport() *report {
	return &report{injected: map[string]int{}, alone: map[string]time.Duration{}, together: map[string]time.Duration{}}
}

func (r *report) add(done round, l *load, gap time.Duration) {
	r.rounds++
	r.operations += len(l.history) + len(l.acks)
	r.failed += l.failed
	r.acks += len(l.acks)
	gaps := r.together
	if len(done.faults) == 1 {
		gaps = r.alone
	}
	for _, f := range done.faults {
		r.injected[f.kind.name]++
		gaps[f.kind.name] = max(gaps[f.kind.name], gap)
	}
}

func (r *report) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d rounds; %d operations checked, %d more unanswered; %d single writes all there; %d machines replaced\n",
		r.rounds, r.operations, r.failed, r.acks, r.replaced)
	fmt.Fprintf(&text, "%-50s %6s %14s %14s\n", "fault", "times", "gap alone", "gap together")
	var names []string
	for name := range r.injected {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&text, "%-50s %6d %14s %14s\n", name, r.injected[name], seconds(r.alone[name]), seconds(r.together[name]))
	}
	return text.String()
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
