package release

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
)

// Version is a full version of etcd. Pre-releases are none.
type Version struct{ Major, Minor, Patch int }

var versionPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$`)

// ParseVersion reads X.Y.Z, without v.
func ParseVersion(s string) (Version, error) {
	parts := versionPattern.FindStringSubmatch(s)
	if parts == nil {
		return Version{}, fmt.Errorf("%q is not a full version of etcd without v, like 3.7.3", s)
	}
	var numbers [3]int
	for i, part := range parts[1:] {
		numbers[i], _ = strconv.Atoi(part) // at most four digits
	}
	return Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2]}, nil
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Compare is negative if v is older than w, zero if equal, positive if newer.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}
