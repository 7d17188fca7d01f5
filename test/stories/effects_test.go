package stories

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/act"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// TestKilledAfterEverySideEffect replaces a member whose machine was destroyed
// and then a healthy one that leads. The controller is killed after every
// single write to the management API, call of the actuator, command to an
// agent and change of etcd's membership, before it has the answer; the next
// one lives on until the first side effect that is new (F164).
func TestKilledAfterEverySideEffect(t *testing.T) {
	t.Parallel()
	everySideEffect(t, true)
}

// TestEveryAnswerLost is the same with a controller that lives: the answer of
// each side effect is lost once, as that of a MemberAdd may be (F012, F013).
func TestEveryAnswerLost(t *testing.T) {
	t.Parallel()
	everySideEffect(t, false)
}

func everySideEffect(t *testing.T, dies bool) {
	t.Helper()
	f := rig.NewFleet(t)
	founder := f.StartController()
	// Nothing here may need a member to be given up for its silence.
	f.Apply("effects", func(c *v1alpha1.EtcdCluster) { c.Spec.Repair.DeadAfter = metav1.Duration{Duration: time.Hour} })
	cluster := f.WaitReady("effects")
	founder.Stop(t)
	w := watch(t, f, "effects", nil)
	l := startLoad(t, f, cluster, 1)
	file := filepath.Join(t.TempDir(), "effects")

	lost := cluster.Status.Leader
	f.Destroy(f.Machine(lost))
	lives := untilReplaced(t, f, file, dies, lost)
	after := f.WaitReady("effects", lost)
	otherIdentity(t, cluster, after, lost)
	had := covers(t, file, 0,
		", take charge during no operation", ", record Remove of ", "etcd: MemberRemove ", "API: DELETE etcdmachines/", ", end Remove of ",
		"actuator: delete "+lost, "API: PATCH etcdmachines/"+lost, ", record Join of ", "API: POST etcdmachines effects-3", "actuator: create effects-3",
		": put identity", ": put member, run false, ", ", lock again", "etcd: MemberAdd ", "etcd: MemberPromote ", ": put member, run true, ", ", end Join of ")

	second := after.Status.Leader
	replace(t, f, second)
	lives += untilReplaced(t, f, file, dies, lost, second)
	final := f.WaitReady("effects", lost, second)
	otherIdentity(t, after, final, second)
	covers(t, file, had, "etcd: MoveLeader ", "etcd: MemberAdd ", "etcd: MemberPromote ", "etcd: MemberRemove ", ", fenced true, ", "actuator: delete "+second)

	l.mayFail(t, "two replacements", 2)
	l.kept(t, f, final)
	w.check()
	record, err := act.ReadRecord(final)
	if err != nil {
		t.Fatal(err)
	}
	if record.NextMachine != 5 || record.Operation != nil || record.Failures != 0 {
		t.Errorf("after two replacements the record is %+v, want five machines ever made and no failure", record)
	}
	t.Logf("%d controllers", lives)
}

// untilReplaced runs controllers until a cluster is Ready without machines.
func untilReplaced(t *testing.T, f *rig.Fleet, file string, dies bool, without ...string) (lives int) {
	t.Helper()
	end := time.NewTimer(2 * rig.Patience)
	defer end.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		p := startTapped(t, f, file, dies)
		lives++
		for alive := true; alive; {
			select {
			case <-p.Done():
				alive = false
			case <-end.C:
				t.Fatalf("no cluster without %v after %d controllers", without, lives)
			case <-tick.C:
				if replaced(t, f, without) {
					p.Stop(t)
					return lives
				}
			}
		}
	}
}

func replaced(t *testing.T, f *rig.Fleet, without []string) bool {
	t.Helper()
	cluster, err := f.Get(t.Context(), "effects")
	if err != nil {
		t.Fatal(err)
	}
	machines, err := f.List(t.Context(), "effects")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range without {
		if runs(cluster, name) {
			return false
		}
	}
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, "Ready") && len(machines) == 3
}

// covers asserts that side effects were had after the first ones, prints them
// and returns how many there are by now.
func covers(t *testing.T, file string, after int, wants ...string) int {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	t.Logf("%d side effects:\n%s", len(lines)-after, strings.Join(lines[after:], "\n"))
	text := "\n" + strings.Join(lines[after:], "\n") + "\n"
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("there was no side effect %q", want)
		}
	}
	return len(lines)
}
