package act

import (
	"context"
	"sync"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// endPatience is how long the first look waits for a machine to end. Most do
// in that time; one whose processes hang is not waited for by what else is to
// be done about its cluster.
const endPatience = time.Second

// endings are the machines whose end was asked for and not answered yet, by
// UID.
type endings struct {
	mu sync.Mutex
	by map[string]chan error
}

// end asks an actuator to delete a machine and says whether that was done. An
// actuator that takes its time is asked again only after it has answered. The
// call ends with the context, which is that of the controller.
func (e *endings) end(ctx context.Context, actuator machine.Actuator, m machine.Machine) (done bool, err error) {
	e.mu.Lock()
	answer, asked := e.by[m.UID]
	if !asked {
		answer = make(chan error, 1)
		if e.by == nil {
			e.by = map[string]chan error{}
		}
		e.by[m.UID] = answer
		go func() { answer <- actuator.Delete(ctx, m) }()
	}
	e.mu.Unlock()
	var patience <-chan time.Time
	if !asked {
		timer := time.NewTimer(endPatience)
		defer timer.Stop()
		patience = timer.C
	} else if len(answer) == 0 {
		return false, nil
	}
	select {
	case err = <-answer:
	case <-patience:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
	e.mu.Lock()
	delete(e.by, m.UID)
	e.mu.Unlock()
	return err == nil, err
}
