package chaos

import (
	"reflect"
	"slices"
	"testing"
)

// TestSchedule holds many schedules to what a cluster can survive: a minority
// of disks, at the beginning; otherwise a lost cluster would be our own doing.
func TestSchedule(t *testing.T) {
	kinds := slices.Concat(kinds, network)
	seen := map[string]int{}
	together := map[int]int{}
	for seed := range uint64(500) {
		plan := schedule(seed, 20, kinds)
		replicas := 3
		for _, r := range plan {
			if r.replicas != replicas {
				t.Fatalf("seed %d: %s; want %d members", seed, r, replicas)
			}
			replicas = r.scaled()
			survivable(t, seed, r)
			together[len(r.faults)]++
			for _, f := range r.faults {
				seen[f.kind.name]++
			}
		}
	}
	for _, k := range kinds {
		if seen[k.name] < 50 {
			t.Errorf("%q is in %d of 10000 rounds", k.name, seen[k.name])
		}
	}
	for n := 1; n <= 3; n++ {
		if together[n] < 1000 {
			t.Errorf("%d of 10000 rounds have %d faults", together[n], n)
		}
	}
}

func survivable(t *testing.T, seed uint64, r round) {
	t.Helper()
	lost, leaving := map[int]bool{}, 0
	for _, f := range r.faults {
		for _, m := range f.members {
			if m < 0 || m >= r.replicas {
				t.Fatalf("seed %d: %s: there is no member %d", seed, r, m)
			}
		}
		if f.kind.losses > 0 {
			for _, m := range f.members {
				lost[m] = true
			}
			if len(f.members) != f.kind.losses || f.after > 0 {
				t.Fatalf("seed %d: %s: %d members lose their disks after %s", seed, r, len(f.members), f.after)
			}
		}
		if f.to > 0 && f.to < r.replicas {
			leaving = 1
		}
	}
	if minority := (r.replicas - 1) / 2; len(lost)+leaving > minority {
		t.Fatalf("seed %d: %s: more than %d are lost", seed, r, minority)
	}
}

// TestScheduleRepeats: what a seed says does not depend on how many rounds
// are asked for.
func TestScheduleRepeats(t *testing.T) {
	names := func(rounds []round) (all []string) {
		for _, r := range rounds {
			all = append(all, r.String())
		}
		return all
	}
	long, short := names(schedule(7, 30, kinds)), names(schedule(7, 10, kinds))
	if !reflect.DeepEqual(long[:10], short) {
		t.Errorf("ten rounds are\n%q\nand the first of thirty\n%q", short, long[:10])
	}
	if other := names(schedule(8, 10, kinds)); reflect.DeepEqual(other, short) {
		t.Errorf("two seeds say the same: %q", other)
	}
}
