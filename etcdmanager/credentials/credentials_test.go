package credentials

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

func secretOf(t *testing.T, c client.Client, name string) corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// An authority that is there is used again; one that was lost after the
// founding is not made anew, for that would lock every member out.
func TestAuthoritiesAreMadeOnce(t *testing.T) {
	c, cluster := newClient(t), named("one")
	first := loadAndPublish(t, c, cluster)
	again, err := Load(t.Context(), c, cluster, true)
	if err != nil {
		t.Fatal(err)
	}
	if first.Peer.Fingerprint() != again.Peer.Fingerprint() {
		t.Error("the peer authority is another one the second time")
	}
	if first.Peer.Fingerprint() == first.Client.Fingerprint() || first.Agent.Fingerprint() == first.Client.Fingerprint() {
		t.Error("two authorities share a key")
	}
	lost := secretOf(t, c, "demo-etcd-peer-ca")
	if err := c.Delete(t.Context(), &lost); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), c, cluster, true); !errors.Is(err, ErrLost) {
		t.Errorf("a lost authority of a founded cluster: %v", err)
	}
	if _, err := Load(t.Context(), c, cluster, false); err != nil {
		t.Errorf("before the founding it is made anew: %v", err)
	}
}

// A consumer's certificate stays as long as two thirds of its life have not
// passed, and is renewed then.
func TestConsumerCertificateIsRenewed(t *testing.T) {
	c, cluster := newClient(t), named("one")
	a := loadAndPublish(t, c, cluster)
	before := secretOf(t, c, ClientSecret("demo"))
	for _, step := range []struct {
		after   time.Duration
		renewed bool
	}{{consumerLife / 2, false}, {consumerLife * 3 / 4, true}} {
		if err := Publish(t.Context(), c, cluster, a, time.Now().Add(step.after)); err != nil {
			t.Fatal(err)
		}
		now := secretOf(t, c, ClientSecret("demo"))
		if renewed := string(now.Data[corev1.TLSCertKey]) != string(before.Data[corev1.TLSCertKey]); renewed != step.renewed {
			t.Errorf("renewed after %s: %t, want %t", step.after, renewed, step.renewed)
		}
	}
	notAfter, err := pki.NotAfter(secretOf(t, c, ClientSecret("demo")).Data[corev1.TLSCertKey])
	if err != nil {
		t.Fatal(err)
	}
	if !notAfter.After(time.Now().Add(consumerLife)) {
		t.Errorf("the new certificate ends %s", notAfter)
	}
}
