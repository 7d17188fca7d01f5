// Package ssh is a driver.
package ssh

import (
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/ssh/internal/wire"
)
