package ssh_test

import (
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/capi" // want depguard
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/machine/ssh"
)
