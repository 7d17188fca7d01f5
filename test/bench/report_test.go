package bench

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what all rounds took.
type report struct {
	plainFounding, ready, endpoints, replacement, plainGap, gap []time.Duration
}

func (r *report) ratio() float64 {
	return median(r.ready).Seconds() / median(r.plainFounding).Seconds()
}

// String is a table of medians with their extremes, and what they are worth
// beside each other. The go command cuts a benchmark's log after ten lines.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rounds\n", len(r.ready))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tmedian\tleast\tmost\t")
	for _, line := range []struct {
		what string
		took []time.Duration
	}{
		{"three plain etcd, start to reads on all", r.plainFounding},
		{"EtcdCluster of three, apply to Ready", r.ready},
		{"  until all endpoints are published", r.endpoints},
		{"leader's machine destroyed, lost to Ready", r.replacement},
		{"  longest gap of a writer meanwhile", r.gap},
		{"plain leader killed, longest gap of a writer", r.plainGap},
	} {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", line.what, seconds(median(line.took)), seconds(slices.Min(line.took)), seconds(slices.Max(line.took)))
	}
	_ = w.Flush() // to memory
	fmt.Fprintf(&b, "apply to Ready / plain etcd: %.2f; gap of a replacement / plain leader killed: %.2f",
		r.ratio(), median(r.gap).Seconds()/median(r.plainGap).Seconds())
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
