package controllers

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/act"
)

// machineReconciler ends machines whose cluster is not there any more, as
// when somebody took the finalizer off a cluster by hand (F172). Everything
// else about machines is their cluster's concern.
type machineReconciler struct {
	client client.Client
	actor  *act.Actor
}

func (r *machineReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.EtcdMachine{}).Complete(r)
}

// Reconcile looks whether one machine has lost its cluster.
func (r *machineReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var m v1alpha1.EtcdMachine
	if err := r.client.Get(ctx, req.NamespacedName, &m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var cluster v1alpha1.EtcdCluster
	err := r.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.Cluster}, &cluster)
	if err == nil && string(cluster.UID) == m.Spec.ClusterUID {
		return ctrl.Result{}, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	if m.DeletionTimestamp.IsZero() {
		if err := r.client.Delete(ctx, &m); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	return ctrl.Result{RequeueAfter: pauseUnwell}, r.actor.Release(ctx, nil, &m)
}
