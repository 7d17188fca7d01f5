package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

func TestFoundsAlone(t *testing.T) {
	for _, version := range []string{"3.5.35", "3.6.16", newest} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			h := newCluster(t).newHost(t, "m1").start().enrol()
			if s := h.seen(); s.Data.State != protocol.DataEmpty || s.Process.Running || len(s.Certificates) != 4 || s.Disk.Total == 0 {
				t.Errorf("before anything is wanted: %+v", s)
			}
			h.put(h.wanted(version))
			s := h.awaitServing()
			// The IDs that were read from the log's head are etcd's own.
			if s.Data.MemberID != s.Probe.MemberID || s.Data.ClusterID != s.Probe.ClusterID || s.Data.MemberID == "" {
				t.Errorf("data is of %s/%s, etcd says %s/%s", s.Data.MemberID, s.Data.ClusterID, s.Probe.MemberID, s.Probe.ClusterID)
			}
			if s.Probe.Version != version || s.Process.Version != version || s.Release.State != protocol.ReleaseReady || s.Probe.DBSize == 0 {
				t.Errorf("seen: %+v", s)
			}
			if s.Probe.Leader != s.Probe.MemberID || s.Process.Starts != 1 || s.Refusal != "" || len(s.Probe.Alarms) != 0 {
				t.Errorf("seen: %+v", s)
			}
			etcd := h.etcdClient()
			_, err := clientv3.RetryMaintenanceClient(etcd, etcd.ActiveConnection()).Alarm(t.Context(), &etcdserverpb.AlarmRequest{
				Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: 7, Alarm: etcdserverpb.AlarmType_NOSPACE,
			})
			must(t, err)
			h.await("the alarm", func(s protocol.Seen) bool { return slices.Equal(s.Probe.Alarms, []string{"NOSPACE"}) })
		})
	}
}

func TestJoinsAsLearner(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.newHost(t, "a").prefetch(newest).start().enrol(), c.newHost(t, "b").prefetch(newest).start().enrol()
	a.put(a.wanted(newest))
	founded := a.awaitServing()
	etcd := a.etcdClient()
	added, err := etcd.MemberAddAsLearner(t.Context(), []string{b.peerURL()})
	must(t, err)

	w := b.wanted(newest, a)
	w.Found, w.ClusterID, w.MemberID = false, founded.Data.ClusterID, strconv.FormatUint(added.Member.ID, 16)
	outdated := w
	outdated.InitialCluster = append(slices.Clone(w.InitialCluster), protocol.Peer{Name: "gone", URL: "https://127.0.0.9:2380"})
	b.put(outdated)
	s := b.await("etcd to refuse the outdated list", func(s protocol.Seen) bool { return s.Process.Exit != "" })
	if !strings.Contains(s.Process.Exit, "member count is unequal") || s.Data.State != protocol.DataEmpty {
		t.Errorf("exit %q, data %+v", s.Process.Exit, s.Data)
	}
	b.put(w) // F028
	s = b.await("the learner", func(s protocol.Seen) bool { return s.Probe.Learner && s.Data.State == protocol.DataPresent })
	if s.Probe.Serving || s.Probe.Error != "" || s.Data.MemberID != w.MemberID || s.Data.ClusterID != w.ClusterID {
		t.Errorf("seen: %+v", s)
	}
	eventually(t, "the learner to be promoted", func() bool {
		_, err := etcd.MemberPromote(t.Context(), added.Member.ID)
		return err == nil
	})
	b.awaitServing()
}

func TestFoundsWithThree(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b, d := c.newHost(t, "a").prefetch(newest).start().enrol(), c.newHost(t, "b").prefetch(newest).start().enrol(), c.newHost(t, "d").prefetch(newest).start().enrol()
	hosts := []*host{a, b, d}
	a.put(a.wanted(newest, b, d))
	b.put(b.wanted(newest, a, d))
	d.put(d.wanted(newest, a, b))
	clusters := map[string]bool{}
	members := map[string]bool{}
	for _, h := range hosts {
		s := h.awaitServing()
		clusters[s.Data.ClusterID], members[s.Data.MemberID] = true, true
	}
	if len(clusters) != 1 || len(members) != 3 {
		t.Errorf("clusters %v, members %v", clusters, members)
	}
	// Each member is seen by the others, also when one of them is stopped.
	sees := func(s protocol.Seen, h *host, serving bool) bool {
		return len(s.Peers) == 2 && slices.ContainsFunc(s.Peers, func(p protocol.Peering) bool {
			return p.URL == h.peerURL() && p.Serving == serving
		})
	}
	a.await("peers that serve", func(s protocol.Seen) bool { return sees(s, b, true) && sees(s, d, true) })
	off := d.wanted(newest, a, b)
	off.Run = false
	d.put(off)
	d.awaitStopped()
	a.await("a peer that is off", func(s protocol.Seen) bool { return sees(s, b, true) && sees(s, d, false) })
}

func TestRefusesAnOlderEpoch(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").prefetch(newest).start().enrol()
	w := h.wanted(newest)
	w.Run = false
	put := func(epoch int64) error {
		_, err := h.client.PutMember(t.Context(), epoch, w)
		return err
	}
	must(t, put(7))
	must(t, put(7))
	refusedWith(t, put(6), protocol.CodeStaleEpoch) // F165
	refusedWith(t, put(-1), protocol.CodeStaleEpoch)
	h.stop()
	h.start()
	refusedWith(t, put(6), protocol.CodeStaleEpoch) // remembered
	if s := h.seen(); s.Epoch != 7 {
		t.Errorf("epoch %d", s.Epoch)
	}
	// The newer epoch counts even if what it asks is refused.
	w.Name = "other"
	refusedWith(t, put(9), protocol.CodeInvalid)
	w.Name = h.name
	refusedWith(t, put(8), protocol.CodeStaleEpoch)
}

func TestRefusesWhatCannotRun(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").start()
	h.refused(h.wanted(newest), protocol.CodeNotEnrolled)
	h.enrol()
	for name, c := range map[string]struct {
		change func(*protocol.Wanted)
		says   string
	}{
		"unknown version": {func(w *protocol.Wanted) { w.Version = "3.9.1" }, "3.9"},
		"another's name":  {func(w *protocol.Wanted) { w.Name = "m2" }, "m2"},
		"no token":        {func(w *protocol.Wanted) { w.Token = "" }, "token"},
		"mirror":          {func(w *protocol.Wanted) { w.Mirror = "ftp://127.0.0.1" }, "ftp"},
		"checksum":        {func(w *protocol.Wanted) { w.SHA256 = map[string]string{"amd64": "beef"} }, "amd64"},
		"itself missing":  {func(w *protocol.Wanted) { w.InitialCluster = nil }, "initial cluster"},
		"two at one address": {func(w *protocol.Wanted) {
			w.InitialCluster = append(w.InitialCluster, protocol.Peer{Name: "m2", URL: h.peerURL()})
		}, "two members at"},
		"two of one name": {func(w *protocol.Wanted) {
			w.InitialCluster = append(w.InitialCluster, protocol.Peer{Name: "m1", URL: "https://127.0.0.9:2380"})
		}, "two members named"},
		"plain http":         {func(w *protocol.Wanted) { w.InitialCluster[0].URL = "http://127.0.0.9:2380" }, "https://"},
		"unknown argument":   {func(w *protocol.Wanted) { w.Settings.ExtraArgs = map[string]string{"no-such-flag": "1"} }, "no-such-flag"},
		"manager's argument": {func(w *protocol.Wanted) { w.Settings.ExtraArgs = map[string]string{"data-dir": "/"} }, "data-dir"},
		"election too short": {func(w *protocol.Wanted) { w.Settings.ElectionMilliseconds = 200 }, "election"},
		"member ID":          {func(w *protocol.Wanted) { w.MemberID = "xyz" }, "xyz"},
		"running and fenced": {func(w *protocol.Wanted) { w.Fenced = true }, "fenced"},
	} {
		t.Run(name, func(t *testing.T) {
			w := h.wanted(newest)
			c.change(&w)
			if message := h.refused(w, protocol.CodeInvalid); !strings.Contains(message, c.says) {
				t.Errorf("message %q does not speak of %q", message, c.says)
			}
		})
	}
	if s := h.seen(); s.Wanted != nil || s.Process.Starts != 0 {
		t.Errorf("something refused had an effect: %+v", s)
	}
}

func TestFencedMachineNeverRunsAgain(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").prefetch(newest).start().enrol()
	w := h.wanted(newest)
	h.put(w)
	h.awaitServing()
	fenced := w
	fenced.Run, fenced.Fenced = false, true
	h.put(fenced)
	h.await("the data to be set aside", func(s protocol.Seen) bool {
		return s.Fenced && !s.Process.Running && strings.Contains(s.Data.Message, "aside")
	})
	kept, err := filepath.Glob(filepath.Join(h.opts.Dir, "aside", "*-etcd", "member", "wal", "*.wal"))
	if err != nil || len(kept) == 0 {
		t.Errorf("the data is not kept: %v %v", kept, err)
	}
	h.refused(w, protocol.CodeFenced) // F024
	h.stop()
	h.start()
	h.refused(w, protocol.CodeFenced)
	// Nor does it help to say that it isn't fenced after all.
	w.Run = false
	h.put(w)
	if s := h.seen(); !s.Fenced || s.Process.Running {
		t.Errorf("seen: %+v", s)
	}
}

func TestWipedDataIsLostAndNeverStarted(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").prefetch(newest).start().enrol()
	w := h.wanted(newest)
	h.put(w)
	h.awaitServing()
	// Under the running process, as a human or a failing disk does it.
	must(t, os.RemoveAll(filepath.Join(h.opts.Dir, "etcd", "member")))
	lost := func(s protocol.Seen) bool {
		return s.Data.State == protocol.DataLost && !s.Process.Running && s.Refusal != ""
	}
	s := h.await("the loss to be noticed", lost)
	starts := s.Process.Starts
	if message := h.refused(w, protocol.CodeFounded); !strings.Contains(message, "gone") { // F027
		t.Errorf("message %q", message)
	}
	w.Found = false // F026
	h.put(w)
	h.await("joining to be held back", lost)
	h.stop()
	must(t, os.RemoveAll(filepath.Join(h.opts.Dir, "etcd")))
	h.start()
	if s := h.await("the loss to be remembered", lost); s.Process.Starts != starts {
		t.Errorf("etcd was started %d times, then %d", starts, s.Process.Starts)
	}
}

func TestFoundsForOneTokenOnly(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").prefetch(newest).start().enrol()
	w := h.wanted(newest)
	h.put(w)
	h.awaitServing()
	h.put(w) // the same once more is no second founding
	w.Token = "another"
	h.refused(w, protocol.CodeFounded)
	if s := h.seen(); s.Process.Starts != 1 || s.Wanted.Token == "another" {
		t.Errorf("seen: %+v", s)
	}
}

func TestRefusesAnotherMembersData(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").prefetch(newest).start().enrol()
	w := h.wanted(newest)
	h.put(w)
	s := h.awaitServing()
	w.MemberID, w.ClusterID = s.Data.MemberID, s.Data.ClusterID
	h.put(w)
	for _, id := range []*string{&w.MemberID, &w.ClusterID} {
		right := *id
		*id = "1234"
		h.refused(w, protocol.CodeWrongData)
		*id = right
	}
	if s := h.seen(); !s.Process.Running || s.Process.Starts != 1 {
		t.Errorf("seen: %+v", s)
	}
}

func TestDataOfNobodyKnownIsForeign(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	from := c.newHost(t, "m1").prefetch(newest).start().enrol()
	w := from.wanted(newest)
	from.put(w)
	from.awaitServing()
	w.Run = false
	from.put(w)
	from.awaitStopped()

	h := c.newHost(t, "m2").prefetch(newest).start().enrol()
	data := filepath.Join(h.opts.Dir, "etcd")
	must(t, os.CopyFS(data, os.DirFS(filepath.Join(from.opts.Dir, "etcd"))))
	h.put(h.wanted(newest))
	foreign := func(s protocol.Seen) bool { return s.Data.State == protocol.DataForeign && s.Refusal != "" }
	h.await("another machine's disk to be refused", foreign)
	// Half a restore, too (F080).
	must(t, os.RemoveAll(filepath.Join(data, "member", "wal")))
	s := h.await("half a data directory to be refused", func(s protocol.Seen) bool {
		return foreign(s) && strings.Contains(s.Data.Message, "without a write-ahead log")
	})
	if s.Process.Starts != 0 {
		t.Errorf("started %d times", s.Process.Starts)
	}
}
