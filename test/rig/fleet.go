package rig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
)

// Patience with a cluster that is to become Ready, on two busy cores.
const Patience = 5 * time.Minute

// Version of etcd that tests run unless they say otherwise.
const Version = "3.7.3"

// Fleet is a namespace of its own with local machines of its own, and a
// controller that looks after them.
type Fleet struct {
	t         testing.TB
	API       *Manager
	Namespace string
	Machines  *local.Actuator
	Dir       string // of the machines
	Mirror    string
	Program   string
}

// NewFleet makes an empty fleet. All its machines are removed at the end.
func NewFleet(t testing.TB) *Fleet {
	t.Helper()
	f := &Fleet{t: t, API: Management(t), Program: Program(t), Mirror: "file://" + filepath.Join(BinDir(t), "mirror")}
	f.Namespace = Namespace(t, f.API.Client)
	f.Dir = t.TempDir()
	var err error
	f.Machines, err = local.New(local.Options{Dir: f.Dir, Executable: f.Program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.clear)
	return f
}

func (f *Fleet) clear() {
	if f.t.Failed() {
		f.explain()
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	left, err := f.Machines.List(ctx)
	for _, m := range left {
		err = errors.Join(err, f.Machines.Delete(ctx, m))
	}
	if err != nil {
		f.t.Errorf("remove the machines: %v", err)
	}
}

// explain shows what is known when a test failed.
func (f *Fleet) explain() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var clusters v1alpha1.EtcdClusterList
	if err := f.API.List(ctx, &clusters, client.InNamespace(f.Namespace)); err != nil {
		f.t.Logf("list clusters: %v", err)
	}
	for _, c := range clusters.Items {
		f.t.Logf("cluster %s: phase %s, record %s", c.Name, c.Status.Phase, c.Annotations[v1alpha1.AnnotationRecord])
		for _, condition := range c.Status.Conditions {
			f.t.Logf("  %s=%s %s", condition.Type, condition.Status, condition.Message)
		}
		for _, m := range c.Status.Members {
			f.t.Logf("  member %+v", m)
		}
	}
	logs, _ := filepath.Glob(filepath.Join(f.Dir, "machines", "*", "*.log"))
	for _, log := range logs {
		f.t.Logf("%s:\n%s", log, Tail(log))
	}
}

// StartController starts the product's controller for this namespace.
func (f *Fleet) StartController(args ...string) *Process {
	f.t.Helper()
	return StartProcess(f.t, "controller", []string{"KUBECONFIG=" + f.API.Kubeconfig()}, f.Program, append([]string{
		"controller", "--namespace", f.Namespace, "--local-dir", f.Dir, "--release-mirror", f.Mirror,
		"--metrics-address", "0", "--health-address", "0", "--no-leader-election",
	}, args...)...)
}

// Apply creates a cluster of three that gives members up after ten seconds.
func (f *Fleet) Apply(name string, change ...func(*v1alpha1.EtcdCluster)) *v1alpha1.EtcdCluster {
	f.t.Helper()
	cluster := &v1alpha1.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name},
		Spec: v1alpha1.EtcdClusterSpec{
			Replicas: 3, Version: Version,
			MachineTemplate: v1alpha1.MachineTemplate{Actuator: "local"},
			Repair:          v1alpha1.Repair{DeadAfter: metav1.Duration{Duration: 10 * time.Second}},
		},
	}
	for _, c := range change {
		c(cluster)
	}
	if err := f.API.Create(f.t.Context(), cluster); err != nil {
		f.t.Fatal(err)
	}
	return cluster
}

// Get reads a cluster.
func (f *Fleet) Get(ctx context.Context, name string) (*v1alpha1.EtcdCluster, error) {
	cluster := &v1alpha1.EtcdCluster{}
	err := f.API.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, cluster)
	return cluster, err
}

// WaitReady waits until a cluster is Ready, with exactly as many machines and
// members as it wants, and none of those named.
func (f *Fleet) WaitReady(name string, without ...string) *v1alpha1.EtcdCluster {
	f.t.Helper()
	var cluster *v1alpha1.EtcdCluster
	Eventually(f.t, Patience, name+" to be Ready", func(ctx context.Context) error {
		var err error
		if cluster, err = f.Get(ctx, name); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(cluster.Status.Conditions, "Ready"); ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("phase %s, Ready %v", cluster.Status.Phase, ready)
		}
		machines, err := f.List(ctx, name)
		if err != nil {
			return err
		}
		want := int(cluster.Spec.Replicas)
		if len(machines) != want || len(cluster.Status.Members) != want || len(cluster.Status.Endpoints) != want {
			return fmt.Errorf("%d machines, %d members and %d endpoints for %d replicas", len(machines), len(cluster.Status.Members), len(cluster.Status.Endpoints), want)
		}
		for _, m := range machines {
			if slices.Contains(without, m.Name) {
				return fmt.Errorf("machine %s is still there", m.Name)
			}
		}
		return nil
	})
	return cluster
}

// List lists the machines of a cluster.
func (f *Fleet) List(ctx context.Context, name string) ([]v1alpha1.EtcdMachine, error) {
	var machines v1alpha1.EtcdMachineList
	err := f.API.List(ctx, &machines, client.InNamespace(f.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: name})
	return machines.Items, err
}

// Machine reads one machine.
func (f *Fleet) Machine(name string) *v1alpha1.EtcdMachine {
	f.t.Helper()
	m := &v1alpha1.EtcdMachine{}
	if err := f.API.Get(f.t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: name}, m); err != nil {
		f.t.Fatal(err)
	}
	return m
}

// Processes are the PIDs of a machine's agent and etcd; 0 where there is none.
func (f *Fleet) Processes(m *v1alpha1.EtcdMachine) (agent, etcd int) {
	f.t.Helper()
	agents, others, err := f.Machines.Processes(f.t.Context(), observe.MachineFor(nil, m))
	if err != nil {
		f.t.Fatal(err)
	}
	if len(agents) > 1 || len(others) > 1 {
		f.t.Fatalf("machine %s has agents %v and others %v", m.Name, agents, others)
	}
	if len(agents) == 1 {
		agent = agents[0]
	}
	if len(others) == 1 {
		etcd = others[0]
	}
	return agent, etcd
}

// Destroy kills a machine and removes it with its disk.
func (f *Fleet) Destroy(m *v1alpha1.EtcdMachine) {
	f.t.Helper()
	told := observe.MachineFor(nil, m)
	if err := errors.Join(f.Machines.Crash(f.t.Context(), told), f.Machines.Delete(f.t.Context(), told)); err != nil {
		f.t.Fatal(err)
	}
}

// Certs writes a cluster's consumer certificates as files.
func (f *Fleet) Certs(name string) Certs {
	f.t.Helper()
	dir := f.t.TempDir()
	certs := Certs{CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	for _, each := range []struct{ secret, key, file string }{
		{credentials.CASecret(name), corev1.TLSCertKey, certs.CA},
		{credentials.ClientSecret(name), corev1.TLSCertKey, certs.Cert},
		{credentials.ClientSecret(name), corev1.TLSPrivateKeyKey, certs.Key},
	} {
		var secret corev1.Secret
		if err := f.API.Get(f.t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: each.secret}, &secret); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(each.file, secret.Data[each.key], 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	return certs
}

// Etcd is a client of a cluster as a consumer has one.
func (f *Fleet) Etcd(cluster *v1alpha1.EtcdCluster) *clientv3.Client {
	f.t.Helper()
	certs := f.Certs(cluster.Name)
	pair, err := tls.LoadX509KeyPair(certs.Cert, certs.Key)
	if err != nil {
		f.t.Fatal(err)
	}
	ca, err := os.ReadFile(certs.CA)
	if err != nil {
		f.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: cluster.Status.Endpoints, Logger: zap.NewNop(),
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = etcd.Close() })
	return etcd
}
