// Package stories tests on real processes what happens to a cluster's
// membership when machines, disks, agents and controllers are lost, also
// several at once, while clients write. A witness watches each cluster and
// holds every version of its object against what a status may say.
package stories

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/etcdmanager/etcdmanager/test/rig"
)

func TestMain(m *testing.M) {
	if os.Getenv(controllerEnv) != "" {
		os.Exit(runController())
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(rig.Main(m))
}
