package plan

import "slices"

// surplus removes a voter more than wanted: one that is to leave anyway, or
// the youngest, the leader last (F035). A healthy member is never removed
// while another does not work (F019).
func (d *decision) surplus() bool {
	voters := d.voters()
	if len(voters) <= d.Spec.Replicas {
		return false
	}
	if !d.allServing() {
		d.waitFor("every member to work before one is removed")
		return true
	}
	order := slices.SortedStableFunc(slices.Values(voters), func(a, b Member) int {
		return d.removalRank(b) - d.removalRank(a)
	})
	reason := "more members than wanted"
	if m, ok := d.machineOf(order[0]); ok && d.leaving(m) {
		reason = "its machine is to leave"
	}
	return d.beginRemoval(order[0], reason)
}

func (d *decision) removalRank(member Member) int {
	m, _ := d.machineOf(member)
	rank := 0
	if d.leaving(m) {
		rank += 1_000_000
	}
	if leader, ok := d.leader(); !ok || leader.Name != m.Name {
		rank += 500_000
	}
	for i, other := range d.Machines {
		if other.Name == m.Name {
			rank += i
		}
	}
	return rank
}

func (d *decision) allServing() bool {
	for _, member := range d.voters() {
		if m, ok := d.machineOf(member); !ok || !d.alive(m) {
			return false
		}
	}
	return true
}
