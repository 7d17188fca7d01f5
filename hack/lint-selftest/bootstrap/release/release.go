// Package release must not know Kubernetes, nor what decides.
package release

import (
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/act" // want depguard
	_ "k8s.io/apimachinery/pkg/runtime"                    // want depguard
	_ "k8s.io/client-go/kubernetes"                        // want depguard
	_ "sigs.k8s.io/controller-runtime/pkg/client"          // want depguard
)
