package act

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
)

// A record that can't be read is no empty record: on an empty one a cluster
// would be founded a second time (F159).
func TestReadRecord(t *testing.T) {
	cluster := func(annotations map[string]string) *v1alpha1.EtcdCluster {
		return &v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	if got, err := ReadRecord(cluster(nil)); err != nil || got.Founded || got.Epoch != 0 {
		t.Errorf("without an annotation: %+v, %v", got, err)
	}
	got, err := ReadRecord(cluster(map[string]string{v1alpha1.AnnotationRecord: `{"epoch":7,"founded":true,"clusterID":"ab"}`}))
	if err != nil || got.Epoch != 7 || !got.Founded || got.ClusterID != "ab" {
		t.Errorf("read %+v, %v", got, err)
	}
	for _, broken := range []string{"", "{", "[]", `{"epoch":"x"}`} {
		_, err := ReadRecord(cluster(map[string]string{v1alpha1.AnnotationRecord: broken}))
		if err == nil || !strings.Contains(err.Error(), v1alpha1.AnnotationRecord) {
			t.Errorf("the annotation %q gives %v", broken, err)
		}
	}
}

func TestNumberOf(t *testing.T) {
	for name, want := range map[string]int64{"demo-0": 0, "a-b-12": 12, "demo": -1, "demo-x": -1, "": -1} {
		if got := numberOf(name); got != want {
			t.Errorf("the number of %q is %d, want %d", name, got, want)
		}
	}
}

// A lost record is made anew with a new token unless members that answer run
// under one.
func TestTokenInUse(t *testing.T) {
	silent := &observe.Machine{Seen: &protocol.Seen{Wanted: &protocol.Wanted{Run: true, Token: "theirs"}}}
	s := &Scene{View: &observe.View{Machines: map[string]*observe.Machine{"a": silent}}}
	first, err := s.tokenInUse()
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.tokenInUse()
	if err != nil {
		t.Fatal(err)
	}
	if first == second || len(first) != 32 || first == "theirs" {
		t.Errorf("tokens %q and %q", first, second)
	}
}
