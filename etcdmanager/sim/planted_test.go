package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// sees is a planner that decides on a world that is not the true one.
func sees(alter func(w *plan.World)) Planner {
	return func(w plan.World) []plan.Step {
		w.Machines, w.Members = slices.Clone(w.Machines), slices.Clone(w.Members)
		alter(&w)
		return plan.Decide(w).Steps
	}
}

// does is a planner that changes what was decided.
func does(alter func(w plan.World, steps []plan.Step) []plan.Step) Planner {
	return func(w plan.World) []plan.Step { return alter(w, plan.Decide(w).Steps) }
}

// but is a planner that leaves some steps out.
func but(left func(w plan.World, s plan.Step) bool) Planner {
	return does(func(w plan.World, steps []plan.Step) []plan.Step {
		return slices.DeleteFunc(slices.Clone(steps), func(s plan.Step) bool { return left(w, s) })
	})
}

func memberAt(w plan.World, url string) (plan.Member, bool) {
	for _, m := range w.Members {
		if m.PeerURL == url {
			return m, true
		}
	}
	return plan.Member{}, false
}

func isLearner(w plan.World, id string) bool {
	return slices.ContainsFunc(w.Members, func(m plan.Member) bool { return m.ID == id && m.Learner })
}

func silentForLong(w plan.World, m plan.Machine) bool {
	return !m.Serving && w.Now.Sub(m.SilentSince) >= w.Spec.DeadAfter && !m.SilentSince.IsZero()
}

// atRest is what is violated where faults stop and nothing comes of it.
const atRest = "faults stopped and it did not come to rest as wanted"

var planted = []struct {
	name   string
	hazard string
	bug    Planner
	// what it violates, any of these
	violates []string
}{
	{"add before remove", "F001", sees(func(w *plan.World) {
		for _, m := range slices.Clone(w.Machines) {
			member, ok := memberAt(*w, m.PeerURL)
			if ok && !member.Learner && !m.Serving && (silentForLong(*w, m) || w.Record.Operation != nil) {
				w.Members = slices.DeleteFunc(w.Members, func(other plan.Member) bool { return other == member })
				w.Machines = slices.DeleteFunc(w.Machines, func(other plan.Machine) bool { return other.Name == m.Name })
			}
		}
	}), []string{"a member is added while a voter does not live"}},
	{"promote without proof", "F007, F008", sees(func(w *plan.World) {
		for i := range w.Machines {
			m := &w.Machines[i]
			if member, ok := memberAt(*w, m.PeerURL); ok && member.Learner {
				m.Agent.Running = true
				m.Status = plan.Status{Known: true, MemberID: member.ID, ClusterID: clusterID, Learner: true, Leader: "x", Applied: 100_000}
			}
		}
	}), []string{"a dead learner is promoted", "a learner that lags is promoted"}},
	{"remove when the agent is silent", "F169", sees(func(w *plan.World) {
		for i := range w.Machines {
			if m := &w.Machines[i]; m.Requested && !m.Agent.Reachable {
				m.Serving, m.SilentSince = false, ago(long)
			}
		}
	}), []string{"a healthy member is removed"}},
	{"remove a healthy member while another is down", "F019", sees(func(w *plan.World) {
		for i := range w.Machines {
			m := &w.Machines[i]
			if member, ok := memberAt(*w, m.PeerURL); ok && !member.Learner && len(w.Members) > w.Spec.Replicas {
				m.Serving, m.SilentSince = true, ago(none)
			}
		}
	}), []string{"a healthy member is removed while another does not live", "a removal loses the quorum"}},
	{"found again when nothing is seen", "F159", sees(func(w *plan.World) {
		if !slices.ContainsFunc(w.Machines, func(m plan.Machine) bool { return m.Serving }) {
			w.Record.Founded, w.Record.Founders = false, nil
		}
	}), []string{"a founded cluster is founded again"}},
	{"forget a lost record's machines", "F159", sees(func(w *plan.World) {
		if !w.Record.Founded && len(w.Record.Founders) == 0 {
			w.Machines = nil
		}
	}), []string{"a cluster whose record was lost is founded anew"}},
	{"start a voter with an empty disk", "F026", does(func(w plan.World, steps []plan.Step) []plan.Step {
		for _, m := range w.Machines {
			member, ok := memberAt(w, m.PeerURL)
			if ok && m.Agent.Reachable && m.Agent.Enrolled && !m.Agent.Declared && w.Record.Operation == nil {
				return []plan.Step{{Kind: plan.Declare, Machine: m.Name, MemberID: member.ID}}
			}
			if ok && m.Agent.Reachable && !m.Agent.Enrolled {
				return []plan.Step{{Kind: plan.Enrol, Machine: m.Name}}
			}
		}
		return steps
	}), []string{"a voter with an empty disk is told to run"}},
	{"leave abandoned learners", "F006, F011", but(func(w plan.World, s plan.Step) bool {
		return s.Kind == plan.BeginOperation && s.Operation.Kind == plan.Remove && isLearner(w, s.Operation.MemberID)
	}), []string{atRest}},
	{"two operations at once", "F036", sees(func(w *plan.World) {
		w.Record.Operation = nil
	}), []string{"two operations at once"}},
	{"remove without a lock", "F165", does(func(_ plan.World, steps []plan.Step) []plan.Step {
		for _, s := range steps {
			if s.Kind == plan.BeginOperation && s.Operation.Kind == plan.Remove {
				return []plan.Step{{Kind: plan.RemoveMember, MemberID: s.Operation.MemberID, Machine: s.Operation.Machine}}
			}
		}
		return steps
	}), []string{"a membership call without a recorded operation"}},
	{"end a deleted machine at once", "F174, F175", does(func(w plan.World, steps []plan.Step) []plan.Step {
		for _, m := range w.Machines {
			if m.Deleting {
				return []plan.Step{{Kind: plan.ReleaseMachine, Machine: m.Name}}
			}
		}
		return steps
	}), []string{"the machine of a member is ended"}},
	{"start whatever stands still", "F024", does(func(w plan.World, steps []plan.Step) []plan.Step {
		for _, m := range w.Machines {
			if m.Instance == plan.InstanceStopped {
				return []plan.Step{{Kind: plan.AskMachine, Machine: m.Name}}
			}
		}
		return steps
	}), []string{"a removed member's machine is started again"}},
	{"a new name at every look", "F158", does(func(w plan.World, steps []plan.Step) []plan.Step {
		for i := range steps {
			if steps[i].Kind == plan.BeginOperation || steps[i].Kind == plan.AddLearner {
				name := plan.MachineName("c", w.Record.NextMachine+int64(len(w.Machines)))
				return []plan.Step{{Kind: plan.CreateMachine, Machine: name}, {Kind: plan.AskMachine, Machine: name}}
			}
		}
		return steps
	}), []string{"machines for", "more machines than"}},
	{"never give a join up", "F015, F039", but(func(w plan.World, s plan.Step) bool {
		op := w.Record.Operation
		return s.Kind == plan.RemoveMember && op != nil && op.Kind == plan.Join
	}), []string{atRest}},
	{"not found is an error", "F021", but(func(w plan.World, s plan.Step) bool {
		return s.Kind == plan.EndOperation && s.Operation.Kind == plan.Remove && !s.PutOff &&
			!slices.ContainsFunc(w.Members, func(m plan.Member) bool { return m.ID == s.Operation.MemberID })
	}), []string{atRest}},
}

// TestCarelessActor leaves out what act does beyond what was decided, and
// expects that the exploration finds out why it does it.
func TestCarelessActor(t *testing.T) {
	for _, c := range []struct {
		name     string
		start    State
		violates string
	}{
		{"no second look before a membership call (F036)", State{noSecondLook: true}, "a healthy member is removed while another does not live"},
		{"a machine is ended whose end nobody asked for (F165)", State{endsAnything: true}, "the machine of a member is ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := Founded(3, 2)
			start.noSecondLook, start.endsAnything = c.start.noSecondLook, c.start.endsAnything
			r := Exploration{Decide: Decide, MaxStates: 600_000, Workers: 2}.Run(start)
			if !strings.Contains(string(r.Violation), c.violates) {
				t.Fatalf("%q was not found: %s", c.violates, r)
			}
			t.Logf("found after %d states and %d events", r.States, len(r.Trace)-1)
		})
	}
}

// TestPlantedBugs plants a bug in the planner and expects that the
// exploration finds it, and for its own reason.
func TestPlantedBugs(t *testing.T) {
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			visited := 0
			for _, start := range []State{Founded(3, 1), Founded(1, 2), Founded(3, 2), Unfounded(3, 1)} {
				x := Exploration{Decide: p.bug, MaxStates: 60_000, Workers: 2}
				if p.violates[0] == atRest {
					x.Converge = 11
				}
				r := x.Run(start)
				visited += r.States
				if r.Violation == "" {
					continue
				}
				if !slices.ContainsFunc(p.violates, func(v string) bool { return strings.Contains(string(r.Violation), v) }) {
					t.Fatalf("found for another reason: %s", r)
				}
				first, _, _ := strings.Cut(string(r.Violation), ":")
				t.Logf("%s: found after %d states and %d events: %s", p.hazard, visited, len(r.Trace)-1, first)
				return
			}
			t.Fatalf("not found in %d states", visited)
		})
	}
}
