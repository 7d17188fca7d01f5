package sim

import "math/bits"

// Key of a state: the same for states that differ in nothing but the numbers
// of machines and members, whose order is kept.
func (s *State) Key() uint64 {
	nums, mids := s.ranks()
	h := hasher(14695981039346656037)
	for _, m := range s.machines[:s.nMach] {
		h.add(nums.of(m.num), uint8(m.inst), uint8(m.told), uint8(m.silent), uint8(m.gone), mids.of(m.dataOf))
		h.bools(m.deleting, m.replace, m.requested, m.agentUp, m.enrolled, m.fenced, m.release, m.running)
		h.bools(m.lost, m.stale, m.old, m.cut, m.peerCut, m.caught, m.fresh, m.progressOld)
		h.bools(m.newer)
	}
	h.add(255)
	for _, m := range s.members[:s.nMemb] {
		h.add(mids.of(m.id), nums.of(m.at))
		h.bools(m.learner, m.started, m.promoted)
	}
	h.add(255, mids.of(s.leader), s.replicas, s.peak, s.nFoun, nums.of(s.nextMach), s.failures, s.faults)
	if !s.founded {
		h.add(nums.of(s.firstFounder))
	}
	h.bools(s.founded, s.recordLost, s.backoff, s.fleetSilent)
	h.op(s.op, nums, mids)
	for _, list := range [][]simStep{s.todo[:s.nTodo], s.ghost[:s.nGhost]} {
		h.add(255)
		for _, step := range list {
			h.add(uint8(step.kind), nums.of(step.machine), mids.of(step.member), step.founders)
			h.bools(step.flag, step.flag2, step.conf == s.conf)
			h.op(step.op, nums, mids)
		}
	}
	return h.sum()
}

// ranks collects all numbers that are of any meaning.
func (s *State) ranks() (nums, mids set) {
	for _, m := range s.machines[:s.nMach] {
		nums.put(m.num)
		mids.put(m.dataOf)
	}
	for _, m := range s.members[:s.nMemb] {
		nums.put(m.at)
		mids.put(m.id)
	}
	nums.put(s.nextMach)
	nums.put(s.op.machine)
	mids.put(s.op.member)
	if !s.founded {
		nums.put(s.firstFounder)
	}
	for _, list := range [][]simStep{s.todo[:s.nTodo], s.ghost[:s.nGhost]} {
		for _, step := range list {
			nums.put(step.machine)
			nums.put(step.op.machine)
			mids.put(step.member)
			mids.put(step.op.member)
		}
	}
	return nums, mids
}

// set of small numbers, in which each has a rank.
type set [4]uint64

func (s *set) put(n uint8) { s[n>>6] |= 1 << (n & 63) }

// of is the rank of a number that is in the set; zero stays zero.
func (s *set) of(n uint8) uint8 {
	if n == 0 {
		return 0
	}
	rank := 1
	for i := range n >> 6 {
		rank += bits.OnesCount64(s[i])
	}
	return uint8(rank + bits.OnesCount64(s[n>>6]&(1<<(n&63)-1)))
}

// hasher is FNV-1a, mixed once more at the end.
type hasher uint64

func (h *hasher) add(values ...uint8) {
	for _, v := range values {
		*h = (*h ^ hasher(v)) * 1099511628211
	}
}

func (h *hasher) bools(values ...bool) {
	var v uint8
	for i, b := range values {
		if b {
			v |= 1 << i
		}
	}
	h.add(v)
}

func (h *hasher) op(o simOp, nums, mids set) {
	h.add(o.kind)
	if o.kind != 0 {
		h.add(nums.of(o.machine), mids.of(o.member))
		h.bools(o.old)
	}
}

func (h *hasher) sum() uint64 {
	x := uint64(*h)
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
