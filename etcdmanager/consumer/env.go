// Package consumer gives people and programs what they need to use a
// cluster's etcd: endpoints and certificates. It only reads.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
)

// EnvOptions of Env.
type EnvOptions struct {
	Name, Namespace string
	Dir             string // for the certificates; a default if empty
	Out             io.Writer
}

// Env writes a cluster's consumer certificates to a private folder and prints
// export lines for etcdctl. Nothing is printed unless all of it is there.
func Env(ctx context.Context, config clientcmd.ClientConfig, o EnvOptions) error {
	c, namespace, err := connect(config)
	if err != nil {
		return err
	}
	if o.Namespace == "" {
		o.Namespace = namespace
	}
	var cluster v1alpha1.EtcdCluster
	if err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, &cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no EtcdCluster %s in namespace %s", o.Name, o.Namespace)
		}
		return fmt.Errorf("read EtcdCluster %s: %w", o.Name, err)
	}
	if len(cluster.Status.Endpoints) == 0 {
		return fmt.Errorf("no member of %s answers yet (phase %q); 'kubectl describe etcdcluster %s' says why", o.Name, cluster.Status.Phase, o.Name)
	}
	if o.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("find a folder for the certificates; name one with --dir: %w", err)
		}
		o.Dir = filepath.Join(cache, "etcdmanager-client", string(cluster.UID))
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return fmt.Errorf("find --dir: %w", err)
	}
	if err := writeCertificates(ctx, c, o); err != nil {
		return err
	}
	var lines strings.Builder
	for _, each := range []struct{ name, value string }{
		{"ENDPOINTS", strings.Join(cluster.Status.Endpoints, ",")},
		{"CACERT", filepath.Join(o.Dir, "ca.crt")},
		{"CERT", filepath.Join(o.Dir, "tls.crt")},
		{"KEY", filepath.Join(o.Dir, "tls.key")},
	} {
		fmt.Fprintf(&lines, "export ETCDCTL_%s=%s\n", each.name, quote(each.value))
	}
	_, err = io.WriteString(o.Out, lines.String())
	return err
}

func connect(config clientcmd.ClientConfig) (client.Client, string, error) {
	rest, err := config.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("find the management API: %w", err)
	}
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("find the namespace: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, "", err
	}
	c, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("talk to the management API: %w", err)
	}
	return c, namespace, nil
}

func writeCertificates(ctx context.Context, c client.Client, o EnvOptions) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for the certificates: %w", err)
	}
	if err := os.Chmod(o.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the certificates private: %w", err)
	}
	for _, each := range []struct{ secret, key, file string }{
		{credentials.CASecret(o.Name), corev1.TLSCertKey, "ca.crt"},
		{credentials.ClientSecret(o.Name), corev1.TLSCertKey, "tls.crt"},
		{credentials.ClientSecret(o.Name), corev1.TLSPrivateKeyKey, "tls.key"},
	} {
		var secret corev1.Secret
		if err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: each.secret}, &secret); err != nil {
			return fmt.Errorf("read the Secret %s: %w", each.secret, err)
		}
		if err := replace(filepath.Join(o.Dir, each.file), secret.Data[each.key]); err != nil {
			return fmt.Errorf("write %s: %w", each.file, err)
		}
	}
	return nil
}

// replace writes a private file in one step, so that no reader sees half.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// quote makes one word of a text for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
