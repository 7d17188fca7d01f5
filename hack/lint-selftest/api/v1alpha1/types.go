// Package v1alpha1 must stay cheap to import.
package v1alpha1

import (
	_ "time"

	_ "github.com/etcdmanager/etcdmanager/bootstrap/agent"         // want depguard
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/controllers" // want depguard
	_ "k8s.io/apimachinery/pkg/runtime"
	_ "k8s.io/client-go/kubernetes"               // want depguard
	_ "sigs.k8s.io/controller-runtime/pkg/scheme" // want depguard
)
