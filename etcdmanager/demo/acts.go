package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/etcdmanager/management"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
)

// apply applies the cluster and waits for it.
func (d *demo) apply(ctx context.Context) error {
	cluster := &v1alpha1.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.EtcdClusterSpec{
			Replicas: 3, Version: d.Version,
			MachineTemplate: v1alpha1.MachineTemplate{Actuator: "local"},
			Repair:          v1alpha1.Repair{DeadAfter: metav1.Duration{Duration: 10 * time.Second}},
		},
	}
	if err := d.client.Create(ctx, cluster); err != nil {
		return fmt.Errorf("apply the cluster: %w", err)
	}
	applied := time.Now()
	ready, err := d.waitReady(ctx, "")
	if err != nil {
		return err
	}
	d.sum("apply to Ready", "%.1f s, %d members, leader %s", time.Since(applied).Seconds(), len(ready.Status.Members), ready.Status.Leader)
	return nil
}

// waitReady waits until the cluster is Ready without the machine named.
func (d *demo) waitReady(ctx context.Context, without string) (*v1alpha1.EtcdCluster, error) {
	var cluster *v1alpha1.EtcdCluster
	said := ""
	err := d.until(ctx, "the cluster to be Ready", func(ctx context.Context) (bool, error) {
		var err error
		if cluster, err = d.cluster(ctx); err != nil {
			return false, err
		}
		if c := meta.FindStatusCondition(cluster.Status.Conditions, "Progressing"); c != nil && c.Message != said {
			said = c.Message
			d.say("          %s", said)
		}
		for _, m := range cluster.Status.Members {
			if m.Machine == without {
				return false, nil
			}
		}
		return meta.IsStatusConditionTrue(cluster.Status.Conditions, "Ready"), nil
	})
	return cluster, err
}

// until asks again and again until it is so, the patience is over or the
// controller ended.
func (d *demo) until(ctx context.Context, what string, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ok, err := so(ctx)
		if ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(ctx.Err(), last))
		case err := <-d.controller:
			d.controller <- nil
			return fmt.Errorf("wait for %s: the controller ended: %w", what, err)
		case <-tick.C:
		}
	}
}

// serve runs a kube-apiserver on the new etcd and uses it.
func (d *demo) serve(ctx context.Context) error {
	cluster, err := d.cluster(ctx)
	if err != nil {
		return err
	}
	files, err := d.consumerFiles(ctx)
	if err != nil {
		return err
	}
	d.served, err = management.StartAPIServer(ctx, management.APIServerOptions{
		Dir: filepath.Join(d.Dir, "served"), Binary: filepath.Join(d.BinDir, "kube-apiserver"),
		Endpoints: cluster.Status.Endpoints, EtcdCA: files.ca, EtcdCert: files.cert, EtcdKey: files.key, Log: d.log,
	})
	if err != nil {
		return err
	}
	c, err := client.New(d.served.Config(), client.Options{})
	if err != nil {
		return fmt.Errorf("make a client of the served cluster: %w", err)
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello"},
		Data:       map[string]string{"from": "a kube-apiserver on a provisioned etcd"},
	}
	if err := c.Create(ctx, object); err != nil {
		return fmt.Errorf("create an object in the served cluster: %w", err)
	}
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.InNamespace("default")); err != nil {
		return fmt.Errorf("list objects in the served cluster: %w", err)
	}
	d.say("          it serves: created and listed ConfigMap %s", list.Items[0].Name)
	return nil
}

// files of a consumer.
type files struct{ ca, cert, key string }

// consumerFiles writes the Secrets for consumers as files.
func (d *demo) consumerFiles(ctx context.Context) (files, error) {
	dir := filepath.Join(d.Dir, "consumer")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return files{}, fmt.Errorf("make a folder for a consumer's certificates: %w", err)
	}
	written := files{filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	for _, each := range []struct{ secret, key, file string }{
		{credentials.CASecret(name), corev1.TLSCertKey, written.ca},
		{credentials.ClientSecret(name), corev1.TLSCertKey, written.cert},
		{credentials.ClientSecret(name), corev1.TLSPrivateKeyKey, written.key},
	} {
		var secret corev1.Secret
		if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: each.secret}, &secret); err != nil {
			return files{}, fmt.Errorf("read the Secret %s: %w", each.secret, err)
		}
		if err := os.WriteFile(each.file, secret.Data[each.key], 0o600); err != nil {
			return files{}, fmt.Errorf("write a consumer's certificates: %w", err)
		}
	}
	return written, nil
}

// destroy ends a machine as a fire would, and waits for its replacement.
func (d *demo) destroy(ctx context.Context) error {
	cluster, err := d.cluster(ctx)
	if err != nil {
		return err
	}
	written, err := d.consumerFiles(ctx)
	if err != nil {
		return err
	}
	w, err := startWriter(cluster.Status.Endpoints, written)
	if err != nil {
		return err
	}
	defer w.stop()
	victim := cluster.Status.Leader // the hardest to lose
	var object v1alpha1.EtcdMachine
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: victim}, &object); err != nil {
		return fmt.Errorf("read machine %s: %w", victim, err)
	}
	d.say("          killing %s, the leader, and destroying its disk", victim)
	if err := d.machines.Crash(ctx, observe.MachineFor(cluster, &object)); err != nil {
		return fmt.Errorf("kill machine %s: %w", victim, err)
	}
	lost := time.Now()
	if err := d.machines.Delete(ctx, observe.MachineFor(cluster, &object)); err != nil {
		return fmt.Errorf("destroy machine %s: %w", victim, err)
	}
	if _, err := d.waitReady(ctx, victim); err != nil {
		return err
	}
	d.sum("replacement, lost to Ready", "%.1f s", time.Since(lost).Seconds())
	count := w.stop()
	d.sum("writer", "%d attempts, %d failed, longest gap %.1f s", count.attempts, count.failures, count.gap.Seconds())
	return nil
}

func (d *demo) delete(ctx context.Context) error {
	d.served.Stop(ctx)
	d.served = nil
	cluster, err := d.cluster(ctx)
	if err != nil {
		return err
	}
	if err := d.client.Delete(ctx, cluster); err != nil {
		return fmt.Errorf("delete the cluster: %w", err)
	}
	return d.until(ctx, "the cluster and its machines to be gone", func(ctx context.Context) (bool, error) {
		_, err := d.cluster(ctx)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}
