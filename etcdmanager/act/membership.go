package act

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// callDeadline bounds a membership call. It is shorter than the lease of the
// controller lasts, so that no call of a deposed one is still on its way.
const callDeadline = 5 * time.Second

// ErrChanged says that a second look decided otherwise.
var ErrChanged = errors.New("the world changed meanwhile; looking again")

// membership makes one call that changes who votes or leads. Right before it
// the world is looked at and decided on once more, and then the lock is
// compared with the API server's, which fails for a controller that another
// one has followed. The deadline began before that: a process that is stopped
// between the two and resumed later makes no call any more (F165).
func (a *Actor) membership(ctx context.Context, s *Scene, step plan.Step) error {
	decision, view, err := s.Again(ctx)
	if err != nil {
		return err
	}
	if len(decision.Steps) != 1 || decision.Steps[0].String() != step.String() {
		return ErrChanged
	}
	serving := view.Serving()
	if len(serving) == 0 {
		return ErrChanged
	}
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	if err := a.WriteRecord(ctx, s.Cluster, s.Record); err != nil {
		return err
	}
	// The leader is asked: some versions promote nowhere else (F033).
	etcd := serving[0].Contact.Etcd
	a.Log.Info("changing the membership", "cluster", s.Cluster.Name, "namespace", s.Cluster.Namespace, "step", step.String(), "via", serving[0].Object.Name)
	switch step.Kind {
	case plan.AddLearner:
		return a.addLearner(ctx, s, etcd, step)
	case plan.Promote:
		return a.promote(ctx, etcd, step)
	case plan.RemoveMember:
		return a.removeMember(ctx, etcd, serving, step)
	case plan.MoveLeader:
		return a.moveLeader(ctx, etcd, step)
	}
	return fmt.Errorf("%s changes no membership", step.Kind)
}

// addLearner adds and notes the ID that etcd gave. An answer that was lost is
// found by the next look, by the peer URL (F012, F013).
func (a *Actor) addLearner(ctx context.Context, s *Scene, etcd *clientv3.Client, step plan.Step) error {
	added, err := etcd.MemberAddAsLearner(ctx, []string{step.PeerURL})
	if err != nil {
		return refused(err)
	}
	return a.record(ctx, s, plan.Step{Kind: plan.RecordMember, MemberID: observe.ID(added.Member.ID), PeerURL: step.PeerURL})
}

func (a *Actor) promote(ctx context.Context, etcd *clientv3.Client, step plan.Step) error {
	id, err := memberID(step.MemberID)
	if err != nil {
		return err
	}
	_, err = etcd.MemberPromote(ctx, id)
	return refused(err)
}

func (a *Actor) removeMember(ctx context.Context, etcd *clientv3.Client, serving []*observe.Machine, step plan.Step) error {
	id, err := memberID(step.MemberID)
	if err != nil {
		return err
	}
	if _, err = etcd.MemberRemove(ctx, id); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return refused(err)
	}
	a.settle(ctx, serving, step.MemberID)
	return nil
}

// settle has the cluster commit one more entry that changes nothing. Until
// then the survivors of a removal may not have the removal's commit on disk,
// and a single survivor that is killed waits for the removed member's vote.
func (a *Actor) settle(ctx context.Context, serving []*observe.Machine, removed string) {
	for _, m := range serving {
		if m.Etcd.MemberID == removed {
			continue
		}
		id, err := memberID(m.Etcd.MemberID)
		if err != nil {
			continue
		}
		// To take back an alarm of kind NONE of one member takes back nothing.
		_, err = m.Contact.Etcd.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: id, Alarm: etcdserverpb.AlarmType_NONE})
		if err == nil {
			return
		}
		a.Log.Info("the removal was not followed by another entry", "machine", m.Object.Name, "error", err)
	}
}

func (a *Actor) moveLeader(ctx context.Context, etcd *clientv3.Client, step plan.Step) error {
	id, err := memberID(step.MemberID)
	if err != nil {
		return err
	}
	_, err = etcd.MoveLeader(ctx, id)
	return refused(err)
}

// refused words etcd's answer. None of them is final: the next look decides
// anew (F001, F004).
func refused(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("etcd: %w", err)
}

func memberID(hex string) (uint64, error) {
	id, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("member ID %q: %w", hex, err)
	}
	return id, nil
}
