package observe

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
)

// TestPatience waits less for a machine that long said nothing, or that is to
// end, and never for one that was not told to run yet: it may be slow.
func TestPatience(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cluster := &v1alpha1.EtcdCluster{}
	cluster.Spec.Repair.DeadAfter.Duration = time.Minute
	ending := metav1.NewTime(start)
	for name, c := range map[string]struct {
		declared, mute bool
		deleted        *metav1.Time
		after          time.Duration
		short          bool
	}{
		"answers":               {declared: true, after: time.Hour},
		"mute for a moment":     {declared: true, mute: true, after: time.Second},
		"mute for long":         {declared: true, mute: true, after: time.Minute, short: true},
		"mute and to end":       {declared: true, mute: true, deleted: &ending, short: true},
		"answers and is to end": {declared: true, deleted: &ending, after: time.Hour},
		"not told to run yet":   {mute: true, after: time.Hour},
	} {
		now := start
		o := New(nil, "", func() time.Time { return now })
		m := &Machine{Object: &v1alpha1.EtcdMachine{ObjectMeta: metav1.ObjectMeta{UID: "u", DeletionTimestamp: c.deleted}}}
		o.memory.note("c", "u", now, false, c.declared, false, "")
		o.memory.noteMute("u", now, c.mute)
		now = start.Add(c.after)
		if short := o.patience(cluster, m) == deadlineGiven; short != c.short {
			t.Errorf("%s: short %t, want %t", name, short, c.short)
		}
	}
}
