package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// bootstrapLife is how long a machine may take from being asked for to its
// first contact.
const bootstrapLife = 2 * time.Hour

func (a *Actor) createMachine(ctx context.Context, s *Scene, step plan.Step) error {
	m := &v1alpha1.EtcdMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Cluster.Namespace, Name: step.Machine, Finalizers: []string{v1alpha1.Finalizer},
			Labels: map[string]string{
				v1alpha1.LabelCluster:    s.Cluster.Name,
				v1alpha1.LabelClusterUID: string(s.Cluster.UID),
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.Cluster, v1alpha1.GroupVersion.WithKind("EtcdCluster"))},
		},
		Spec: v1alpha1.EtcdMachineSpec{
			Cluster: s.Cluster.Name, ClusterUID: string(s.Cluster.UID),
			Actuator: s.Cluster.Spec.MachineTemplate.Actuator, FailureDomain: step.FailureDomain,
		},
	}
	err := a.Client.Create(ctx, m)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Created before and the answer was lost, or somebody else's (F158).
	var there v1alpha1.EtcdMachine
	if err := a.Client.Get(ctx, client.ObjectKeyFromObject(m), &there); err != nil {
		return err
	}
	if there.Spec.ClusterUID != string(s.Cluster.UID) {
		return fmt.Errorf("an EtcdMachine %s of another cluster is in the way", step.Machine)
	}
	return nil
}

func (s *Scene) machine(name string) (*observe.Machine, error) {
	m, ok := s.View.Machines[name]
	if !ok {
		return nil, fmt.Errorf("machine %s is not there", name)
	}
	return m, nil
}

func (a *Actor) actuator(m *v1alpha1.EtcdMachine) (machine.Actuator, error) {
	actuator, ok := a.Actuators[m.Spec.Actuator]
	if !ok {
		return nil, fmt.Errorf("no actuator is named %q; start the controller with it", m.Spec.Actuator)
	}
	return actuator, nil
}

// askMachine asks the actuator for a machine, after noting that it was asked:
// from then on its absence means something.
func (a *Actor) askMachine(ctx context.Context, s *Scene, step plan.Step) error {
	m, err := s.machine(step.Machine)
	if err != nil {
		return err
	}
	actuator, err := a.actuator(m.Object)
	if err != nil {
		return err
	}
	if m.Object.Status.Requested == nil {
		now := metav1.NewTime(a.Now())
		m.Object.Status.Requested = &now
		m.Object.Status.Phase = "Pending"
		if err := a.Client.Status().Update(ctx, m.Object); err != nil {
			return fmt.Errorf("note the request: %w", err)
		}
	}
	data, err := a.bootstrapData(s, m.Object)
	if err != nil {
		return err
	}
	return actuator.Create(ctx, observe.MachineFor(s.Cluster, m.Object), data)
}

func (a *Actor) bootstrapData(s *Scene, m *v1alpha1.EtcdMachine) ([]byte, error) {
	certPEM, keyPEM, err := s.Authorities.Agent.IssuePair(pki.Leaf{
		Name: pki.BootstrapName(string(m.UID)), Usage: pki.Server, Life: bootstrapLife,
	}, a.Now())
	if err != nil {
		return nil, fmt.Errorf("issue the first-contact identity: %w", err)
	}
	return json.Marshal(bootstrap.Data{
		Cluster: s.Cluster.Name, ClusterUID: string(s.Cluster.UID), Machine: m.Name, MachineUID: string(m.UID),
		AgentCA: string(s.Authorities.Agent.CertPEM()), Certificate: string(certPEM), Key: string(keyPEM),
	})
}

// deleteMachine asks for the end of a machine; its finalizer keeps the object
// until the machine is gone.
func (a *Actor) deleteMachine(ctx context.Context, s *Scene, step plan.Step) error {
	m, err := s.machine(step.Machine)
	if err != nil {
		return nil //nolint:nilerr // not there is done
	}
	uid := m.Object.UID
	return client.IgnoreNotFound(a.Client.Delete(ctx, m.Object, client.Preconditions{UID: &uid}))
}

func (a *Actor) releaseMachine(ctx context.Context, s *Scene, step plan.Step) error {
	m, err := s.machine(step.Machine)
	if err != nil {
		return nil //nolint:nilerr // not there is done
	}
	return a.Release(ctx, s.Cluster, m.Object)
}

// Release ends a machine and, when it is certainly gone, lets go of its object
// (F172). It does nothing while the object's end was not asked for, which is
// read anew: a controller that was deposed must end no machine. A nil cluster
// is one that is not there any more.
func (a *Actor) Release(ctx context.Context, cluster *v1alpha1.EtcdCluster, m *v1alpha1.EtcdMachine) error {
	uid := m.UID
	if err := a.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		return client.IgnoreNotFound(err)
	}
	if m.UID != uid || m.DeletionTimestamp.IsZero() {
		return nil
	}
	if m.Status.Requested != nil {
		actuator, err := a.actuator(m)
		if err != nil {
			return err
		}
		told := observe.MachineFor(cluster, m)
		done, err := a.endings.end(ctx, actuator, told)
		if err != nil {
			return fmt.Errorf("end the machine: %w", err)
		}
		if !done {
			return nil // looked at again
		}
		if _, err := actuator.Observe(ctx, told); !errors.Is(err, machine.ErrNotFound) {
			return err // nil: not gone yet, looked at again
		}
	}
	return a.removeFinalizer(ctx, m)
}

func (a *Actor) releaseCluster(ctx context.Context, s *Scene) error {
	return a.removeFinalizer(ctx, s.Cluster)
}

func (a *Actor) removeFinalizer(ctx context.Context, object client.Object) error {
	before := object.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(object, v1alpha1.Finalizer) {
		return nil
	}
	return client.IgnoreNotFound(a.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}
