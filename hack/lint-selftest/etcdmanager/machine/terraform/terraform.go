// Package terraform is a driver.
package terraform

import (
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/capi" // want depguard
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/terraform/internal/wire"
)
