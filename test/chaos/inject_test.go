package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// hurt is the cluster that faults are done to.
type hurt struct {
	fleet   *rig.Fleet
	cluster string
	log     func(format string, args ...any)

	mu         sync.Mutex
	controller *rig.Process
}

// member is a machine as it was when the round began.
type member struct {
	object v1alpha1.EtcdMachine
	told   machine.Machine
	etcd   int // PID
}

// dir is where the agent keeps everything.
func (h *hurt) dir(m member) string {
	return filepath.Join(h.fleet.Dir, "machines", m.told.UID, "agent")
}

// inject does the faults of a round and returns when they are over.
func (h *hurt) inject(ctx context.Context, r round, members []member) error {
	failures := make(chan error, len(r.faults))
	for _, f := range r.faults {
		var chosen []member
		for _, n := range f.members {
			chosen = append(chosen, members[n])
		}
		go func() {
			if err := pause(ctx, f.after); err != nil {
				failures <- err
				return
			}
			if err := f.kind.do(ctx, h, f, chosen); err != nil {
				failures <- fmt.Errorf("%s: %w", f, err)
				return
			}
			failures <- nil
		}()
	}
	var all error
	for range r.faults {
		all = errors.Join(all, <-failures)
	}
	return all
}

type action = func(ctx context.Context, h *hurt, f fault, members []member) error

// victims finds processes.
type victims func(ctx context.Context, h *hurt, members []member) ([]int, error)

func kill(find victims) action {
	return func(ctx context.Context, h *hurt, _ fault, members []member) error {
		pids, err := find(ctx, h, members)
		return errors.Join(err, send(pids, unix.SIGKILL))
	}
}

func stop(find victims) action {
	return func(ctx context.Context, h *hurt, f fault, members []member) error {
		pids, err := find(ctx, h, members)
		return errors.Join(err, freeze(ctx, pids, f.lasts))
	}
}

func etcds(ctx context.Context, h *hurt, members []member) ([]int, error) {
	_, others, err := h.processes(ctx, members)
	return others, err
}

func agents(ctx context.Context, h *hurt, members []member) ([]int, error) {
	agents, _, err := h.processes(ctx, members)
	return agents, err
}

// machines answers all processes, agents first, or they would start etcd again.
func machines(ctx context.Context, h *hurt, members []member) ([]int, error) {
	agents, others, err := h.processes(ctx, members)
	return append(agents, others...), err
}

func (h *hurt) processes(ctx context.Context, members []member) (agents, others []int, err error) {
	for _, m := range members {
		a, o, e := h.fleet.Machines.Processes(ctx, m.told)
		agents, others, err = append(agents, a...), append(others, o...), errors.Join(err, e)
	}
	return agents, others, err
}

func controller(_ context.Context, h *hurt, _ []member) ([]int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return []int{h.controller.PID}, nil
}

// killController leaves the cluster without one for a while.
func killController(ctx context.Context, h *hurt, f fault, _ []member) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := send([]int{h.controller.PID}, unix.SIGKILL); err != nil {
		return err
	}
	<-h.controller.Done()
	if err := pause(ctx, f.lasts); err != nil {
		return err
	}
	h.controller = h.fleet.StartController()
	return nil
}

func management(names ...string) victims {
	return func(_ context.Context, h *hurt, _ []member) ([]int, error) {
		var pids []int
		for _, name := range names {
			pids = append(pids, h.fleet.API.PIDs()[name])
		}
		return pids, nil
	}
}

// removeRelease takes the programs from a machine, and the process that runs.
func removeRelease(ctx context.Context, h *hurt, f fault, members []member) error {
	for _, m := range members {
		if err := os.RemoveAll(filepath.Join(h.dir(m), "releases")); err != nil {
			return err
		}
	}
	return kill(etcds)(ctx, h, f, members)
}

func destroy(ctx context.Context, h *hurt, _ fault, members []member) error {
	var all error
	for _, m := range members {
		all = errors.Join(all, h.fleet.Machines.Crash(ctx, m.told))
	}
	for _, m := range members {
		all = errors.Join(all, h.fleet.Machines.Delete(ctx, m.told))
	}
	return all
}

// destroyInTurn waits for the replacement of the first to begin. When the
// controller is away that may not come: then the second goes anyway.
func destroyInTurn(ctx context.Context, h *hurt, f fault, members []member) error {
	if err := destroy(ctx, h, f, members[:1]); err != nil {
		return err
	}
	patience, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := again(patience, func() error {
		cluster, err := h.fleet.Get(patience, h.cluster)
		if err == nil && cluster.Status.Phase != "Repairing" {
			err = fmt.Errorf("it is %s", cluster.Status.Phase)
		}
		return err
	})
	if err != nil {
		h.log("the second is destroyed before the first is seen to be replaced: %v", err)
	}
	return destroy(ctx, h, f, members[1:])
}

// wipe removes the data under a running etcd, which may make files meanwhile.
func wipe(ctx context.Context, h *hurt, _ fault, members []member) error {
	for _, m := range members {
		err := again(ctx, func() error { return os.RemoveAll(filepath.Join(h.dir(m), "etcd")) })
		if err != nil {
			return err
		}
	}
	return nil
}

func wipeCrashed(ctx context.Context, h *hurt, f fault, members []member) error {
	if err := kill(machines)(ctx, h, f, members); err != nil {
		return err
	}
	return wipe(ctx, h, f, members)
}

func scale(ctx context.Context, h *hurt, f fault, _ []member) error {
	return again(ctx, func() error {
		cluster, err := h.fleet.Get(ctx, h.cluster)
		if err != nil {
			return err
		}
		before := cluster.DeepCopy()
		cluster.Spec.Replicas = int32(f.to)
		return h.fleet.API.Patch(ctx, cluster, client.MergeFrom(before))
	})
}

func askReplacement(ctx context.Context, h *hurt, _ fault, members []member) error {
	return again(ctx, func() error {
		m := members[0].object.DeepCopy()
		m.Annotations = map[string]string{v1alpha1.AnnotationReplace: ""}
		return client.IgnoreNotFound(h.fleet.API.Patch(ctx, m, client.MergeFrom(&members[0].object)))
	})
}

func deleteObject(ctx context.Context, h *hurt, _ fault, members []member) error {
	return again(ctx, func() error {
		return client.IgnoreNotFound(h.fleet.API.Delete(ctx, members[0].object.DeepCopy()))
	})
}

// again tries until it works or the context ends.
func again(ctx context.Context, try func() error) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil || apierrors.IsInvalid(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
