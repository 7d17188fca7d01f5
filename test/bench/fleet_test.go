package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// BenchmarkFleet alternates between plain etcd and the product, so that both
// meet the same load, and fails when founding takes too many times as long.
func BenchmarkFleet(b *testing.B) {
	f := rig.NewFleet(b)
	controller := f.StartController("--log-level=debug")
	watching, err := client.NewWithWatch(f.API.Config(), client.Options{Scheme: rig.Scheme(b)})
	if err != nil {
		b.Fatal(err)
	}
	var r report
	for b.Loop() {
		for i := range *rounds {
			r.plain(b)
			r.managed(b, f, watching, "bench-"+strconv.Itoa(i))
		}
	}
	b.Log(r.String())
	if *keepLog != "" {
		log, err := os.ReadFile(controller.Log)
		if err := errors.Join(err, os.WriteFile(*keepLog, log, 0o600)); err != nil {
			b.Errorf("keep the controller's log: %v", err)
		}
	}
	ratio := r.ratio()
	b.ReportMetric(ratio, "ready/plain")
	b.ReportMetric(0, "ns/op") // the sum of all rounds says nothing
	if ratio > *limit {
		b.Errorf("apply to Ready takes %.2f times as long as plain etcd; at most %.2f are allowed", ratio, *limit)
	}
}

// plain measures one round of three etcd processes started by hand.
func (r *report) plain(b *testing.B) {
	b.Helper()
	etcd := newPlain(b)
	began := time.Now()
	etcd.start(b)
	etcd.waitServing(b)
	r.plainFounding = append(r.plainFounding, time.Since(began))

	w := startWriter(b, etcd.client(b, etcd.urls()...))
	w.untilWritten(b)
	etcd.killLeader(b)
	w.untilWritten(b)
	r.plainGap = append(r.plainGap, w.stop().gap)
	etcd.stop()
}

// managed measures one round of an EtcdCluster.
func (r *report) managed(b *testing.B, f *rig.Fleet, watching client.WithWatch, name string) {
	b.Helper()
	began := time.Now()
	f.Apply(name)
	waitFor(b, watching, f.Namespace, name, isReady)
	r.ready = append(r.ready, time.Since(began))
	cluster := waitFor(b, watching, f.Namespace, name, hasEndpoints)
	r.endpoints = append(r.endpoints, time.Since(began))

	w := startWriter(b, f.Etcd(cluster))
	w.untilWritten(b)
	victim := cluster.Status.Leader // the hardest to lose
	lost := f.Machine(victim)
	began = time.Now()
	f.Destroy(lost)
	waitFor(b, watching, f.Namespace, name, func(c *v1alpha1.EtcdCluster) bool { return isReady(c) && !hasMember(c, victim) })
	r.replacement = append(r.replacement, time.Since(began))
	w.untilWritten(b)
	r.gap = append(r.gap, w.stop().gap)

	if err := f.API.Delete(b.Context(), cluster); err != nil {
		b.Fatal(err)
	}
	rig.Eventually(b, rig.Patience, name+" to be gone", func(ctx context.Context) error {
		if _, err := f.Get(ctx, name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// waitFor watches until a cluster is as it should be. A poll would add its
// pause to what is measured.
func waitFor(b *testing.B, c client.WithWatch, namespace, name string, so func(*v1alpha1.EtcdCluster) bool) *v1alpha1.EtcdCluster {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), rig.Patience)
	defer cancel()
	watch, err := c.Watch(ctx, &v1alpha1.EtcdClusterList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		b.Fatalf("watch %s: %v", name, err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if cluster, ok := event.Object.(*v1alpha1.EtcdCluster); ok && so(cluster) {
			return cluster
		}
	}
	b.Fatalf("%s did not become what it should in %s", name, rig.Patience)
	return nil
}

func isReady(c *v1alpha1.EtcdCluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, "Ready")
}

func hasEndpoints(c *v1alpha1.EtcdCluster) bool {
	return isReady(c) && len(c.Status.Endpoints) == int(c.Spec.Replicas)
}

func hasMember(c *v1alpha1.EtcdCluster, machine string) bool {
	return slices.ContainsFunc(c.Status.Members, func(m v1alpha1.MemberStatus) bool { return m.Machine == machine })
}
