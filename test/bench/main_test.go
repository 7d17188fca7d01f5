// Package bench measures the product beside plain etcd, in one run and on real
// parts, so that ratios mean something on any machine: three etcd processes
// started by hand and an EtcdCluster of three, a killed leader here and a
// destroyed machine there. It holds benchmarks only; `make bench` runs them.
package bench

import (
	"flag"
	"os"
	"testing"

	"github.com/etcdmanager/etcdmanager/test/rig"
)

var (
	rounds = flag.Int("rounds", 5, "how often everything is measured")
	// limit is the product's promise: from apply to Ready in at most three
	// times as long as plain etcd takes.
	limit   = flag.Float64("limit", 3, "highest allowed ratio of apply to Ready to plain etcd")
	keepLog = flag.String("controller-log", "", "file to keep the controller's log in")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(rig.Main(m))
}
