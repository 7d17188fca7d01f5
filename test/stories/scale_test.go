package stories

import (
	"fmt"
	"testing"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// TestScaledUnderLoad goes from one to three, five, three and one while four
// clients write all the time (F017, F022).
func TestScaledUnderLoad(t *testing.T) {
	t.Parallel()
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("loaded", func(c *v1alpha1.EtcdCluster) { c.Spec.Replicas = 1 })
	cluster := f.WaitReady("loaded")
	l := startLoad(t, f, cluster, 4)
	w := watch(t, f, "loaded", l.follow)
	from := 1
	for _, to := range []int{3, 5, 3, 1} {
		patch(t, f, "loaded", func(c *v1alpha1.EtcdCluster) { c.Spec.Replicas = int32(to) }) //nolint:gosec // at most five
		cluster = f.WaitReady("loaded")
		l.mayFail(t, fmt.Sprintf("%d→%d", from, to), 0)
		from = to
	}
	l.kept(t, f, cluster)
	if n := len(w.operations()); n != 8 {
		t.Errorf("%d operations, want 4 joins and 4 removals: %+v", n, w.operations())
	}
	w.check()
	w.checkEvents()
}
