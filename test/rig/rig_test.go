package rig

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// TestKubeAPIServerOnAnotherEtcd runs one on an etcd that the management API
// knows nothing of.
func TestKubeAPIServerOnAnotherEtcd(t *testing.T) {
	endpoint, certs := plainEtcd(t)
	server := KubeAPIServer(t, []string{endpoint}, certs)
	c, err := client.New(server.Config(), client.Options{Scheme: Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace(t, c), Name: "kept"}}
	if err := c.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	// What it stored is in that etcd and nowhere else.
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, Etcd(t, "3.7.3", "etcdctl"), "--endpoints="+endpoint,
		"--cacert="+certs.CA, "--cert="+certs.Cert, "--key="+certs.Key,
		"get", "--keys-only", "/registry/configmaps/"+kept.Namespace+"/kept").CombinedOutput()
	if want := "/registry/configmaps/" + kept.Namespace + "/kept\n\n"; err != nil || string(out) != want {
		t.Errorf("etcdctl get: %q, %v; want %q", out, err, want)
	}
}

// plainEtcd runs one member, started by hand, until the test ends.
func plainEtcd(t *testing.T) (endpoint string, certs Certs) {
	t.Helper()
	address, dir := FreeLoopback(t), t.TempDir()
	authority, err := pki.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.IssuePair(pki.Leaf{
		Name: "test", IPs: []net.IP{net.ParseIP(address)}, Usage: pki.Peer, Life: time.Hour,
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certs = Certs{CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	for path, content := range map[string][]byte{certs.CA: authority.CertPEM(), certs.Cert: cert, certs.Key: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	endpoint, peer := "https://"+address+":2379", "http://"+address+":2380"
	etcd := exec.Command(Etcd(t, "3.7.3", "etcd"), "--name=test", "--data-dir="+filepath.Join(dir, "data"),
		"--listen-client-urls="+endpoint, "--advertise-client-urls="+endpoint,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=test="+peer,
		"--client-cert-auth", "--trusted-ca-file="+certs.CA, "--cert-file="+certs.Cert, "--key-file="+certs.Key)
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = etcd.Process.Signal(syscall.SIGTERM)
		_ = etcd.Wait() // it ends by the signal
	})
	return endpoint, certs
}
