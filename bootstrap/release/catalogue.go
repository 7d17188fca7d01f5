package release

import (
	"fmt"
	"strings"
)

// minor is a minor release that the manager knows how to run.
type minor struct {
	major, minor int
	floors       []floor // the first one that a patch is below says why not
	flags        map[string]kind
	gates        []string // of --feature-gates; none before 3.6
}

func (m minor) String() string { return fmt.Sprintf("%d.%d", m.major, m.minor) }

// lowest is the oldest patch that is not refused.
func (m minor) lowest() int {
	lowest := 0
	for _, f := range m.floors {
		lowest = max(lowest, f.patch)
	}
	return lowest
}

// floor is a patch that fixes what nobody should run.
type floor struct {
	patch  int
	reason string // what goes wrong on older patches
	hazard string
}

// minors is the catalogue, oldest first. 3.5 is in it from the floors for
// security on, which are past those for its way to 3.6 (F041, F042, F043).
var minors = []minor{
	{major: 3, minor: 5, flags: flags3_5, gates: gates3_5, floors: []floor{
		{20, "members promoted from learners come back as learners in 3.6, which then doesn't start", "F041"},
		{26, "members removed long ago come back in 3.6 and count for quorum", "F043"},
		{32, "the list of revoked certificates can be bypassed", "F142"},
		{33, "anyone who reaches the peer port can crash a member", "F143"},
	}},
	{major: 3, minor: 6, flags: flags3_6, gates: gates3_6, floors: []floor{
		{4, "a member doesn't start on a log that holds a learner's promotion", "F045"},
		{5, "a defragmentation while a snapshot arrives corrupts the data", "F117"},
		{11, "3.7 may not join it", "F046"},
		{12, "updating a learner makes it look like a voter", "F031"},
		{13, "the list of revoked certificates can be bypassed", "F142"},
		{14, "anyone who reaches the peer port can crash a member", "F143"},
	}},
	{major: 3, minor: 7, flags: flags3_7, gates: gates3_7, floors: []floor{
		{1, "anyone who reaches the peer port can crash a member", "F143"},
		{2, "it cannot be relied on to go back to 3.6", "F057"},
	}},
}

// UnknownVersionError says that no minor release of that version is known.
type UnknownVersionError struct {
	Version string
	Known   []string // what is, oldest first, for example "3.7 (from 3.7.2)"
}

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("etcd %s is not known here; known are %s", e.Version, strings.Join(e.Known, ", "))
}

// RefusedVersionError says that a patch is too old to be run.
type RefusedVersionError struct {
	Version string
	Lowest  string // the oldest patch of that minor that may be run
	Reason  string // what goes wrong on it
	Hazard  string // for example F143
}

func (e *RefusedVersionError) Error() string {
	return fmt.Sprintf("etcd %s is refused: %s (%s); take %s or newer", e.Version, e.Reason, e.Hazard, e.Lowest)
}

// Check says whether a version may be run: nil, an *UnknownVersionError or a
// *RefusedVersionError.
func Check(version string) error {
	_, err := lookup(version)
	return err
}

func lookup(version string) (minor, error) {
	v, err := ParseVersion(version)
	if err != nil {
		return minor{}, err
	}
	for _, m := range minors {
		if m.major != v.Major || m.minor != v.Minor {
			continue
		}
		for _, f := range m.floors {
			if v.Patch < f.patch {
				lowest := Version{Major: m.major, Minor: m.minor, Patch: m.lowest()}
				return minor{}, &RefusedVersionError{Version: version, Lowest: lowest.String(), Reason: f.reason, Hazard: f.hazard}
			}
		}
		return m, nil
	}
	return minor{}, &UnknownVersionError{Version: version, Known: known()}
}

func known() []string {
	var list []string
	for _, m := range minors {
		list = append(list, fmt.Sprintf("%s (from %s.%d)", m, m, m.lowest()))
	}
	return list
}
