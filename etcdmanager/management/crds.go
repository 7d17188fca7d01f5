package management

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/config"
)

// InstallCRDs creates or updates the definitions of our kinds and waits until
// the API serves them.
func InstallCRDs(ctx context.Context, cfg *rest.Config) error {
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	crds, err := config.CRDs()
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := applyCRD(ctx, c, crd); err != nil {
			return fmt.Errorf("install CRD %s: %w", crd.Name, err)
		}
	}
	for _, crd := range crds {
		if err := waitServed(ctx, c, cfg, crd); err != nil {
			return fmt.Errorf("wait for CRD %s to be served: %w", crd.Name, err)
		}
	}
	return nil
}

func newClient(cfg *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	return c, nil
}

func applyCRD(ctx context.Context, c client.Client, wanted *apiextensionsv1.CustomResourceDefinition) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKeyFromObject(wanted), found)
		if apierrors.IsNotFound(err) {
			return c.Create(ctx, wanted.DeepCopy())
		}
		if err != nil {
			return err
		}
		found.Spec = wanted.Spec
		found.Annotations = wanted.Annotations
		return c.Update(ctx, found)
	})
}

// waitServed waits for the condition and then for discovery, which follows it.
func waitServed(ctx context.Context, c client.Client, cfg *rest.Config, crd *apiextensionsv1.CustomResourceDefinition) error {
	discover, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	groupVersion := crd.Spec.Group + "/" + crd.Spec.Versions[0].Name
	return poll(ctx, func(ctx context.Context) (bool, error) {
		found := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), found); err != nil || !established(found) {
			return false, err
		}
		list, err := discover.ServerResourcesForGroupVersion(groupVersion)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, resource := range list.APIResources {
			if resource.Name == crd.Spec.Names.Plural {
				return true, nil
			}
		}
		return false, nil
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// waitDefaultNamespace waits for the namespace that the server makes for
// itself shortly after it says that it is ready.
func (s *APIServer) waitDefaultNamespace(ctx context.Context) error {
	c, err := newClient(s.Config())
	if err != nil {
		return err
	}
	err = poll(ctx, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: corev1.NamespaceDefault}, &corev1.Namespace{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return s.child.failed(fmt.Errorf("wait for the default namespace: %w", err))
	}
	return nil
}

func poll(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, condition)
}
