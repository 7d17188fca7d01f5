package credentials

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// consumerLife is how long a consumer's certificate is good for. It is
// renewed when a third is left.
const consumerLife = 365 * 24 * time.Hour

// CASecret names the Secret with the authority as kubeadm and Cluster API
// expect it.
func CASecret(cluster string) string { return cluster + "-etcd" }

// ClientSecret names the Secret with a client's certificate likewise.
func ClientSecret(cluster string) string { return cluster + "-apiserver-etcd-client" }

// Publish keeps the Secrets for consumers: the authority's certificate alone,
// and a client's certificate and key.
func Publish(ctx context.Context, c client.Client, cluster *v1alpha1.EtcdCluster, a Authorities, now time.Time) error {
	ca := map[string][]byte{corev1.TLSCertKey: a.Client.CertPEM()}
	if err := keep(ctx, c, cluster, CASecret(cluster.Name), ca, func(have map[string][]byte) bool {
		return bytes.Equal(have[corev1.TLSCertKey], ca[corev1.TLSCertKey]) && len(have) == 1
	}); err != nil {
		return err
	}
	certPEM, keyPEM, err := a.Client.IssuePair(pki.Leaf{Name: pki.ConsumerName(), Usage: pki.Client, Life: consumerLife}, now)
	if err != nil {
		return err
	}
	pair := map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM}
	return keep(ctx, c, cluster, ClientSecret(cluster.Name), pair, func(have map[string][]byte) bool {
		notAfter, err := pki.NotAfter(have[corev1.TLSCertKey])
		return err == nil && len(have[corev1.TLSPrivateKeyKey]) > 0 && notAfter.Sub(now) > consumerLife/3
	})
}

func keep(ctx context.Context, c client.Client, cluster *v1alpha1.EtcdCluster, name string, data map[string][]byte, good func(map[string][]byte) bool) error {
	secret := NewSecret(cluster, name)
	err := c.Get(ctx, client.ObjectKeyFromObject(&secret), &secret)
	switch {
	case apierrors.IsNotFound(err):
		secret.Data = data
		if err := c.Create(ctx, &secret); err != nil {
			return fmt.Errorf("create the Secret %s: %w", name, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("read the Secret %s: %w", name, err)
	case ofPredecessor(&secret, cluster):
		version := secret.ResourceVersion
		secret = NewSecret(cluster, name)
		secret.ResourceVersion = version
	case secret.Labels[v1alpha1.LabelClusterUID] != string(cluster.UID):
		return fmt.Errorf("the Secret %s exists and is not this cluster's; delete or rename it", name)
	case good(secret.Data):
		return nil
	}
	secret.Data = data
	if err := c.Update(ctx, &secret); err != nil {
		return fmt.Errorf("update the Secret %s: %w", name, err)
	}
	return nil
}
