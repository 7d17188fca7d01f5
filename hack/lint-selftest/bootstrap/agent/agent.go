// Package agent runs on machines.
package agent

import (
	"time"

	_ "github.com/etcdmanager/etcdmanager/bootstrap/release"
	_ "go.etcd.io/etcd/client/v3/client"
)

func now() time.Time { return time.Now() }
