// Package controllers holds the reconcilers. They are thin: observe, plan,
// act, report.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/act"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// Lease times. A controller that cannot renew its lease exits before another
// may take it (F165).
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Options of the controller.
type Options struct {
	// Actuators by the name that spec.machineTemplate.actuator gives.
	Actuators map[string]machine.Actuator
	// ReleaseMirror is where releases come from when a cluster doesn't say.
	ReleaseMirror string
	// MetricsAddress and HealthAddress to listen on; "0" turns one off.
	MetricsAddress string
	HealthAddress  string
	// NoLeaderElection is for a controller that is certain to be alone.
	NoLeaderElection        bool
	LeaderElectionNamespace string
	// Namespaces to look after; all if empty.
	Namespaces []string
	// OnStep, if set, is called before and after each step; the moment is
	// "before" or "after". Tests end the process there.
	OnStep func(moment string, step plan.Step)
	// Taps are for tests too. What goes to the management API and to
	// actuators is tapped at their configuration.
	Taps observe.Taps
	// Concurrent clusters; 16 if zero.
	Concurrent int
	Log        *slog.Logger
}

// Scheme holds the kinds that the controller deals with.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// Run runs the controller until the context ends, the lease is lost or it
// finds that another controller took over. Only the first is no error.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	mgr, err := ctrl.NewManager(cfg, managerOptions(scheme, o))
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	ctx, deposed := context.WithCancelCause(ctx)
	defer deposed(nil)
	observer := observe.New(o.Actuators, o.ReleaseMirror, time.Now)
	observer.Tap(o.Taps)
	defer observer.Close()
	actor := &act.Actor{Client: mgr.GetClient(), Actuators: o.Actuators, Mirror: o.ReleaseMirror, Now: time.Now, Log: o.Log, OnStep: o.OnStep}
	clusters := &clusterReconciler{
		client: mgr.GetClient(), observer: observer, actor: actor, events: mgr.GetEventRecorder("etcdmanager"),
		log: o.Log, deposed: deposed, uids: map[client.ObjectKey]string{}, epochs: map[string]int64{}, said: map[string]saying{},
	}
	machines := &machineReconciler{client: mgr.GetClient(), actor: actor}
	err = errors.Join(
		clusters.setup(mgr, o.Concurrent),
		machines.setup(mgr),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("ping", healthz.Ping),
	)
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the controller: %w", err)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errDeposed) {
		return cause
	}
	return nil
}

func managerOptions(scheme *runtime.Scheme, o Options) ctrl.Options {
	options := ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress: o.HealthAddress,
		LeaderElection:         !o.NoLeaderElection,
		LeaderElectionID:       "etcdmanager",
		// The lease is given back at a normal end, so that the next one
		// need not wait for it.
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaseDuration:                 ptr(leaseDuration),
		RenewDeadline:                 ptr(renewDeadline),
		RetryPeriod:                   ptr(retryPeriod),
		// Decisions are made on what is, not on what was (F158).
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{
			&corev1.Secret{}, &v1alpha1.EtcdCluster{}, &v1alpha1.EtcdMachine{},
		}}},
	}
	if len(o.Namespaces) > 0 {
		options.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, n := range o.Namespaces {
			options.Cache.DefaultNamespaces[n] = cache.Config{}
		}
	}
	return options
}

func ptr[T any](v T) *T { return &v }
