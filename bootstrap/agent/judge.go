package agent

import (
	"fmt"
	"strconv"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/datadir"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// judge says whose the data is: what is on disk, held against what was written
// down and what is wanted.
func judge(content datadir.Content, f facts) protocol.Data {
	data := protocol.Data{MemberID: content.MemberID, ClusterID: content.ClusterID}
	if f.Started != nil {
		data.Token = f.Started.Token
	}
	data.State, data.Message = judgeState(content, f)
	return data
}

func judgeState(content datadir.Content, f facts) (state, message string) {
	switch {
	case f.Aside != "":
		return protocol.DataEmpty, "fenced; its data is in " + f.Aside
	case f.Fenced && content.Kind == datadir.Absent:
		return protocol.DataEmpty, "fenced; its data is set aside"
	case content.Kind == datadir.Unreadable:
		return protocol.DataForeign, content.Problem
	case content.Kind == datadir.Whole:
		return judgeWhole(content, f)
	case f.Started != nil:
		return protocol.DataLost, fmt.Sprintf("member %s of cluster %s ran here and its data is gone", f.Started.MemberID, f.Started.ClusterID)
	case f.Begun != nil && content.Dir != f.Begun.Dir:
		return protocol.DataLost, "etcd was started here and its data directory is gone"
	case content.Kind == datadir.Partial && f.Begun == nil:
		return protocol.DataForeign, content.Problem
	}
	return protocol.DataEmpty, ""
}

func judgeWhole(content datadir.Content, f facts) (state, message string) {
	if s := f.Started; s != nil && !(sameID(s.MemberID, content.MemberID) && sameID(s.ClusterID, content.ClusterID)) {
		return protocol.DataForeign, fmt.Sprintf("it is of member %s of cluster %s, and member %s of cluster %s ran here",
			content.MemberID, content.ClusterID, s.MemberID, s.ClusterID)
	}
	if f.Started == nil && f.Begun == nil {
		return protocol.DataForeign, fmt.Sprintf("it is of member %s of cluster %s, and no member was ever started here", content.MemberID, content.ClusterID)
	}
	if f.Wanted != nil {
		if problem := contradiction(*f.Wanted, content); problem != "" {
			return protocol.DataForeign, problem
		}
	}
	return protocol.DataPresent, ""
}

// contradiction says how the wanted member is another than the one on disk.
func contradiction(w protocol.Wanted, content datadir.Content) string {
	switch {
	case content.Kind != datadir.Whole:
		return ""
	case w.MemberID != "" && !sameID(w.MemberID, content.MemberID):
		return fmt.Sprintf("member %s is wanted and the data is of member %s", w.MemberID, content.MemberID)
	case w.ClusterID != "" && !sameID(w.ClusterID, content.ClusterID):
		return fmt.Sprintf("a member of cluster %s is wanted and the data is of cluster %s", w.ClusterID, content.ClusterID)
	}
	return ""
}

func sameID(a, b string) bool {
	x, errX := strconv.ParseUint(a, 16, 64)
	y, errY := strconv.ParseUint(b, 16, 64)
	return errX == nil && errY == nil && x == y
}
