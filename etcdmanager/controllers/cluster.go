package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/act"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// How soon a cluster is looked at again: right after something was done, while
// something is under way or for a while after it was, and when all is well.
const (
	pauseBusy   = 20 * time.Millisecond
	pauseWatch  = 200 * time.Millisecond
	pauseUnwell = time.Second
	pauseWell   = 5 * time.Second
	settling    = 5 * time.Second // how long a decision that is new counts as under way
	failFirst   = 100 * time.Millisecond
	failMax     = 5 * time.Second
)

// errDeposed says that another controller has taken charge of a cluster.
var errDeposed = errors.New("another controller took over")

// +kubebuilder:rbac:groups=etcdmanager.io,resources=etcdclusters,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=etcdmanager.io,resources=etcdclusters/status;etcdmachines/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=etcdmanager.io,resources=etcdclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=etcdmanager.io,resources=etcdmachines,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=etcdmanager-system,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=events,namespace=etcdmanager-system,verbs=create;patch

// clusterReconciler looks after EtcdClusters.
type clusterReconciler struct {
	client   client.Client
	observer *observe.Observer
	actor    *act.Actor
	events   events.EventRecorder
	log      *slog.Logger
	deposed  context.CancelCauseFunc
	fleet    fleet

	mu     sync.Mutex
	uids   map[client.ObjectKey]string
	epochs map[string]int64  // by cluster UID: the epoch this process took
	said   map[string]saying // by cluster UID
}

func (r *clusterReconciler) setup(mgr ctrl.Manager, concurrent int) error {
	if concurrent == 0 {
		concurrent = 16
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.EtcdCluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&v1alpha1.EtcdMachine{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrent,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](failFirst, failMax),
		}).
		Complete(r)
}

// saying is the last decision that was logged, and since when it has been the
// same; zero since the controller started.
type saying struct {
	text  string
	since time.Time
}

// Reconcile looks at one cluster once and takes the steps that are next.
func (r *clusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	log := r.log.With("cluster", req.Name, "namespace", req.Namespace)
	scene, err := r.look(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) || err == nil && scene == nil {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return r.failed(log, errors.Join(err, r.reportBlocked(ctx, req.NamespacedName, err)))
	}
	decision := plan.Decide(scene.View.World)
	r.announce(log, scene, decision)
	err = r.carryOut(ctx, log, scene, decision)
	if gone(scene) {
		return ctrl.Result{}, err
	}
	if !apierrors.IsConflict(err) {
		err = errors.Join(err, r.report(ctx, scene, decision, err))
	}
	if err != nil {
		return r.failed(log, err)
	}
	return ctrl.Result{RequeueAfter: r.pause(scene, decision)}, nil
}

// failed tells a conflict, which is ordinary, from an error.
func (r *clusterReconciler) failed(log *slog.Logger, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || errors.Is(err, act.ErrChanged) {
		return ctrl.Result{RequeueAfter: pauseWatch}, nil
	}
	if errors.Is(err, errDeposed) {
		log.Error("stopping", "error", err)
		r.deposed(err)
		return ctrl.Result{}, nil
	}
	log.Info("trying again soon", "error", err)
	return ctrl.Result{RequeueAfter: pauseUnwell}, nil
}

// look reads the cluster and observes everything about it. It returns nil for
// a cluster that was let go.
func (r *clusterReconciler) look(ctx context.Context, key client.ObjectKey) (*act.Scene, error) {
	cluster := &v1alpha1.EtcdCluster{}
	if err := r.client.Get(ctx, key, cluster); err != nil {
		return nil, err
	}
	if !cluster.DeletionTimestamp.IsZero() && len(cluster.Finalizers) == 0 {
		return nil, nil
	}
	record, err := act.ReadRecord(cluster)
	if err != nil {
		return nil, err
	}
	if err := r.takeCharge(ctx, cluster, &record); err != nil {
		return nil, err
	}
	authorities, err := credentials.Load(ctx, r.client, cluster, record.Founded)
	if err != nil && cluster.DeletionTimestamp.IsZero() {
		return nil, err
	}
	var machines v1alpha1.EtcdMachineList
	if err := r.client.List(ctx, &machines, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelClusterUID: string(cluster.UID)}); err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	r.observer.Forget(string(cluster.UID), machines.Items)
	scene := &act.Scene{Cluster: cluster, Record: record, Authorities: authorities, Epoch: record.Epoch}
	if authorities.Agent == nil { // being deleted, with its Secrets gone already
		scene.View = r.observer.ObserveObjects(cluster, record, machines.Items)
	} else {
		scene.View = r.observer.Observe(ctx, cluster, record, machines.Items, authorities)
	}
	scene.View.World.FleetSilent = r.fleet.note(string(cluster.UID), scene.View.World)
	scene.Again = func(ctx context.Context) (plan.Decision, *observe.View, error) {
		again, err := r.look(ctx, key)
		if err != nil || again == nil {
			return plan.Decision{}, nil, errors.Join(err, ctx.Err())
		}
		return plan.Decide(again.View.World), again.View, nil
	}
	return scene, nil
}

// takeCharge makes this process the one whose word agents take, by raising
// the epoch once per process and cluster. A higher one than ours is another's.
func (r *clusterReconciler) takeCharge(ctx context.Context, cluster *v1alpha1.EtcdCluster, record *v1alpha1.ClusterRecord) error {
	uid := string(cluster.UID)
	r.mu.Lock()
	mine := r.epochs[uid]
	r.uids[client.ObjectKeyFromObject(cluster)] = uid
	r.mu.Unlock()
	if mine != 0 && record.Epoch > mine {
		return fmt.Errorf("cluster %s has epoch %d and not ours, %d: %w", cluster.Name, record.Epoch, mine, errDeposed)
	}
	if mine != 0 && record.Epoch == mine {
		return nil
	}
	record.Epoch = max(record.Epoch, mine) + 1
	if err := r.actor.WriteRecord(ctx, cluster, *record); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epochs[uid] = record.Epoch
	return nil
}

// carryOut takes the steps. Those of different machines go side by side, those
// that are one machine's, or the cluster's, one after the other.
func (r *clusterReconciler) carryOut(ctx context.Context, log *slog.Logger, scene *act.Scene, decision plan.Decision) error {
	byMachine := map[string][]plan.Step{}
	for _, step := range decision.Steps {
		byMachine[step.Machine] = append(byMachine[step.Machine], step)
	}
	var wg sync.WaitGroup
	failures := make(chan error, len(decision.Steps))
	for _, steps := range byMachine {
		wg.Go(func() {
			for _, step := range steps {
				if err := r.actor.Do(ctx, scene, step); err != nil {
					failures <- err
					return
				}
				log.Debug("did", "step", step.String())
			}
		})
	}
	wg.Wait()
	close(failures)
	var all error
	for err := range failures {
		if apierrors.IsConflict(err) {
			return err
		}
		all = errors.Join(all, err)
	}
	return all
}

// forget drops what is remembered of a cluster that is gone.
func (r *clusterReconciler) forget(key client.ObjectKey) {
	r.mu.Lock()
	uid := r.uids[key]
	delete(r.uids, key)
	delete(r.epochs, uid)
	delete(r.said, uid)
	r.mu.Unlock()
	r.observer.Forget(uid, nil)
	r.fleet.forget(uid)
}

func gone(scene *act.Scene) bool {
	return !scene.Cluster.DeletionTimestamp.IsZero() && len(scene.Cluster.Finalizers) == 0
}

func (r *clusterReconciler) pause(scene *act.Scene, decision plan.Decision) time.Duration {
	world := scene.View.World
	pause := pauseWell
	switch {
	case len(decision.Steps) > 0:
		pause = pauseBusy
	case world.Spec.Paused:
		pause = pauseWell
	case !world.Record.Founded || world.Record.Operation != nil || world.Spec.Deleting:
		pause = pauseWatch
	case decision.Wait != "" || decision.Phase != "Ready":
		pause = pauseUnwell
	}
	r.mu.Lock()
	since := r.said[string(scene.Cluster.UID)].since
	r.mu.Unlock()
	if world.Now.Sub(since) < settling {
		// What just came up is not seen whole at the first look.
		pause = min(pause, pauseWatch)
	}
	if world.Spec.Invalid != "" {
		pause = pauseWell
	}
	if !decision.Again.IsZero() {
		pause = min(pause, max(pauseBusy, decision.Again.Sub(world.Now)))
	}
	return pause
}
