package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// probeKey is read to see whether a linearizable read is answered. It need
// not exist.
const probeKey = "etcdmanager.io/probe"

// ID writes a member's or cluster's ID as etcd does.
func ID(id uint64) string { return fmt.Sprintf("%x", id) }

// askEtcd asks one member for its status and a linearizable read: an open
// port proves nothing (F170), and a status alone no quorum (F192).
func (m *Machine) askEtcd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	// The calls are made bare: the client's own Status dials anew each time,
	// and its retries would wait out the deadline where nobody listens.
	conn := m.Contact.Etcd.ActiveConnection()
	conn.Connect()
	status, err := etcdserverpb.NewMaintenanceClient(conn).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		m.EtcdErr = fmt.Errorf("ask etcd for its status: %w", err)
		return
	}
	m.Etcd = plan.Status{
		Known: true, MemberID: ID(status.Header.MemberId), ClusterID: ID(status.Header.ClusterId),
		Learner: status.IsLearner, Committed: status.RaftIndex, Applied: status.RaftAppliedIndex, Version: status.Version,
	}
	m.DBSize, m.Revision = status.DbSize, status.Header.Revision
	if status.Leader != 0 {
		m.Etcd.Leader = ID(status.Leader)
	}
	m.Etcd.Alarms = alarmsIn(status.Errors)
	if status.IsLearner {
		return // a learner answers no linearizable read
	}
	read := &etcdserverpb.RangeRequest{Key: []byte(probeKey), CountOnly: true}
	if _, err := etcdserverpb.NewKVClient(conn).Range(ctx, read); err != nil {
		m.EtcdErr = fmt.Errorf("read from etcd: %w", err)
		return
	}
	m.serving = true
}

// alarmsIn picks the alarms out of a status' errors, which hold other things
// too.
func alarmsIn(statusErrors []string) []string {
	var alarms []string
	for _, alarm := range []string{"NOSPACE", "CORRUPT"} {
		if slices.ContainsFunc(statusErrors, func(e string) bool { return strings.Contains(e, alarm) }) {
			alarms = append(alarms, alarm)
		}
	}
	return alarms
}

// members reads the member list linearizably, from the leader if it is seen,
// else from whoever answers reads (F034).
func (o *Observer) members(ctx context.Context, view *View) {
	for _, m := range view.Serving() {
		ctx, cancel := context.WithTimeout(ctx, deadline)
		list, err := m.Contact.Etcd.MemberList(ctx)
		cancel()
		if err != nil {
			continue
		}
		if want := view.World.Record.ClusterID; want != "" && ID(list.Header.ClusterId) != want {
			continue // another incarnation answers here (F163)
		}
		view.ClusterID = ID(list.Header.ClusterId)
		view.World.MembersKnown = true
		for _, member := range list.Members {
			url := ""
			if len(member.PeerURLs) > 0 {
				url = member.PeerURLs[0]
			}
			view.World.Members = append(view.World.Members, plan.Member{
				ID: ID(member.ID), Name: member.Name, PeerURL: url, Learner: member.IsLearner,
			})
		}
		slices.SortFunc(view.World.Members, func(a, b plan.Member) int { return byNumber(a.ID, b.ID) })
		return
	}
}

// Serving lists machines whose etcd answered us, the leader first.
func (v *View) Serving() []*Machine {
	var serving []*Machine
	for _, m := range v.Machines {
		if m.serving {
			serving = append(serving, m)
		}
	}
	slices.SortFunc(serving, func(a, b *Machine) int {
		if la, lb := a.leads(), b.leads(); la != lb {
			if la {
				return -1
			}
			return 1
		}
		return byNumber(a.Object.Name, b.Object.Name)
	})
	return serving
}

func (m *Machine) leads() bool { return m.Etcd.Leader != "" && m.Etcd.Leader == m.Etcd.MemberID }

// Answers says that this machine's etcd answered our linearizable read.
func (m *Machine) Answers() bool { return m.serving }
