// Package config carries the manifests that the binary itself needs: the
// definitions of its kinds, as generated from api/. Everything else in this
// folder is for kustomize.
package config

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed crd/*.yaml
var manifests embed.FS

// CRDs are the definitions of every kind in api/, ordered by name. Each call
// makes new objects.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := fs.Glob(manifests, "crd/etcdmanager.io_*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the embedded CRDs: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(paths))
	for _, path := range paths {
		raw, err := manifests.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the embedded %s: %w", path, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return nil, fmt.Errorf("read the embedded %s: %w", path, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}
