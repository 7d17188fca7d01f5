// Package exec is a driver.
package exec

import (
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/capi" // want depguard
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/exec/internal/wire"
)
