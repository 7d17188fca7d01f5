// Package plan decides. From what is wanted and what was observed it derives
// the next steps, or a reason to wait, and the conditions to report. It is
// pure: no I/O, no clock, no randomness, nothing remembered between calls; it
// may import nothing but the standard library's pure parts. Everything it
// believes about etcd is checked on real etcd by the tests of other packages.
//
// Order of concern: deletion, pause, founding, upkeep of machines, the
// operation in flight, lost quorum, abandoned learners, dead members,
// scale and voluntary replacement, machines without a member.
package plan

import "time"

// Patience with things that have no setting of their own.
const (
	// goneFor is how long an actuator must have said that a machine is gone
	// before it is believed (F162).
	goneFor = time.Second
	// lagAllowed is how many entries a learner may be behind the leader's
	// commit when it is promoted. Etcd itself asks for 90 % of the index,
	// which after a long life is no promise at all (F009).
	lagAllowed = 1000
	// backoffFirst and backoffMax bound the pause after a failed join, which
	// doubles from one to the next (F177).
	backoffFirst = 10 * time.Second
	backoffMax   = 30 * time.Minute
	// foundingPatience is how long founders that all run may take to elect a
	// leader when one of them was lost on the way.
	foundingPatience = 30 * time.Second
)

// Decide derives what to do next. It returns the same for the same input.
func Decide(w World) Decision {
	d := decision{World: w}
	d.steps()
	return Decision{Steps: d.out, Wait: d.wait, Again: d.again, Conditions: d.conditions(), Phase: d.phase()}
}

// Decision is what Decide returns.
type Decision struct {
	// Steps to take now, in this order. At most one changes the membership,
	// and then it is the only one.
	Steps []Step
	// Wait says what is waited for when there is nothing, or not everything,
	// to be done. Empty when all is as wanted.
	Wait string
	// Again is when to look again at the latest; zero leaves it to the caller.
	Again      time.Time
	Conditions []Condition
	Phase      string
}

// decision is one run of Decide.
type decision struct {
	World
	out   []Step
	wait  string
	again time.Time
}

func (d *decision) do(s ...Step) { d.out = append(d.out, s...) }

func (d *decision) waitFor(why string) {
	if d.wait == "" {
		d.wait = why
	}
}

func (d *decision) lookAgainAt(t time.Time) {
	if d.again.IsZero() || t.Before(d.again) {
		d.again = t
	}
}

func (d *decision) steps() {
	switch {
	case d.Spec.Deleting:
		d.delete()
	case d.Spec.Paused:
		d.waitFor("paused")
	case d.Spec.Invalid != "":
		d.waitFor(d.Spec.Invalid)
	case !d.Record.Founded:
		d.found()
	default:
		d.keep()
	}
}

// delete ends machines without asking the cluster for anything: a member
// removal would need a quorum that may be gone (F172).
func (d *decision) delete() {
	for _, m := range d.Machines {
		if !m.Deleting {
			d.do(Step{Kind: DeleteMachine, Machine: m.Name, Reason: "the cluster is deleted"})
		}
		d.do(Step{Kind: ReleaseMachine, Machine: m.Name, Reason: "the cluster is deleted"})
	}
	if len(d.Machines) == 0 {
		d.do(Step{Kind: ReleaseCluster, Reason: "no machine is left"})
		return
	}
	d.waitFor("machines to be gone")
}
