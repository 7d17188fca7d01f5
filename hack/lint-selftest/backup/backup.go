// Package backup is a library.
package backup

import (
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/act" // want depguard
	_ "k8s.io/client-go/kubernetes"                        // want depguard
)
