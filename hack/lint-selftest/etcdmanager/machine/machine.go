// Package machine is the contract of drivers.
package machine

import _ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/exec" // want depguard
