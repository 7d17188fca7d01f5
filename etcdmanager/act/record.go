package act

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// ReadRecord reads a cluster's record; a cluster without one has an empty
// record. One that can't be read is an error: acting on an empty one instead
// could found a cluster twice (F159).
func ReadRecord(cluster *v1alpha1.EtcdCluster) (v1alpha1.ClusterRecord, error) {
	var record v1alpha1.ClusterRecord
	text, ok := cluster.Annotations[v1alpha1.AnnotationRecord]
	if !ok {
		return record, nil
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return record, fmt.Errorf("the annotation %s cannot be read; restore it or delete it: %w", v1alpha1.AnnotationRecord, err)
	}
	return record, nil
}

// WriteRecord writes the record by compare-and-set: it fails with a conflict
// when anyone wrote the cluster's object since it was read. On success the
// cluster holds what the API server answered.
func (a *Actor) WriteRecord(ctx context.Context, cluster *v1alpha1.EtcdCluster, record v1alpha1.ClusterRecord) error {
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	updated := cluster.DeepCopy()
	if updated.Annotations == nil {
		updated.Annotations = map[string]string{}
	}
	updated.Annotations[v1alpha1.AnnotationRecord] = string(text)
	if !slices.Contains(updated.Finalizers, v1alpha1.Finalizer) && updated.DeletionTimestamp.IsZero() {
		updated.Finalizers = append(updated.Finalizers, v1alpha1.Finalizer)
	}
	// A patch leaves alone how people wrote the rest of the object.
	if err := a.Client.Patch(ctx, updated, client.MergeFromWithOptions(cluster, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("record on the cluster: %w", err)
	}
	*cluster = *updated
	return nil
}

// record changes the record as a step says.
func (a *Actor) record(ctx context.Context, s *Scene, step plan.Step) error {
	next := s.Record
	now := metav1.NewTime(a.Now())
	switch step.Kind {
	case plan.RecordFounding:
		token, err := newToken()
		if step.ClusterID != "" {
			token, err = s.tokenInUse()
		}
		if err != nil {
			return err
		}
		next.Token, next.Founders = token, step.Founders
		next.Founded, next.ClusterID = step.ClusterID != "", step.ClusterID
		for _, name := range step.Founders {
			next.NextMachine = max(next.NextMachine, numberOf(name)+1)
		}
		for name := range s.View.Machines {
			next.NextMachine = max(next.NextMachine, numberOf(name)+1)
		}
	case plan.ResetFounding:
		next.Token, next.Founders = "", nil
	case plan.RecordFounded:
		next.Founded, next.ClusterID = true, step.ClusterID
	case plan.BeginOperation:
		op := step.Operation
		next.Operation = &v1alpha1.Operation{
			Kind: string(op.Kind), Machine: op.Machine, MemberID: op.MemberID, PeerURL: op.PeerURL, Reason: op.Reason, Started: now,
		}
		if op.Kind == plan.Join {
			next.NextMachine = max(next.NextMachine, numberOf(op.Machine)+1)
		}
	case plan.RecordMember:
		op := *next.Operation
		op.MemberID, op.PeerURL = step.MemberID, step.PeerURL
		next.Operation = &op
	case plan.EndOperation:
		switch {
		case step.Failed:
			next.Failures++
			next.FailedAt = &now
		case !step.PutOff && next.Operation != nil && next.Operation.Kind == string(plan.Join):
			next.Failures, next.FailedAt = 0, nil
		}
		next.Operation = nil
	}
	if err := a.WriteRecord(ctx, s.Cluster, next); err != nil {
		return err
	}
	s.Record = next
	return nil
}

// tokenInUse is the token that agents already run under, when a record was
// lost and is made anew, and a new one otherwise.
func (s *Scene) tokenInUse() (string, error) {
	for _, m := range s.View.Machines {
		if m.Seen != nil && m.Seen.Wanted != nil && m.Seen.Wanted.Run && s.Record.Token == "" && m.Answers() {
			return m.Seen.Wanted.Token, nil
		}
	}
	return newToken()
}

// numberOf is the number at the end of a machine's name; -1 if it has none.
func numberOf(name string) int64 {
	n, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	if err != nil {
		return -1
	}
	return n
}
