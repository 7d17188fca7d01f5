package observe

import (
	"sync"
	"time"
)

// memory holds since when things have been as they are. It is all that is
// remembered between two looks, and a restart that forgets it only makes the
// controller more patient.
type memory struct {
	mu sync.Mutex
	by map[string]*trace // by machine UID
}

type trace struct {
	clusterUID  string
	silentSince time.Time
	declaredAt  time.Time // first seen to be declared
	goneSince   time.Time
	muteSince   time.Time
	progressAt  time.Time
	progress    string
}

func (m *memory) note(clusterUID, uid string, now time.Time, serving, declared, gone bool, progress string) trace {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.by[uid]
	if t == nil {
		// To be seen at all is progress: a controller that starts, or a
		// machine made anew, has all of its time before it.
		t = &trace{clusterUID: clusterUID, progress: progress, progressAt: now}
		m.by[uid] = t
	}
	t.silentSince = since(t.silentSince, !serving, now)
	if declared && t.declaredAt.IsZero() {
		t.declaredAt = now
	}
	// What was not told to run yet is not silent.
	if !t.silentSince.IsZero() && t.silentSince.Before(t.declaredAt) {
		t.silentSince = t.declaredAt
	}
	t.goneSince = since(t.goneSince, gone, now)
	if t.progress != progress {
		t.progress, t.progressAt = progress, now
	}
	return *t
}

// noteMute notes whether neither agent nor etcd of a machine said anything.
func (m *memory) noteMute(uid string, now time.Time, mute bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.by[uid]; t != nil {
		t.muteSince = since(t.muteSince, mute, now)
	}
}

// muteSince is zero for a machine that said anything at the last look, and for
// one that was never told to run a member.
func (m *memory) muteSince(uid string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.by[uid]; t != nil && !t.declaredAt.IsZero() {
		return t.muteSince
	}
	return time.Time{}
}

func since(before time.Time, holds bool, now time.Time) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

func (m *memory) forget(drop func(clusterUID, machineUID string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, t := range m.by {
		if drop(t.clusterUID, uid) {
			delete(m.by, uid)
		}
	}
}
