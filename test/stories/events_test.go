package stories

import (
	"context"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// told counts a cluster's events by their reason.
func told(ctx context.Context, f *rig.Fleet, name string) (map[string]int, []string, error) {
	var list eventsv1.EventList
	if err := f.API.List(ctx, &list, client.InNamespace(f.Namespace)); err != nil {
		return nil, nil, err
	}
	counts, lines := map[string]int{}, []string{}
	for _, e := range list.Items {
		if e.Regarding.Kind != "EtcdCluster" || e.Regarding.Name != name {
			continue
		}
		n := 1
		if e.Series != nil {
			n = int(e.Series.Count)
		}
		counts[e.Reason] += n
		lines = append(lines, fmt.Sprintf("%d× %s: %s", n, e.Reason, e.Note))
	}
	return counts, lines, nil
}

// checkEvents asserts that a user was told of each decision once, whatever
// the number of looks that came to it. It holds for one controller that lived
// throughout.
func (w *witness) checkEvents() {
	w.t.Helper()
	operations := w.operations()
	if len(operations) == 0 {
		w.t.Errorf("there was no operation on %s", w.name)
	}
	var counts map[string]int
	var lines []string
	rig.Eventually(w.t, rig.Timeout, "the events to be written", func(ctx context.Context) error {
		var err error
		if counts, lines, err = told(ctx, w.f, w.name); err != nil {
			return err
		}
		if n := counts[string(plan.EndOperation)]; n < len(operations) {
			return fmt.Errorf("%d of %d ends of operations are told", n, len(operations))
		}
		return nil
	})
	for _, kind := range []plan.Kind{plan.BeginOperation, plan.EndOperation} {
		if counts[string(kind)] != len(operations) {
			w.t.Errorf("%d events %s for %d operations:\n%s", counts[string(kind)], kind, len(operations), strings.Join(lines, "\n"))
		}
	}
	// A call that etcd declines is decided on again later: each Remove has one
	// removal and each Join that came so far one addition and one promotion,
	// and few more.
	for _, each := range []struct {
		step plan.Kind
		of   plan.OperationKind
	}{{plan.RemoveMember, plan.Remove}, {plan.AddLearner, plan.Join}, {plan.Promote, plan.Join}} {
		n := countKind(operations, each.of)
		if got := counts[string(each.step)]; got < min(1, n) || got > 3*n {
			w.t.Errorf("%d events %s for %d operations %s:\n%s", got, each.step, n, each.of, strings.Join(lines, "\n"))
		}
	}
}

func countKind(operations []v1alpha1.Operation, kind plan.OperationKind) int {
	n := 0
	for _, op := range operations {
		if op.Kind == string(kind) {
			n++
		}
	}
	return n
}

// shows asserts that kubectl describe shows a condition with its reason and
// message, as the version has them, and returns all that it shows.
func shows(t *testing.T, f *rig.Fleet, name, kind, status, reason, message string) string {
	t.Helper()
	shown := describe(t, f, name)
	for _, want := range []string{
		"Message: " + strings.Join(strings.Fields(message), " ") + " ", "Reason: " + reason + " Status: " + status + " Type: " + kind + " ",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("kubectl describe does not show %q:\n%s", want, shown)
		}
	}
	return shown
}
