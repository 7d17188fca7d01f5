package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Members that the cluster begins with, and how many more it has at times.
const (
	founders = 3
	grownBy  = 2
)

// fault is one thing that goes wrong in a round.
type fault struct {
	kind kind
	// members it is about: 0 is whoever leads when the round begins, others
	// are followers in the order of their machines' names.
	members []int
	after   time.Duration // from the beginning of the round
	lasts   time.Duration // of what is stopped or kept down
	to      int           // members wanted, where the fault is to scale
}

func (f fault) String() string {
	var who []string
	for _, m := range f.members {
		if m == 0 {
			who = append(who, "the leader")
		} else {
			who = append(who, fmt.Sprintf("follower %d", m))
		}
	}
	text := f.kind.name
	if len(who) > 0 {
		text += ": " + strings.Join(who, ", ")
	}
	if f.to > 0 {
		text += fmt.Sprintf(" to %d", f.to)
	}
	if f.after > 0 {
		text += fmt.Sprintf("; after %s", f.after)
	}
	if f.lasts > 0 {
		text += fmt.Sprintf("; for %s", f.lasts)
	}
	return text
}

// round is what goes wrong together.
type round struct {
	number   int
	replicas int // at its beginning
	faults   []fault
}

func (r round) String() string {
	text := fmt.Sprintf("round %d, %d members", r.number, r.replicas)
	for _, f := range r.faults {
		text += "\n  " + f.String()
	}
	return text
}

// scaled is how many members are wanted when the round is over.
func (r round) scaled() int {
	for _, f := range r.faults {
		if f.to > 0 {
			return f.to
		}
	}
	return r.replicas
}

// schedule is what follows from a seed and the kinds that can be done. The
// first rounds are the same for any number of them.
func schedule(seed uint64, rounds int, kinds []kind) []round {
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([]round, rounds)
	replicas := founders
	for i := range all {
		all[i] = round{number: i + 1, replicas: replicas}
		all[i].draw(random, kinds)
		replicas = all[i].scaled()
	}
	return all
}

// draw takes one to three faults that a cluster must survive together.
func (r *round) draw(random *rand.Rand, kinds []kind) {
	wanted := []int{1, 1, 2, 2, 3}[random.IntN(5)]
	members := random.Perm(r.replicas)
	for range 100 {
		if len(r.faults) == wanted {
			return
		}
		k := kinds[random.IntN(len(kinds))]
		if !r.takes(k) {
			continue
		}
		f := fault{kind: k}
		switch {
		case k.losses > 0:
			f.members, members = members[:k.losses], members[k.losses:]
		case k.leader:
			f.members = []int{0}
		default:
			f.members = random.Perm(r.replicas)[:k.count(r.replicas)]
		}
		// Disks go first: of a cluster that has given a member up already,
		// one more may be too much.
		if k.losses == 0 {
			f.after = time.Duration(random.IntN(50)) * 100 * time.Millisecond
		}
		if k.scales {
			f.to = 2*founders + grownBy - r.replicas
		}
		if k.lasts {
			f.lasts = time.Second + time.Duration(random.IntN(140))*100*time.Millisecond
		}
		r.faults = append(r.faults, f)
	}
}

// takes says whether a fault may be added: never so that more than a minority
// loses its disks, a healthy member on its way out counted as lost, and never
// two faults of one part.
func (r *round) takes(k kind) bool {
	lost, inTurn, touched := k.cost(r.replicas), k.inTurn, k.touches
	for _, f := range r.faults {
		if f.kind.part == k.part {
			return false
		}
		lost += f.kind.cost(r.replicas)
		inTurn = inTurn || f.kind.inTurn
		touched = touched || f.kind.touches
	}
	// A disk that is lost late must not meet members that were given up.
	return lost <= (r.replicas-1)/2 && !(inTurn && touched)
}
