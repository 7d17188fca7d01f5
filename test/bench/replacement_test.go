package bench

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap/release"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// BenchmarkReplacement destroys the leader's machine in one EtcdCluster and a
// follower's in another, beside plain etcd whose dead member somebody who
// waits for it replaces by hand at once.
func BenchmarkReplacement(b *testing.B) {
	f := rig.NewFleet(b)
	f.StartController()
	watching, err := client.NewWithWatch(f.API.Config(), client.Options{Scheme: rig.Scheme(b)})
	if err != nil {
		b.Fatal(err)
	}
	kinds := []struct {
		name          string
		leader        bool
		managed, hand losses
	}{{name: "leader", leader: true}, {name: "follower"}}
	for b.Loop() {
		for round := range *rounds {
			for i := range kinds {
				k := &kinds[i]
				k.hand.add(byHand(b, k.leader))
				k.managed.add(lose(b, f, watching, k.name+"-"+strconv.Itoa(round), k.leader))
			}
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d rounds, medians\n", *rounds)
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tdeath to replaced\tlongest write gap\tfailed attempts\t")
	for _, k := range kinds {
		fmt.Fprintf(w, "%s's machine of an EtcdCluster\t%s\t\n", k.name, k.managed.line())
		fmt.Fprintf(w, "%s of plain etcd, by hand\t%s\t\n", k.name, k.hand.line())
		b.ReportMetric(median(k.managed.took).Seconds(), k.name+"-s")
		b.ReportMetric(median(k.managed.gap).Seconds(), k.name+"-gap-s")
	}
	_ = w.Flush() // to memory
	b.Log(strings.TrimSpace(text.String()))
	b.ReportMetric(0, "ns/op") // the sum of all rounds says nothing
}

// losses of one kind.
type losses struct {
	took, gap []time.Duration
	failures  int
}

func (l *losses) add(took time.Duration, seen count) {
	l.took, l.gap = append(l.took, took), append(l.gap, seen.gap)
	l.failures += seen.failures
}

func (l *losses) line() string {
	return fmt.Sprintf("%s\t%s\t%d", seconds(median(l.took)), seconds(median(l.gap)), l.failures)
}

// lose measures from the death of a machine until the cluster is Ready.
func lose(b *testing.B, f *rig.Fleet, watching client.WithWatch, name string, leader bool) (time.Duration, count) {
	b.Helper()
	f.Apply(name)
	cluster := waitFor(b, watching, f.Namespace, name, hasEndpoints)
	victim := cluster.Status.Leader
	for _, m := range cluster.Status.Members {
		if !leader && m.Machine != cluster.Status.Leader {
			victim = m.Machine
		}
	}
	w := startWriter(b, f.Etcd(cluster))
	w.untilWritten(b)
	lost := f.Machine(victim)
	began := time.Now()
	f.Destroy(lost)
	waitFor(b, watching, f.Namespace, name, func(c *v1alpha1.EtcdCluster) bool { return isReady(c) && !hasMember(c, victim) })
	took := time.Since(began)
	w.untilWritten(b)
	seen := w.stop()
	if err := f.API.Delete(b.Context(), cluster); err != nil {
		b.Fatal(err)
	}
	return took, seen
}

// byHand measures from the death of a member of plain etcd until another votes
// and answers reads.
func byHand(b *testing.B, leader bool) (time.Duration, count) {
	b.Helper()
	etcd := newPlain(b)
	etcd.start(b)
	etcd.waitServing(b)
	w := startWriter(b, etcd.client(b, etcd.urls()...))
	w.untilWritten(b)
	victim, id := etcd.choose(b, leader)
	spare := etcd.lay(b, filepath.Join(b.TempDir(), "spare"), "plain-spare", rig.FreeLoopback(b))
	began := time.Now()
	etcd.kill(victim)
	etcd.replace(b, victim, id, spare)
	etcd.waitServing(b)
	took := time.Since(began)
	w.untilWritten(b)
	seen := w.stop()
	etcd.stop()
	return took, seen
}

// choose finds a member that leads, or one that does not.
func (p *plain) choose(b *testing.B, leader bool) (index int, id uint64) {
	b.Helper()
	for i, url := range p.urls() {
		ctx, cancel := context.WithTimeout(b.Context(), rig.Timeout)
		status, err := p.client(b, url).Status(ctx, url)
		cancel()
		if err != nil {
			b.Fatalf("ask plain etcd who leads: %v", err)
		}
		if (status.Leader == status.Header.MemberId) == leader {
			return i, status.Header.MemberId
		}
	}
	b.Fatal("no such member of plain etcd")
	return 0, 0
}

// replace removes a member, adds another as a learner, starts and promotes
// it. What etcd declines is asked again soon.
func (p *plain) replace(b *testing.B, victim int, id uint64, spare release.Member) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), rig.Timeout)
	defer cancel()
	rest := p.client(b, p.members[(victim+1)%size].ClientURL, p.members[(victim+2)%size].ClientURL)
	insist(ctx, b, "remove the dead member", func(ctx context.Context) error {
		_, err := rest.MemberRemove(ctx, id)
		return err
	})
	var added *clientv3.MemberAddResponse
	insist(ctx, b, "add a learner", func(ctx context.Context) (err error) {
		added, err = rest.MemberAddAsLearner(ctx, []string{spare.PeerURL})
		return err
	})
	p.members[victim] = spare
	var initial []string
	for _, m := range p.members {
		initial = append(initial, m.Name+"="+m.PeerURL)
	}
	spare.InitialCluster, spare.Found = strings.Join(initial, ","), false
	flags, err := release.Flags(rig.Version, spare)
	if err != nil {
		b.Fatal(err)
	}
	etcd := exec.Command(rig.Etcd(b, rig.Version, "etcd"), flags...)
	etcd.Env = []string{}
	etcd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := etcd.Start(); err != nil {
		b.Fatal(err)
	}
	p.processes[victim] = etcd
	insist(ctx, b, "promote the learner", func(ctx context.Context) error {
		_, err := rest.MemberPromote(ctx, added.Member.ID)
		return err
	})
}

func insist(ctx context.Context, b *testing.B, what string, do func(context.Context) error) {
	b.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := do(one)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			b.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}
