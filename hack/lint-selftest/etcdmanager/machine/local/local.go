// Package local is a driver.
package local

import (
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/capi" // want depguard
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/local/internal/wire"
)
