package release

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// managedGates are on whatever the user says: the checks that find diverged
// members (F069), and clients that fail over from a member that is busy
// defragmenting (F114).
var managedGates = map[string]bool{
	"CompactHashCheck":        true,
	"InitialCorruptCheck":     true,
	"StopGRPCServiceOnDefrag": true,
}

// mergeGates adds the user's feature gates, as etcd takes them, to the
// manager's own.
func (m minor) mergeGates(user string) (string, error) {
	gates := maps.Clone(managedGates)
	for entry := range strings.SplitSeq(user, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, value, found := strings.Cut(entry, "=")
		on, err := strconv.ParseBool(value)
		switch {
		case !found || err != nil:
			return "", fmt.Errorf("%q is not GATE=true or GATE=false", entry)
		case !slices.Contains(m.gates, name):
			return "", fmt.Errorf("etcd %s has no feature gate %s", m, name)
		case managedGates[name] && !on:
			return "", fmt.Errorf("feature gate %s is set by the manager", name)
		}
		gates[name] = on
	}
	var merged []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		merged = append(merged, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return strings.Join(merged, ","), nil
}
