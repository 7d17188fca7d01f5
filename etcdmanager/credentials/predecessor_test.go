package credentials

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
)

func named(uid types.UID) *v1alpha1.EtcdCluster {
	return &v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo", UID: uid}}
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).Build()
}

// loadAndPublish keeps a cluster's Secrets as the controller does.
func loadAndPublish(t *testing.T, c client.Client, cluster *v1alpha1.EtcdCluster) Authorities {
	t.Helper()
	a, err := Load(t.Context(), c, cluster, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), c, cluster, a, time.Now()); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestClusterMadeAnew has a cluster find the Secrets of one that had its name
// (F163): they are replaced, all of them, and nothing in them is trusted.
func TestClusterMadeAnew(t *testing.T) {
	c := newClient(t)
	before := loadAndPublish(t, c, named("first"))
	after := loadAndPublish(t, c, named("second"))
	for what, same := range map[string]bool{
		"client": before.Client.Fingerprint() == after.Client.Fingerprint(),
		"peer":   before.Peer.Fingerprint() == after.Peer.Fingerprint(),
		"agent":  before.Agent.Fingerprint() == after.Agent.Fingerprint(),
	} {
		if same {
			t.Errorf("the second cluster has the first one's %s authority", what)
		}
	}
	var secrets corev1.SecretList
	if err := c.List(t.Context(), &secrets); err != nil {
		t.Fatal(err)
	}
	if len(secrets.Items) != 5 {
		t.Errorf("there are %d Secrets, want 5", len(secrets.Items))
	}
	for _, s := range secrets.Items {
		owner := metav1.GetControllerOf(&s)
		if owner == nil || owner.UID != "second" || s.Labels[v1alpha1.LabelClusterUID] != "second" {
			t.Errorf("Secret %s has the owner %v and the labels %v", s.Name, owner, s.Labels)
		}
		if s.Name == CASecret("demo") && !bytes.Equal(s.Data[corev1.TLSCertKey], after.Client.CertPEM()) {
			t.Error("consumers are given the first cluster's authority")
		}
	}
	again := loadAndPublish(t, c, named("second"))
	if again.Client.Fingerprint() != after.Client.Fingerprint() {
		t.Error("a second look made a new authority")
	}
}

// TestSecretsThatStay are those that a founded cluster may still run on, and
// those that nobody of ours made.
func TestSecretsThatStay(t *testing.T) {
	c := newClient(t)
	before := loadAndPublish(t, c, named("first"))
	_, err := Load(t.Context(), c, named("second"), true)
	if err == nil || !strings.Contains(err.Error(), "belongs to another cluster") {
		t.Errorf("a founded cluster whose UID changed: %v, want a refusal", err)
	}
	same, err := Load(t.Context(), c, named("first"), true)
	if err != nil || same.Agent.Fingerprint() != before.Agent.Fingerprint() {
		t.Errorf("the authority was changed: %v", err)
	}

	c = newClient(t)
	somebodys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo-etcd-client-ca"}}
	if err := c.Create(t.Context(), somebodys); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), c, named("first"), false); err == nil || !strings.Contains(err.Error(), "belongs to another cluster") {
		t.Errorf("a Secret that somebody made: %v, want it left alone", err)
	}
}
