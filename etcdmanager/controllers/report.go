package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/act"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// announce logs a decision and tells it as an event, once and not per look.
func (r *clusterReconciler) announce(log *slog.Logger, scene *act.Scene, decision plan.Decision) {
	uid := string(scene.Cluster.UID)
	text := decision.Wait
	for _, step := range decision.Steps {
		text += "\n" + step.String()
	}
	r.mu.Lock()
	before, known := r.said[uid]
	if known && text == before.text {
		r.mu.Unlock()
		return
	}
	next := saying{text: text}
	if known { // at its start the controller meets every cluster at once
		next.since = scene.View.World.Now
	}
	r.said[uid] = next
	r.mu.Unlock()
	for _, step := range decision.Steps {
		log.Info("next", "step", step.String())
		if step.Kind.Membership() || step.Operation != nil || step.Kind == plan.RecordFounded {
			r.events.Eventf(scene.Cluster, nil, corev1.EventTypeNormal, string(step.Kind), string(step.Kind), "%s", step.String())
		}
	}
	if decision.Wait != "" && len(decision.Steps) == 0 {
		log.Info("waiting", "for", decision.Wait)
	}
}

// report keeps status and the Secrets for consumers.
func (r *clusterReconciler) report(ctx context.Context, scene *act.Scene, decision plan.Decision, failure error) error {
	if scene.Cluster.DeletionTimestamp.IsZero() {
		if err := credentials.Publish(ctx, r.client, scene.Cluster, scene.Authorities, time.Now()); err != nil {
			return err
		}
	}
	for _, m := range scene.View.Machines {
		if err := r.reportMachine(ctx, scene, m); err != nil {
			return err
		}
	}
	before := scene.Cluster.Status.DeepCopy()
	r.fill(scene, decision)
	if failure != nil && !errors.Is(failure, act.ErrChanged) {
		meta.SetStatusCondition(&scene.Cluster.Status.Conditions, metav1.Condition{
			Type: "Progressing", Status: metav1.ConditionTrue, Reason: "TryingAgain", Message: failure.Error(),
			ObservedGeneration: scene.Cluster.Generation,
		})
	}
	if equality.Semantic.DeepEqual(*before, scene.Cluster.Status) {
		return nil
	}
	if err := r.client.Status().Update(ctx, scene.Cluster); err != nil {
		return fmt.Errorf("report the cluster's status: %w", err)
	}
	return nil
}

// reportBlocked tells why a cluster cannot even be looked at: of a Secret in
// the way or a record that can't be read nobody would know otherwise.
func (r *clusterReconciler) reportBlocked(ctx context.Context, key client.ObjectKey, failure error) error {
	if apierrors.IsConflict(failure) || errors.Is(failure, act.ErrChanged) || errors.Is(failure, errDeposed) || ctx.Err() != nil {
		return nil
	}
	cluster := &v1alpha1.EtcdCluster{}
	if err := r.client.Get(ctx, key, cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: "Progressing", Status: metav1.ConditionFalse, Reason: "Blocked", Message: failure.Error(),
		ObservedGeneration: cluster.Generation,
	}) {
		return nil
	}
	if err := r.client.Status().Update(ctx, cluster); err != nil {
		return fmt.Errorf("report what blocks the cluster: %w", err)
	}
	return nil
}

func (r *clusterReconciler) fill(scene *act.Scene, decision plan.Decision) {
	world, status := scene.View.World, &scene.Cluster.Status
	status.ObservedGeneration = scene.Cluster.Generation
	status.Phase, status.Ready = decision.Phase, world.Summary()
	status.Replicas = int32(len(world.Members)) //nolint:gosec // a handful
	status.Selector = v1alpha1.LabelClusterUID + "=" + string(scene.Cluster.UID)
	status.Endpoints, status.Members = nil, nil
	status.ReadyReplicas, status.Version, status.Leader = 0, "", ""
	if !world.MembersKnown {
		status.Replicas = int32(len(world.Machines)) //nolint:gosec // a handful
	}
	var largest int64
	for i, m := range world.Machines {
		seen := scene.View.Machines[m.Name]
		status.Members = append(status.Members, memberStatus(world, m, seen))
		largest = max(largest, seen.DBSize)
		if seen.Answers() && !m.Status.Learner {
			status.ReadyReplicas++
			if world.Record.Founded && world.MembersKnown {
				status.Endpoints = append(status.Endpoints, observe.ClientURL(seen.Address))
			}
		}
		if m.Status.Known && m.Status.Leader != "" && m.Status.Leader == m.Status.MemberID {
			status.Leader = m.Name
		}
		if i == 0 || status.Version == m.Status.Version {
			status.Version = m.Status.Version
		} else {
			status.Version = ""
		}
	}
	if largest > 0 {
		status.DBSize = rounded(largest)
	}
	for _, c := range decision.Conditions {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			ObservedGeneration: scene.Cluster.Generation,
		})
	}
}

// rounded writes a size in whole MiB, so that it does not change at each look.
func rounded(bytes int64) string {
	const mebi = 1 << 20
	return resource.NewQuantity((bytes+mebi-1)/mebi*mebi, resource.BinarySI).String()
}

func memberStatus(world plan.World, m plan.Machine, seen *observe.Machine) v1alpha1.MemberStatus {
	status := v1alpha1.MemberStatus{
		Name: m.Name, Machine: m.Name, PeerURL: m.PeerURL, Serving: m.Serving, Learner: m.Status.Learner, Version: m.Status.Version,
	}
	for _, member := range world.Members {
		if member.PeerURL == m.PeerURL {
			status.ID, status.Learner = member.ID, member.Learner
		}
	}
	switch {
	case m.Agent.Refusal != "":
		status.Message = m.Agent.Refusal
	case seen.Instance.Message != "":
		status.Message = seen.Instance.Message
	case seen.Seen != nil && seen.Seen.Release.State == "Failed":
		status.Message = seen.Seen.Release.Message
	case m.Serving || m.Status.Learner:
	case seen.EtcdErr != nil && m.Agent.Declared:
		status.Message = seen.EtcdErr.Error()
	case seen.AgentErr != nil:
		status.Message = seen.AgentErr.Error()
	}
	return status
}

func (r *clusterReconciler) reportMachine(ctx context.Context, scene *act.Scene, m *observe.Machine) error {
	before := m.Object.Status.DeepCopy()
	if m.Address != "" {
		m.Object.Status.Address = m.Address
	}
	if m.Instance.ProviderID != "" {
		m.Object.Status.ProviderID = m.Instance.ProviderID
	}
	for _, p := range scene.View.World.Machines {
		if p.Name == m.Object.Name {
			member := memberStatus(scene.View.World, p, m)
			m.Object.Status.MemberID, m.Object.Status.Message = member.ID, member.Message
			m.Object.Status.Phase = machinePhase(p, member)
		}
	}
	if *before == m.Object.Status || equality.Semantic.DeepEqual(*before, m.Object.Status) {
		return nil
	}
	if len(m.Object.Finalizers) == 0 {
		return nil // let go meanwhile
	}
	if err := r.client.Status().Update(ctx, m.Object); err != nil {
		return fmt.Errorf("report machine %s: %w", m.Object.Name, err)
	}
	return nil
}

func machinePhase(m plan.Machine, member v1alpha1.MemberStatus) string {
	switch {
	case m.Deleting:
		return "Leaving"
	case !m.Requested || m.Instance == plan.InstancePending:
		return "Pending"
	case m.Instance == plan.InstanceGone:
		return "Gone"
	case m.Serving && !member.Learner:
		return "Running"
	case !m.Agent.Reachable:
		return "Unreachable"
	case m.Agent.Declared:
		return "Joining"
	case m.Agent.Enrolled:
		return "Enrolled"
	}
	return "Provisioned"
}
