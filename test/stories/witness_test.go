package stories

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/act"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// version of a cluster's object, and when it was had.
type version struct {
	at      time.Time
	cluster *v1alpha1.EtcdCluster
	record  v1alpha1.ClusterRecord
}

// witness keeps every version of one cluster's object.
type witness struct {
	t      *testing.T
	f      *rig.Fleet
	name   string
	stop   context.CancelFunc
	ended  chan struct{}
	onEach func(*v1alpha1.EtcdCluster) // called in the witness's goroutine

	mu   sync.Mutex
	seen []version
	more chan struct{} // closed and made anew with each version
}

// watch starts a witness of a cluster that is there.
func watch(t *testing.T, f *rig.Fleet, name string, onEach func(*v1alpha1.EtcdCluster)) *witness {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &witness{t: t, f: f, name: name, stop: cancel, ended: make(chan struct{}), onEach: onEach, more: make(chan struct{})}
	c, err := client.NewWithWatch(f.API.Config(), client.Options{Scheme: rig.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.Watch(ctx, &v1alpha1.EtcdClusterList{}, client.InNamespace(f.Namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		defer stream.Stop()
		for event := range stream.ResultChan() {
			if cluster, ok := event.Object.(*v1alpha1.EtcdCluster); ok {
				w.add(cluster)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-w.ended })
	return w
}

func (w *witness) add(cluster *v1alpha1.EtcdCluster) {
	record, err := act.ReadRecord(cluster)
	if err != nil {
		w.t.Error(err)
	}
	if w.onEach != nil {
		w.onEach(cluster)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, version{time.Now(), cluster, record})
	close(w.more)
	w.more = make(chan struct{})
}

// await returns the first version, of those not before a time, that is so. A
// poll could miss it.
func (w *witness) await(since time.Time, what string, so func(version) bool) version {
	w.t.Helper()
	patience := time.NewTimer(rig.Patience)
	defer patience.Stop()
	for next := 0; ; {
		w.mu.Lock()
		seen, more := w.seen, w.more
		w.mu.Unlock()
		for ; next < len(seen); next++ {
			if !seen[next].at.Before(since) && so(seen[next]) {
				return seen[next]
			}
		}
		select {
		case <-more:
		case <-w.ended:
			w.t.Fatalf("the watch of %s ended before: %s", w.name, what)
		case <-patience.C:
			w.t.Fatalf("waited %s for: %s", rig.Patience, what)
		}
	}
}

func (w *witness) versions() []version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// operations of the cluster so far, each once and as it was last.
func (w *witness) operations() []v1alpha1.Operation {
	var all []v1alpha1.Operation
	var before *v1alpha1.Operation
	for _, v := range w.versions() {
		op := v.record.Operation
		switch {
		case op == nil:
		case before == nil || !same(*op, *before):
			all = append(all, *op)
		default:
			all[len(all)-1] = *op
		}
		before = op
	}
	return all
}

func same(a, b v1alpha1.Operation) bool {
	return a.Kind == b.Kind && a.Machine == b.Machine && a.Started.Equal(&b.Started)
}

// check asserts that no version of the status lied.
func (w *witness) check() {
	w.t.Helper()
	var before *version
	for _, v := range w.versions() {
		if before != nil && apiequality.Semantic.DeepEqual(before.cluster.Status, v.cluster.Status) {
			continue // not the status was written
		}
		if problem := lie(before, v); problem != "" {
			w.t.Errorf("%s, version %s: %s\nstatus %+v", w.name, v.cluster.ResourceVersion, problem, v.cluster.Status)
		}
		before = &v
	}
	w.checkRemovals()
}

// lie says what is wrong with a status, given the one before it.
func lie(before *version, v version) string {
	status := v.cluster.Status
	ready := meta.FindStatusCondition(status.Conditions, "Ready")
	if ready == nil {
		return ""
	}
	isReady := meta.IsStatusConditionTrue(status.Conditions, "Ready")
	quiet := status.Phase == "Paused" || status.Phase == "Deleting"
	if !quiet && isReady != (status.Phase == "Ready") {
		return fmt.Sprintf("phase %s, Ready %s", status.Phase, ready.Status)
	}
	for _, c := range status.Conditions {
		if c.Reason == "" || c.Message == "" {
			return c.Type + " has no reason or no message"
		}
	}
	if !isReady {
		return ""
	}
	if ready.ObservedGeneration == v.cluster.Generation {
		voters := 0
		for _, m := range status.Members {
			if m.Serving && !m.Learner && m.ID != "" {
				voters++
			}
		}
		if voters != int(v.cluster.Spec.Replicas) || len(status.Members) != voters {
			return fmt.Sprintf("Ready with %d voters that serve of %d members, %d wanted", voters, len(status.Members), v.cluster.Spec.Replicas)
		}
	}
	// The record is written before the status that tells of it.
	if before != nil && before.record.Operation != nil && v.record.Operation != nil && same(*before.record.Operation, *v.record.Operation) {
		return "Ready while an operation is in flight: " + v.record.Operation.Reason
	}
	return ""
}

// wished are the reasons of removals that no illness explains.
var wished = []string{"more members than wanted", "its machine is to leave", "a learner that no join is about"}

// checkRemovals asserts that no member was removed of which nobody was told
// that it is ill, or asked that it goes.
func (w *witness) checkRemovals() {
	w.t.Helper()
	told := false // since the last operation that ended
	var open *v1alpha1.Operation
	for _, v := range w.versions() {
		op := v.record.Operation
		if open != nil && (op == nil || !same(*op, *open)) {
			if open.Kind == string(plan.Remove) && !told && !isWished(open.Reason) {
				w.t.Errorf("%s was removed (%s) and the status never said that anything is wrong", open.Machine, open.Reason)
			}
			told = false
		}
		open = op
		told = told || meta.IsStatusConditionFalse(v.cluster.Status.Conditions, "Healthy")
	}
}

func isWished(reason string) bool {
	for _, w := range wished {
		if strings.Contains(reason, w) {
			return true
		}
	}
	return false
}

func conditionIs(kind, status string) func(version) bool {
	return func(v version) bool {
		c := meta.FindStatusCondition(v.cluster.Status.Conditions, kind)
		return c != nil && string(c.Status) == status
	}
}

// waitOlder waits until a cluster has stood as a version shows for some time,
// and the controller has looked at it meanwhile.
func waitOlder(t *testing.T, f *rig.Fleet, name string, v version, age time.Duration) {
	t.Helper()
	rig.Eventually(t, rig.Patience, fmt.Sprintf("%s to stand like this for %s", name, age), func(ctx context.Context) error {
		if time.Since(v.at) < age {
			return fmt.Errorf("it is %s", time.Since(v.at).Round(time.Second))
		}
		cluster, err := f.Get(ctx, name)
		if err != nil {
			return err
		}
		if meta.IsStatusConditionTrue(cluster.Status.Conditions, "Healthy") {
			return fmt.Errorf("it is Healthy")
		}
		return nil
	})
}

func memberIDs(cluster *v1alpha1.EtcdCluster) []string {
	var ids []string
	for _, m := range cluster.Status.Members {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}
