package release

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseVersion(t *testing.T) {
	for _, bad := range []string{
		"", "3", "3.7", "v3.7.3", "3.7.3.1", "3.7.3-rc.0", "3.7.3+x", " 3.7.3", "3.7.3\n", "3.07.3", "-3.7.3", "3.7.99999", "3.7.x",
	} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("%q was read as %s", bad, v)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.IntRange(0, 9999)
		want := Version{number.Draw(t, "major"), number.Draw(t, "minor"), number.Draw(t, "patch")}
		got, err := ParseVersion(want.String())
		if err != nil || got != want {
			t.Fatalf("%s was read as %s, %v", want, got, err)
		}
	})
}

func TestCompare(t *testing.T) {
	sorted := []Version{{3, 5, 9}, {3, 5, 35}, {3, 6, 0}, {3, 6, 16}, {3, 10, 0}, {4, 0, 0}}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := a.Compare(b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s compared with %s: %d", a, b, got)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for _, good := range append(slices.Clone(tested), "3.5.33", "3.6.14", "3.7.2", "3.7.99") {
		if err := Check(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, test := range []struct{ version, want string }{
		{"3.5.9", "etcd 3.5.9 is refused: members promoted from learners come back as learners in 3.6, which then doesn't start (F041); take 3.5.33 or newer"},
		{"3.5.25", "etcd 3.5.25 is refused: members removed long ago come back in 3.6 and count for quorum (F043); take 3.5.33 or newer"},
		{"3.5.32", "etcd 3.5.32 is refused: anyone who reaches the peer port can crash a member (F143); take 3.5.33 or newer"},
		{"3.6.11", "etcd 3.6.11 is refused: updating a learner makes it look like a voter (F031); take 3.6.14 or newer"},
		{"3.7.1", "etcd 3.7.1 is refused: it cannot be relied on to go back to 3.6 (F057); take 3.7.2 or newer"},
		{"3.4.40", "etcd 3.4.40 is not known here; known are 3.5 (from 3.5.33), 3.6 (from 3.6.14), 3.7 (from 3.7.2)"},
		{"3.8.0", "etcd 3.8.0 is not known here; known are 3.5 (from 3.5.33), 3.6 (from 3.6.14), 3.7 (from 3.7.2)"},
		{"v3.7.3", `"v3.7.3" is not a full version of etcd without v, like 3.7.3`},
	} {
		if err := Check(test.version); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v\nwant %s", test.version, err, test.want)
		}
	}
	if unknown := new(UnknownVersionError); !errors.As(Check("3.8.0"), &unknown) || len(unknown.Known) != 3 {
		t.Errorf("3.8.0: %v", Check("3.8.0"))
	}
	if old := new(RefusedVersionError); !errors.As(Check("3.6.0"), &old) || old.Hazard != "F045" || old.Lowest != "3.6.14" {
		t.Errorf("3.6.0: %v", Check("3.6.0"))
	}
}

// TestFloorsAscend: the first floor that a patch is below is the reason shown,
// so that an order other than ascending would hide one.
func TestFloorsAscend(t *testing.T) {
	for _, m := range minors {
		if !slices.IsSortedFunc(m.floors, func(a, b floor) int { return a.patch - b.patch }) {
			t.Errorf("floors of %s: %v", m, m.floors)
		}
		for _, f := range m.floors {
			if !strings.HasPrefix(f.hazard, "F") || f.reason == "" {
				t.Errorf("a floor of %s gives no reason: %v", m, f)
			}
		}
	}
}
