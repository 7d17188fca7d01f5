// Package ec2 is a driver.
package ec2

import (
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/capi" // want depguard
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/ec2/internal/wire"
)
