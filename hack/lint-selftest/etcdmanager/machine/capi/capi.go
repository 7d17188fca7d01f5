// Package capi is a driver.
package capi

import (
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/capi/internal/wire"
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/ssh" // want depguard
)
