// Package credentials keeps a cluster's three authorities in Secrets of the
// management cluster and issues the controller's own short-lived identities
// from them. Authorities' keys go nowhere else.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// Authorities of one cluster: clients can't join as peers, and neither can
// command agents.
type Authorities struct {
	Client *pki.Authority // etcd's client port: server and client certificates
	Peer   *pki.Authority // etcd's peer port
	Agent  *pki.Authority // agents and the controller that commands them
}

// ErrLost says that an authority of a founded cluster is not there any more.
// A new one would lock everybody out, so none is made.
var ErrLost = errors.New("the Secret of an authority is gone")

// Load reads a cluster's authorities. Before the cluster is founded those that
// are missing are made.
func Load(ctx context.Context, c client.Client, cluster *v1alpha1.EtcdCluster, founded bool) (Authorities, error) {
	var a Authorities
	for _, each := range []struct {
		suffix string
		into   **pki.Authority
	}{{"client-ca", &a.Client}, {"peer-ca", &a.Peer}, {"agent-ca", &a.Agent}} {
		authority, err := load(ctx, c, cluster, each.suffix, founded)
		if err != nil {
			return Authorities{}, err
		}
		*each.into = authority
	}
	return a, nil
}

func load(ctx context.Context, c client.Client, cluster *v1alpha1.EtcdCluster, suffix string, founded bool) (*pki.Authority, error) {
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-etcd-" + suffix}
	var secret corev1.Secret
	err := c.Get(ctx, key, &secret)
	stale := err == nil && ofPredecessor(&secret, cluster) && !founded
	if err == nil && !stale {
		if owner := secret.Labels[v1alpha1.LabelClusterUID]; owner != string(cluster.UID) {
			return nil, fmt.Errorf("the Secret %s belongs to another cluster (UID %q)", key.Name, owner)
		}
		authority, err := pki.ParseAuthority(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			return nil, fmt.Errorf("read the authority in Secret %s: %w", key.Name, err)
		}
		return authority, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the Secret %s: %w", key.Name, err)
	}
	if founded {
		return nil, fmt.Errorf("read the Secret %s: %w", key.Name, ErrLost)
	}
	authority, err := pki.NewAuthority(cluster.Name+"-etcd-"+suffix, time.Now())
	if err != nil {
		return nil, err
	}
	keyPEM, err := authority.KeyPEM()
	if err != nil {
		return nil, err
	}
	made := NewSecret(cluster, key.Name)
	made.Type = corev1.SecretTypeTLS
	made.Data = map[string][]byte{corev1.TLSCertKey: authority.CertPEM(), corev1.TLSPrivateKeyKey: keyPEM}
	if stale {
		made.ResourceVersion = secret.ResourceVersion
		err = c.Update(ctx, &made)
	} else {
		err = c.Create(ctx, &made)
	}
	if err != nil {
		return nil, fmt.Errorf("store the authority in Secret %s: %w", key.Name, err)
	}
	return authority, nil
}

// ofPredecessor says that a Secret is what a deleted cluster of the same name
// left, to be collected by Kubernetes some time or, where nothing collects,
// never: there is one object of a name, so its owner is gone (F163).
func ofPredecessor(secret *corev1.Secret, cluster *v1alpha1.EtcdCluster) bool {
	owner := metav1.GetControllerOf(secret)
	return owner != nil && owner.APIVersion == v1alpha1.GroupVersion.String() && owner.Kind == "EtcdCluster" &&
		owner.Name == cluster.Name && owner.UID != cluster.UID &&
		secret.Labels[v1alpha1.LabelClusterUID] == string(owner.UID)
}

// NewSecret is an empty Secret that goes with the cluster.
func NewSecret(cluster *v1alpha1.EtcdCluster, name string) corev1.Secret {
	return corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.Namespace, Name: name,
		Labels: map[string]string{
			v1alpha1.LabelCluster:    cluster.Name,
			v1alpha1.LabelClusterUID: string(cluster.UID),
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("EtcdCluster"))},
	}}
}
