package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// op is what a client did to a register. Values are unique, so that whose
// write a read saw is certain.
type op struct {
	client int
	kind   opKind
	key    string
	value  string // written, or wanted to
	expect string // compare-and-set: what the register must hold; "" for nothing

	called, returned time.Duration // since the beginning
	known            bool          // it was answered; else it may have happened, now or later
	swapped          bool          // compare-and-set: it was done
	held             string        // read, or found by a compare-and-set that was not done
	revision         int64         // a write's own; that of what was read
}

type opKind string

const (
	put  opKind = "put"
	get  opKind = "get"
	swap opKind = "compare-and-set"
)

// register is a key's state: the value and the revision it was written at.
type register struct {
	value    string
	revision int64
}

// model is that of one register. Revisions are part of it: later writes have
// later ones.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(op).key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return register{} },
	Step: func(state, input, _ any) (bool, any) {
		s, o := state.(register), input.(op)
		switch {
		case o.kind == get || o.kind == swap && !o.swapped:
			same := s.value == o.held && s.revision == o.revision
			return same && (o.kind == get || o.held != o.expect), s
		case o.kind == swap && s.value != o.expect, o.revision <= s.revision:
			return false, s
		}
		return true, register{o.value, o.revision}
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// linearizable says whether a register that does one thing at a time could
// have answered so. Unknown means that the search took longer than timeout.
func linearizable(history []op, timeout time.Duration) porcupine.CheckResult {
	seen := map[string]int64{}
	for _, o := range history {
		if o.known && o.held != "" {
			seen[o.held] = o.revision
		}
	}
	var operations []porcupine.Operation
	for _, o := range history {
		end := int64(o.returned)
		if !o.known {
			revision, happened := seen[o.value]
			if o.kind == get || !happened {
				continue // nobody saw it: the history is as good without it
			}
			o.revision, o.swapped, end = revision, true, math.MaxInt64
		}
		operations = append(operations, porcupine.Operation{ClientId: o.client, Input: o, Call: int64(o.called), Return: end})
	}
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return porcupine.CheckOperationsTimeout(model, operations, timeout)
}

func TestLinearizable(t *testing.T) {
	at := func(call, end time.Duration, o op) op {
		o.key, o.called, o.returned, o.known = "k", call, end, true
		return o
	}
	write := func(value string, revision int64) op { return op{kind: put, value: value, revision: revision} }
	read := func(value string, revision int64) op { return op{kind: get, held: value, revision: revision} }
	lostAnswer := func(o op) op { o.known, o.revision = false, 0; return o }
	cases := []struct {
		name    string
		history []op
		want    porcupine.CheckResult
	}{
		{"in turn", []op{at(0, 1, write("a", 2)), at(2, 3, read("a", 2)), at(4, 5, write("b", 3)), at(6, 7, read("b", 3))}, porcupine.Ok},
		{"nothing yet", []op{at(0, 1, read("", 0)), at(2, 3, write("a", 2))}, porcupine.Ok},
		{"at the same time", []op{at(0, 9, write("a", 2)), at(1, 2, read("", 0)), at(3, 4, read("a", 2))}, porcupine.Ok},
		{"an acknowledged write is lost", []op{at(0, 1, write("a", 2)), at(2, 3, read("", 0))}, porcupine.Illegal},
		{"a stale read", []op{at(0, 1, write("a", 2)), at(2, 3, write("b", 3)), at(4, 5, read("a", 2))}, porcupine.Illegal},
		{"reads go back", []op{at(0, 9, write("a", 2)), at(1, 2, read("a", 2)), at(3, 4, read("", 0))}, porcupine.Illegal},
		{"a revision goes back", []op{at(0, 1, write("a", 5)), at(2, 3, write("b", 4))}, porcupine.Illegal},
		{"an unanswered write happens late", []op{
			at(0, 1, write("a", 2)), lostAnswer(at(2, 3, write("b", 0))), at(4, 5, read("a", 2)), at(6, 7, read("b", 3)),
		}, porcupine.Ok},
		{"an unanswered write never happens", []op{lostAnswer(at(0, 1, write("a", 0))), at(2, 3, read("", 0))}, porcupine.Ok},
		{"an unanswered write happens twice", []op{
			lostAnswer(at(0, 1, write("a", 0))), at(2, 3, read("a", 2)), at(4, 5, write("b", 3)), at(6, 7, read("a", 2)),
		}, porcupine.Illegal},
		{"it is read before it is written", []op{at(0, 1, read("a", 2)), lostAnswer(at(2, 3, write("a", 0)))}, porcupine.Illegal},
		{"two swap the same", []op{
			at(0, 1, write("a", 2)),
			at(2, 9, op{kind: swap, expect: "a", value: "b", swapped: true, revision: 3}),
			at(2, 9, op{kind: swap, expect: "a", value: "c", swapped: true, revision: 4}),
		}, porcupine.Illegal},
		{"one swaps, another finds it", []op{
			at(0, 1, write("a", 2)),
			at(2, 9, op{kind: swap, expect: "a", value: "b", swapped: true, revision: 3}),
			at(2, 9, op{kind: swap, expect: "a", value: "c", held: "b", revision: 3}),
		}, porcupine.Ok},
		{"an unanswered swap is seen", []op{
			at(0, 1, write("a", 2)), lostAnswer(at(2, 3, op{kind: swap, expect: "a", value: "b"})), at(4, 5, read("b", 3)),
		}, porcupine.Ok},
		{"an unanswered swap of what was not there is seen", []op{
			at(0, 1, write("a", 2)), lostAnswer(at(2, 3, op{kind: swap, expect: "x", value: "b"})), at(4, 5, read("b", 3)),
		}, porcupine.Illegal},
		{"a swap is refused for no reason", []op{
			at(0, 1, write("a", 2)), at(2, 3, op{kind: swap, expect: "a", value: "b", held: "a", revision: 2}),
		}, porcupine.Illegal},
	}
	for _, c := range cases {
		if got := linearizable(c.history, time.Minute); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
