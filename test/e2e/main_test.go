// Package e2e tests the product on real parts: a real kube-apiserver as the
// management API, the real controller and agents as processes, real etcd.
package e2e

import (
	"os"
	"testing"

	"github.com/etcdmanager/etcdmanager/test/rig"
)

func TestMain(m *testing.M) {
	if os.Getenv(controllerEnv) != "" {
		os.Exit(runController())
	}
	os.Exit(rig.Main(m))
}
