package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// TestKubernetesOnTheCluster runs a real kube-apiserver on a provisioned etcd,
// with nothing but what consumers are given.
func TestKubernetesOnTheCluster(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	f.Apply("served")
	cluster := f.WaitReady("served")

	server := rig.KubeAPIServer(t, cluster.Status.Endpoints, f.Certs("served"))
	c, err := client.NewWithWatch(server.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	watched, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: map[string]string{"a": "b"}}
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMapList
	if err := c.List(t.Context(), &list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.Items, func(m corev1.ConfigMap) bool { return m.Name == "one" && m.Data["a"] == "b" }) {
		t.Errorf("the list lacks the object that was created: %v", list.Items)
	}
	if err := c.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
		t.Errorf("read the object that was deleted: %v", err)
	}
	seen := map[watch.EventType]bool{}
	for !seen[watch.Added] || !seen[watch.Deleted] {
		select {
		case e := <-watched.ResultChan():
			if m, ok := e.Object.(*corev1.ConfigMap); ok && m.Name == "one" {
				seen[e.Type] = true
			}
		case <-t.Context().Done():
			t.Fatal("the test ended first")
		}
	}
	kubernetesIsInEtcd(t, f, server.Config().Host)
	consumerSecrets(t, f)
	clientEnv(t, f)
}

// kubernetesIsInEtcd shows that the objects are where they are said to be.
func kubernetesIsInEtcd(t *testing.T, f *rig.Fleet, host string) {
	t.Helper()
	cluster, err := f.Get(t.Context(), "served")
	if err != nil {
		t.Fatal(err)
	}
	read, err := f.Etcd(cluster).Get(t.Context(), "/registry/namespaces/default")
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Kvs) != 1 {
		t.Errorf("the etcd that %s was put on holds %d default namespaces", host, len(read.Kvs))
	}
}

// consumerSecrets are named and filled as kubeadm and Cluster API expect, and
// the one with the authority does not hold its key.
func consumerSecrets(t *testing.T, f *rig.Fleet) {
	t.Helper()
	for name, want := range map[string][]string{
		credentials.CASecret("served"):     {"tls.crt"},
		credentials.ClientSecret("served"): {"tls.crt", "tls.key"},
	} {
		var secret corev1.Secret
		if err := f.API.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: name}, &secret); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for key := range secret.Data {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if !slices.Equal(keys, want) {
			t.Errorf("Secret %s holds %v, want %v", name, keys, want)
		}
	}
}

// clientEnv runs what the help text tells people to run.
func clientEnv(t *testing.T, f *rig.Fleet) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf(`set -eu; env="$(%s client-env served -n %s --dir %s/private)"; eval "$env"; %s endpoint health`,
		f.Program, f.Namespace, dir, rig.Etcd(t, rig.Version, "etcdctl"))
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.API.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "is healthy") != 3 {
		t.Errorf("client-env and etcdctl endpoint health: %v\n%s", err, out)
	}
	folder, err := os.Stat(dir + "/private")
	if err != nil {
		t.Fatal(err)
	}
	if folder.Mode().Perm() != 0o700 {
		t.Errorf("the folder with the key has mode %o", folder.Mode().Perm())
	}
}

// TestSideBySide runs two clusters in one namespace and the same name in
// another, and deletes them one by one.
func TestSideBySide(t *testing.T) {
	f, g := rig.NewFleet(t), rig.NewFleet(t)
	f.StartController()
	g.StartController()
	f.Apply("main", single)
	f.Apply("events", single)
	g.Apply("main", single)
	ids := map[string]bool{}
	for _, each := range []struct {
		f    *rig.Fleet
		name string
	}{{f, "main"}, {f, "events"}, {g, "main"}} {
		cluster := each.f.WaitReady(each.name)
		if _, err := each.f.Etcd(cluster).Put(t.Context(), "who", each.f.Namespace+each.name); err != nil {
			t.Fatal(err)
		}
		ids[cluster.Status.Members[0].ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("three clusters have %d different members", len(ids))
	}
	// One goes, the others stay as they are.
	cluster, err := f.Get(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.API.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	waitGone(t, f, "main")
	for _, each := range []struct {
		f    *rig.Fleet
		name string
	}{{f, "events"}, {g, "main"}} {
		read, err := each.f.Etcd(each.f.WaitReady(each.name)).Get(t.Context(), "who")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(read.Kvs[0].Value); got != each.f.Namespace+each.name {
			t.Errorf("cluster %s of %s holds the key of %q", each.name, each.f.Namespace, got)
		}
	}
}

func waitGone(t *testing.T, f *rig.Fleet, name string) {
	t.Helper()
	rig.Eventually(t, rig.Patience, name+" and its machines to be gone", func(ctx context.Context) error {
		if _, err := f.Get(ctx, name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the cluster is there: %w", err)
		}
		machines, err := f.List(ctx, name)
		if err != nil {
			return err
		}
		if len(machines) > 0 {
			return fmt.Errorf("%d machines are there", len(machines))
		}
		return nil
	})
}
