package controllers

import (
	"sync"

	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// fleetClusters is from how many clusters on silence is judged together.
const fleetClusters = 3

// fleet counts machines of all clusters that answer nobody. When more than
// half are silent at once, the controller's own network is the likelier
// fault (F168).
type fleet struct {
	mu sync.Mutex
	by map[string]count
}

type count struct{ silent, all int }

func (f *fleet) note(uid string, w plan.World) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[string]count{}
	}
	var c count
	if w.Record.Founded && !w.Spec.Deleting {
		for _, m := range w.Machines {
			c.all++
			if !m.Serving && m.Instance != plan.InstanceGone {
				c.silent++
			}
		}
	}
	if c.all == 0 {
		delete(f.by, uid)
	} else {
		f.by[uid] = c
	}
	var sum count
	for _, each := range f.by {
		sum.silent += each.silent
		sum.all += each.all
	}
	return len(f.by) >= fleetClusters && 2*sum.silent > sum.all
}

func (f *fleet) forget(uid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.by, uid)
}
