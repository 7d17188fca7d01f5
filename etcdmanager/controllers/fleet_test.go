package controllers

import (
	"fmt"
	"testing"

	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

func worldOf(serving, silent, gone int) plan.World {
	w := plan.World{Record: plan.Record{Founded: true}}
	for range serving {
		w.Machines = append(w.Machines, plan.Machine{Serving: true})
	}
	for range silent {
		w.Machines = append(w.Machines, plan.Machine{})
	}
	for range gone {
		w.Machines = append(w.Machines, plan.Machine{Instance: plan.InstanceGone})
	}
	return w
}

// TestFleetSilence tells a fault of the fleet from one of the controller's own
// network (F168).
func TestFleetSilence(t *testing.T) {
	for _, c := range []struct {
		name   string
		worlds []plan.World
		silent bool
	}{
		{"one cluster is no fleet", []plan.World{worldOf(0, 3, 0)}, false},
		{"one of three is silent", []plan.World{worldOf(3, 0, 0), worldOf(0, 3, 0), worldOf(3, 0, 0)}, false},
		{"two of three are silent", []plan.World{worldOf(0, 3, 0), worldOf(0, 3, 0), worldOf(3, 0, 0)}, true},
		{"machines known to be gone are not silent", []plan.World{worldOf(0, 0, 3), worldOf(0, 0, 3), worldOf(3, 0, 0)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f fleet
			silent := false
			for i, w := range c.worlds {
				silent = f.note(fmt.Sprint(i), w)
			}
			if silent != c.silent {
				t.Errorf("silent %t, want %t", silent, c.silent)
			}
		})
	}
}

func TestFleetForgets(t *testing.T) {
	var f fleet
	for i := range 3 {
		f.note(fmt.Sprint(i), worldOf(0, 3, 0))
	}
	f.forget("0")
	deleting := worldOf(0, 3, 0)
	deleting.Spec.Deleting = true
	if f.note("1", deleting) {
		t.Error("clusters that are gone or being deleted count as silent")
	}
}
