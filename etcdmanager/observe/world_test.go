package observe

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func object(name string) *v1alpha1.EtcdMachine {
	return &v1alpha1.EtcdMachine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

func cluster() *v1alpha1.EtcdCluster {
	return &v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{Replicas: 3, Version: "3.7.3"}}
}

// A member that we can't reach is not silent as long as its agent or a peer
// gets answers, and is counted on only for its agent's word (F168, F169).
func TestOthersAreAsked(t *testing.T) {
	running := protocol.Process{Running: true}
	for _, c := range []struct {
		name            string
		own             *protocol.Seen
		other           *protocol.Seen
		serving, silent bool
	}{
		{"nobody sees it", nil, nil, false, true},
		{
			"its agent does",
			&protocol.Seen{Time: noon, Process: running, Probe: protocol.Probe{At: noon.Add(-time.Second), Serving: true}},
			nil, true, false,
		},
		{
			"its agent did, long ago",
			&protocol.Seen{Time: noon, Process: running, Probe: protocol.Probe{At: noon.Add(-time.Minute), Serving: true}},
			nil, false, true,
		},
		{
			"its agent's clock is wrong",
			&protocol.Seen{Time: noon.Add(5 * time.Hour), Process: running, Probe: protocol.Probe{At: noon.Add(5*time.Hour - time.Second), Serving: true}},
			nil, true, false,
		},
		{
			"a peer does", nil,
			&protocol.Seen{Time: noon, Peers: []protocol.Peering{{URL: PeerURL("127.9.9.1"), Serving: true, At: noon.Add(-time.Second)}}},
			false, false,
		},
		{
			"a peer did, long ago", nil,
			&protocol.Seen{Time: noon, Peers: []protocol.Peering{{URL: PeerURL("127.9.9.1"), Serving: true, At: noon.Add(-time.Minute)}}},
			false, true,
		},
		{
			"a peer does and its agent knows that etcd ended",
			&protocol.Seen{Time: noon},
			&protocol.Seen{Time: noon, Peers: []protocol.Peering{{URL: PeerURL("127.9.9.1"), Serving: true, At: noon.Add(-time.Second)}}},
			false, true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := New(nil, "", func() time.Time { return noon })
			m := &Machine{Object: object("a"), Address: "127.9.9.1", Seen: c.own}
			view := &View{Machines: map[string]*Machine{"a": m, "b": {Object: object("b"), Address: "127.9.9.2", Seen: c.other}}}
			got := o.planMachine(view, m, v1alpha1.ClusterRecord{}, protocol.Wanted{}, noon)
			if got.Serving != c.serving || !got.SilentSince.IsZero() != c.silent {
				t.Errorf("serving %t, silent since %s; want serving %t, silent %t", got.Serving, got.SilentSince, c.serving, c.silent)
			}
		})
	}
}

// What answers at a member's address for another cluster is not the member
// (F163).
func TestAnotherIncarnationDoesNotServe(t *testing.T) {
	o := New(nil, "", func() time.Time { return noon })
	m := &Machine{Object: object("a"), Address: "127.9.9.1", Seen: &protocol.Seen{
		Time: noon, Process: protocol.Process{Running: true},
		Probe: protocol.Probe{At: noon, Serving: true, MemberID: "1", ClusterID: "other"},
	}}
	view := &View{Machines: map[string]*Machine{"a": m}}
	if got := o.planMachine(view, m, v1alpha1.ClusterRecord{ClusterID: "ours"}, protocol.Wanted{}, noon); got.Serving {
		t.Error("another cluster's member counts as serving")
	}
}

func TestTwoMachinesAtOneAddress(t *testing.T) {
	v := &View{Machines: map[string]*Machine{
		"demo-10": {Object: object("demo-10"), Address: "127.9.9.1"},
		"demo-2":  {Object: object("demo-2"), Address: "127.9.9.1"},
		"demo-1":  {Object: object("demo-1"), Address: "127.9.9.1", Instance: machine.Instance{State: "Gone"}},
	}}
	v.refuseDuplicates()
	if v.Machines["demo-2"].AgentErr != nil {
		t.Errorf("the older of two is refused: %v", v.Machines["demo-2"].AgentErr)
	}
	if err := v.Machines["demo-10"].AgentErr; err == nil || err.Error() != "its address 127.9.9.1 is that of machine demo-2" {
		t.Errorf("the younger of two: %v", err)
	}
}

func TestOutdated(t *testing.T) {
	told := Template(cluster(), "file:///mirror")
	for name, change := range map[string]func(*v1alpha1.EtcdCluster){
		"version": func(c *v1alpha1.EtcdCluster) { c.Spec.Version = "3.6.16" },
		"mirror":  func(c *v1alpha1.EtcdCluster) { c.Spec.Release.Mirror = "file:///other" },
		"digest":  func(c *v1alpha1.EtcdCluster) { c.Spec.Release.SHA256 = map[string]string{"amd64": "00"} },
		"arg":     func(c *v1alpha1.EtcdCluster) { c.Spec.Etcd.ExtraArgs = map[string]string{"log-level": "debug"} },
		"heartbeat": func(c *v1alpha1.EtcdCluster) {
			c.Spec.Etcd.HeartbeatInterval = &metav1.Duration{Duration: time.Second}
		},
		"election": func(c *v1alpha1.EtcdCluster) {
			c.Spec.Etcd.ElectionTimeout = &metav1.Duration{Duration: 9 * time.Second}
		},
		"compaction": func(c *v1alpha1.EtcdCluster) {
			c.Spec.Etcd.AutoCompactionRetention = &metav1.Duration{Duration: time.Hour}
		},
		"quota": func(c *v1alpha1.EtcdCluster) { c.Spec.Etcd.QuotaBackendBytes.Set(1 << 30) },
	} {
		changed := cluster()
		change(changed)
		if !outdated(told, Template(changed, "file:///mirror")) {
			t.Errorf("a changed %s is not noticed", name)
		}
	}
	if outdated(told, Template(cluster(), "file:///mirror")) {
		t.Error("the same spec counts as changed")
	}
}

func TestInvalidSpecSaysWhy(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.EtcdClusterSpec){
		"":         func(*v1alpha1.EtcdClusterSpec) {},
		"3.9.0":    func(s *v1alpha1.EtcdClusterSpec) { s.Version = "3.9.0" },
		"no-flag":  func(s *v1alpha1.EtcdClusterSpec) { s.Etcd.ExtraArgs = map[string]string{"no-flag": "1"} },
		"data-dir": func(s *v1alpha1.EtcdClusterSpec) { s.Etcd.ExtraArgs = map[string]string{"data-dir": "/x"} },
	} {
		spec := cluster().Spec
		change(&spec)
		got := invalid(spec)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("the message %q does not name %q", got, want)
		}
	}
}

func TestMachinesAreOrderedByAge(t *testing.T) {
	names := []string{"demo-10", "demo-9", "demo-0"}
	slices.SortFunc(names, byNumber)
	if want := []string{"demo-0", "demo-9", "demo-10"}; !slices.Equal(names, want) {
		t.Errorf("ordered %v, want %v", names, want)
	}
}
