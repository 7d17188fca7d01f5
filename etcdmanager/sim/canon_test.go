package sim

import (
	"math/rand/v2"
	"testing"
)

// renumbered is the same state, had more machines and members come and gone
// before.
func renumbered(s State, machines, members uint8) State {
	num := func(n *uint8) {
		if *n != noMachine && *n != handMade {
			*n += machines
		}
	}
	id := func(n *uint8) {
		if *n != 0 {
			*n += members
		}
	}
	for i := range s.machines[:s.nMach] {
		num(&s.machines[i].num)
		id(&s.machines[i].dataOf)
	}
	for i := range s.members[:s.nMemb] {
		id(&s.members[i].id)
		num(&s.members[i].at)
	}
	id(&s.leader)
	num(&s.nextMach)
	s.nextMemb += members
	id(&s.op.member)
	if s.op.kind != 0 {
		num(&s.op.machine)
	}
	for _, list := range [][]simStep{s.todo[:s.nTodo], s.ghost[:s.nGhost]} {
		for i := range list {
			num(&list[i].machine)
			id(&list[i].member)
			id(&list[i].op.member)
			if list[i].op.kind != 0 {
				num(&list[i].op.machine)
			}
		}
	}
	return s
}

// TestKey walks at random. The key of every state is that of the state with
// other numbers, and not that of the state before, unless they are the same.
func TestKey(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	s := renumbered(Founded(3, 60), 10, 10)
	byKey := map[uint64]State{}
	for range 3000 {
		e, ok := s.pick(rng)
		if !ok || s.nextMach > 150 || s.nextMemb > 200 {
			break
		}
		s.Apply(e, Decide)
		if !s.founded {
			continue
		}
		if other := renumbered(s, 3, 7); other.Key() != s.Key() {
			t.Fatalf("after %s the key depends on numbers: %s", s.describe(e), s.String())
		}
		before, known := byKey[s.Key()]
		if known && (before.nMach != s.nMach || before.nMemb != s.nMemb || before.op.kind != s.op.kind || before.nTodo != s.nTodo) {
			t.Fatalf("two states have one key:\n%s\n%s", before.String(), s.String())
		}
		byKey[s.Key()] = s
	}
	if len(byKey) < 100 {
		t.Fatalf("only %d states were seen", len(byKey))
	}
}
