package plan_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// TestStories reads testdata/*.txt. A story sets a fleet up and looks at it
// after things happened; what is printed is the whole decision. In a story
//
//	fleet replicas=3           sets up a healthy cluster c of machines c-0 …,
//	                           members a0 … and leader a0; fleet unfounded
//	                           sets up nothing but the spec
//	look [conditions=A,B]      applies the lines below it and decides
//
// and the lines are: spec, record, operation, machine NAME, member ID, and
// "pass DURATION", each followed by words; see the appliers below.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			switch d.Cmd {
			case "fleet":
				return s.fleet(d)
			case "look":
				return s.look(d)
			}
			t.Fatalf("%s: no such command: %s", filepath.Base(path), d.Cmd)
			return ""
		})
	})
}

type story struct {
	t *testing.T
	w plan.World
}

func (s *story) fleet(d *datadriven.TestData) string {
	n := 3
	d.MaybeScanArgs(s.t, "replicas", &n)
	s.w = plan.World{
		Now:  time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC),
		Spec: plan.Spec{Name: "c", Replicas: n, DeadAfter: time.Minute},
	}
	if d.HasArg("unfounded") {
		return ""
	}
	s.w.Record = plan.Record{Token: "t", Founded: true, ClusterID: "cc", NextMachine: int64(n)}
	s.w.MembersKnown = true
	for i := range n {
		name := plan.MachineName("c", int64(i))
		s.w.Record.Founders = append(s.w.Record.Founders, name)
		s.machine(name, "voter")
		s.member("a"+strconv.Itoa(i), "voter")
	}
	s.apply(d.Input)
	return ""
}

func (s *story) look(d *datadriven.TestData) string {
	s.apply(d.Input)
	got := plan.Decide(s.w)
	if again := plan.Decide(s.w); fmt.Sprint(again) != fmt.Sprint(got) {
		s.t.Fatalf("two decisions on one world differ:\n%v\n%v", got, again)
	}
	var b strings.Builder
	fmt.Fprintln(&b, got.Phase)
	for _, step := range got.Steps {
		fmt.Fprintf(&b, "  %s\n", step)
	}
	if got.Wait != "" {
		fmt.Fprintf(&b, "  waits for %s\n", got.Wait)
	}
	if !got.Again.IsZero() {
		fmt.Fprintf(&b, "  looks again in %s\n", got.Again.Sub(s.w.Now))
	}
	var shown string
	d.MaybeScanArgs(s.t, "conditions", &shown)
	for _, c := range got.Conditions {
		if slices.Contains(strings.Split(shown, ","), c.Type) {
			fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return b.String()
}

func (s *story) apply(input string) {
	for line := range strings.SplitSeq(input, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch rest := words[1:]; words[0] {
		case "pass":
			s.w.Now = s.w.Now.Add(s.duration(rest[0]))
		case "spec":
			s.spec(rest...)
		case "record":
			s.record(rest...)
		case "operation":
			s.operation(rest...)
		case "machine":
			s.machine(rest[0], rest[1:]...)
		case "member":
			s.member(rest[0], rest[1:]...)
		default:
			s.t.Fatalf("no such line: %s", line)
		}
	}
}

func (s *story) spec(words ...string) {
	for _, word := range words {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "replicas":
			s.w.Spec.Replicas = s.number(value)
		case "paused":
			s.w.Spec.Paused = true
		case "deleting":
			s.w.Spec.Deleting = true
		case "domains":
			s.w.Spec.FailureDomains = strings.Split(value, ",")
		case "invalid":
			s.w.Spec.Invalid = value
		case "fleetsilent":
			s.w.FleetSilent = true
		case "blind": // the member list can't be read
			s.w.MembersKnown, s.w.Members = false, nil
		default:
			s.t.Fatalf("no such word of a spec: %s", word)
		}
	}
}

func (s *story) record(words ...string) {
	for _, word := range words {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "lost":
			s.w.Record = plan.Record{}
			s.w.MembersKnown, s.w.Members = false, nil
		case "founders":
			s.w.Record.Founders, s.w.Record.Token = strings.Split(value, ","), "t"
		case "next":
			s.w.Record.NextMachine = int64(s.number(value))
		case "failures":
			s.w.Record.Failures = s.number(value)
		case "failed":
			s.w.Record.FailedAt = s.ago(value)
		default:
			s.t.Fatalf("no such word of a record: %s", word)
		}
	}
}

func (s *story) operation(words ...string) {
	if words[0] == "none" {
		s.w.Record.Operation = nil
		return
	}
	op := &plan.Operation{Kind: plan.OperationKind(words[0]), Started: s.w.Now, Reason: "as decided"}
	for _, word := range words[1:] {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "machine":
			op.Machine = value
		case "member":
			op.MemberID = value
		case "started":
			op.Started = s.ago(value)
		default:
			s.t.Fatalf("no such word of an operation: %s", word)
		}
	}
	s.w.Record.Operation = op
	if op.Kind == plan.Join {
		n, _ := strconv.Atoi(op.Machine[2:])
		s.w.Record.NextMachine = max(s.w.Record.NextMachine, int64(n)+1)
	}
}

func (s *story) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *story) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *story) ago(text string) time.Time { return s.w.Now.Add(-s.duration(text)) }

// peers is the initial cluster that a machine is told when it joins.
func (s *story) peers() string {
	var peers []plan.Peer
	for _, m := range s.w.Members {
		n := strings.TrimSuffix(strings.TrimPrefix(m.PeerURL, "https://10.0.0."), ":2380")
		peers = append(peers, plan.Peer{Name: "c-" + n, URL: m.PeerURL})
	}
	return plan.PeersKey(peers)
}
