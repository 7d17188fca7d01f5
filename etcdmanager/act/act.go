// Package act carries out the steps that plan decides on. Each can be
// repeated: after a crash or an answer that was lost the next look at the
// world finds where things stand.
package act

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// Actor carries out steps.
type Actor struct {
	// Client writes to the management API. Its reads must be no cache.
	Client    client.Client
	Actuators map[string]machine.Actuator
	// Mirror is where releases come from when a cluster doesn't say.
	Mirror string
	Now    func() time.Time
	Log    *slog.Logger
	// OnStep, if set, is told "before" and "after" each step.
	OnStep func(moment string, step plan.Step)

	endings endings
}

// Scene is what steps are carried out on.
type Scene struct {
	Cluster     *v1alpha1.EtcdCluster
	Record      v1alpha1.ClusterRecord
	View        *observe.View
	Authorities credentials.Authorities
	Epoch       int64
	// Again looks once more and decides once more. Steps that change the
	// membership are taken only if it gives the same step, and only while
	// the record, which is the lock, is still ours (F036, F165).
	Again func(ctx context.Context) (plan.Decision, *observe.View, error)
}

// Do carries out one step.
func (a *Actor) Do(ctx context.Context, s *Scene, step plan.Step) error {
	if a.OnStep != nil {
		a.OnStep("before", step)
		defer a.OnStep("after", step)
	}
	var err error
	switch step.Kind {
	case plan.RecordFounding, plan.RecordFounded, plan.ResetFounding, plan.BeginOperation, plan.EndOperation, plan.RecordMember:
		err = a.record(ctx, s, step)
	case plan.CreateMachine:
		err = a.createMachine(ctx, s, step)
	case plan.AskMachine:
		err = a.askMachine(ctx, s, step)
	case plan.Enrol:
		err = a.enrol(ctx, s, step)
	case plan.Declare:
		err = a.declare(ctx, s, step)
	case plan.Fence:
		err = a.fence(ctx, s, step)
	case plan.DeleteMachine:
		err = a.deleteMachine(ctx, s, step)
	case plan.ReleaseMachine:
		err = a.releaseMachine(ctx, s, step)
	case plan.ReleaseCluster:
		err = a.releaseCluster(ctx, s)
	case plan.AddLearner, plan.Promote, plan.RemoveMember, plan.MoveLeader:
		err = a.membership(ctx, s, step)
	default:
		err = fmt.Errorf("no such step")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

func newToken() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
