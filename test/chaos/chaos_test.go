package chaos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/act"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

const (
	// patience with a cluster that is to be as wanted again.
	patience = 6 * time.Minute
	// injectTimeout bounds the faults of a round, which last 20 s at most but
	// may wait for a management API.
	injectTimeout = 3 * time.Minute
	// checkTimeout bounds the search for an order of a round's operations.
	checkTimeout = 3 * time.Minute
	// freshWrites of each client prove that the cluster takes them.
	freshWrites = 5
)

// TestChaos hurts one cluster round by round, each time until it is well again.
func TestChaos(t *testing.T) {
	t.Logf("SEED=%d ROUNDS=%d, partitions: %t", *seed, *rounds, partitions())
	possible := kinds
	if partitions() {
		possible = slices.Concat(kinds, network)
	}
	f := rig.NewFleet(t)
	h := &hurt{fleet: f, cluster: "chaos", log: t.Logf, controller: f.StartController()}
	f.Apply(h.cluster)
	cluster := f.WaitReady(h.cluster)
	x := &chaos{T: t, hurt: h, report: newReport()}
	x.tls = x.clientTLS()
	t.Cleanup(x.explain)
	for _, r := range schedule(*seed, *rounds, possible) {
		cluster = x.round(r, cluster)
	}
	x.keptToTheEnd(cluster)
	t.Logf("SEED=%d: %s", *seed, x.report)
}

type chaos struct {
	*testing.T
	*hurt
	*report
	tls   *tls.Config
	acks  [][]ack // by round
	grown int     // machines added to scale
}

// round does one round to a cluster that is well, and returns it well again.
func (x *chaos) round(r round, cluster *v1alpha1.EtcdCluster) *v1alpha1.EtcdCluster {
	x.Helper()
	began := time.Now()
	members := x.members(cluster)
	x.Logf("%s\n  %s", r, described(members))
	l := startLoad(x.T, prefix(r.number), x.tls, cluster.Status.Endpoints, *seed+uint64(r.number))
	stopFollowing := x.follow(l)
	defer stopFollowing()
	x.writesOn(l)

	since := l.now()
	ctx, cancel := context.WithTimeout(x.Context(), injectTimeout)
	defer cancel()
	if err := x.inject(ctx, r, members); err != nil {
		x.Fatalf("%s: could not be done: %v", r, err)
	}
	over := time.Since(began)
	rig.Eventually(x, patience, fmt.Sprintf("the cluster to be well after %s", r), func(ctx context.Context) error {
		var err error
		cluster, err = x.settled(ctx, x.tls, r.scaled(), doomed(r, members))
		return err
	})
	x.writesOn(l)
	gap := l.gap(since)
	stopFollowing()
	l.stop()
	if err := l.verdict(); err != nil {
		x.Fatalf("%s: what clients saw: %v", r, err)
	}
	x.untouched(r, members, cluster)
	x.acks = append(x.acks, l.acks)
	x.data(cluster, r.number)
	x.add(r, l, gap)
	x.grown += max(0, r.scaled()-r.replicas)
	x.Logf("round %d: well; faults over at %s, well at %s, longest gap %s, %d operations, %d unanswered",
		r.number, over.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), seconds(gap), len(l.history)+len(l.acks), l.failed)
	return cluster
}

func prefix(round int) string { return fmt.Sprintf("round/%d/", round) }

// members are the leader and then its followers.
func (x *chaos) members(cluster *v1alpha1.EtcdCluster) []member {
	x.Helper()
	list, err := x.fleet.List(x.Context(), x.cluster)
	if err != nil {
		x.Fatal(err)
	}
	slices.SortFunc(list, func(a, b v1alpha1.EtcdMachine) int {
		if (a.Name == cluster.Status.Leader) != (b.Name == cluster.Status.Leader) {
			if a.Name == cluster.Status.Leader {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	var all []member
	for _, object := range list {
		m := member{object: object, told: observe.MachineFor(nil, &object)}
		_, m.etcd = x.fleet.Processes(&object)
		all = append(all, m)
	}
	return all
}

func described(members []member) string {
	var all []string
	for i, m := range members {
		all = append(all, fmt.Sprintf("%d: %s at %s, etcd %d", i, m.object.Name, m.object.Status.Address, m.etcd))
	}
	return strings.Join(all, "; ")
}

// doomed are machines that must be gone after a round.
func doomed(r round, members []member) []string {
	var names []string
	for _, f := range r.faults {
		if f.kind.losses > 0 || f.kind.goes {
			for _, n := range f.members {
				names = append(names, members[n].object.Name)
			}
		}
	}
	return names
}

// writesOn waits until every client's writes are answered.
func (x *chaos) writesOn(l *load) {
	x.Helper()
	before := l.writes()
	rig.Eventually(x, rig.Timeout, "every client to write", func(context.Context) error {
		if n := l.writes() - before; n < freshWrites {
			return fmt.Errorf("one wrote %d times", n)
		}
		return nil
	})
}

// follow tells the clients where the cluster is, as a consumer's reader of the
// status would.
func (x *chaos) follow(l *load) (stop func()) {
	ctx, cancel := context.WithCancel(x.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			bounded, cancel := context.WithTimeout(ctx, askTimeout)
			cluster, err := x.fleet.Get(bounded, x.cluster)
			cancel()
			if err == nil && len(cluster.Status.Endpoints) > 0 {
				l.endpoints.Store(&cluster.Status.Endpoints)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// untouched holds that etcd notices nothing of agents, controllers and
// management APIs that go.
func (x *chaos) untouched(r round, before []member, cluster *v1alpha1.EtcdCluster) {
	x.Helper()
	for _, f := range r.faults {
		if !f.kind.gentle() {
			return
		}
	}
	etcd := map[string]int{}
	for _, m := range x.members(cluster) {
		etcd[m.object.Name] = m.etcd
	}
	for _, m := range before {
		if now := etcd[m.object.Name]; now != m.etcd {
			x.Errorf("%s: etcd of %s is process %d now, and was %d", r, m.object.Name, now, m.etcd)
		}
	}
}

// data compares the members with each other and with what was answered.
func (x *chaos) data(cluster *v1alpha1.EtcdCluster, number int) {
	x.Helper()
	etcd := x.client(cluster)
	defer etcd.Close() //nolint:errcheck // only read from
	rig.Eventually(x, rig.Timeout, "all members to hold the same", func(ctx context.Context) error {
		return sameEverywhere(ctx, etcd)
	})
	x.acknowledged(etcd, number)
}

func (x *chaos) acknowledged(etcd *clientv3.Client, number int) {
	x.Helper()
	var lost error
	rig.Eventually(x, rig.Timeout, "to read what was written", func(ctx context.Context) error {
		err := kept(ctx, etcd, prefix(number), x.acks[number-1])
		if errors.Is(err, errLost) {
			lost = err
			return nil
		}
		return err
	})
	if lost != nil {
		x.Fatalf("round %d: %v", number, lost)
	}
}

// keptToTheEnd looks for what was written in all rounds once more.
func (x *chaos) keptToTheEnd(cluster *v1alpha1.EtcdCluster) {
	x.Helper()
	etcd := x.client(cluster)
	defer etcd.Close() //nolint:errcheck // only read from
	for i := range x.acks {
		x.acknowledged(etcd, i+1)
	}
	record, err := act.ReadRecord(cluster)
	if err != nil {
		x.Fatal(err)
	}
	// Those made, but for the founders and those added to scale.
	x.replaced = int(record.NextMachine) - founders - x.grown
}

func (x *chaos) client(cluster *v1alpha1.EtcdCluster) *clientv3.Client {
	x.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: cluster.Status.Endpoints, TLS: x.tls, Logger: zap.NewNop()})
	if err != nil {
		x.Fatal(err)
	}
	return etcd
}

func (x *chaos) clientTLS() *tls.Config {
	x.Helper()
	certs := x.fleet.Certs(x.cluster)
	pair, err := tls.LoadX509KeyPair(certs.Cert, certs.Key)
	if err != nil {
		x.Fatal(err)
	}
	ca, err := os.ReadFile(certs.CA)
	if err != nil {
		x.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool}
}

// explain shows etcd's logs; those of agents and controllers the rig shows.
func (x *chaos) explain() {
	if !x.Failed() {
		return
	}
	x.Logf("to repeat: make chaos SEED=%d ROUNDS=%d", *seed, x.rounds+1)
	logs, _ := filepath.Glob(filepath.Join(x.fleet.Dir, "machines", "*", "agent", "etcd.log"))
	for _, log := range logs {
		x.Logf("%s:\n%s", log, rig.Tail(log))
	}
}
