package chaos

import (
	"flag"
	"os"
	"testing"

	"github.com/etcdmanager/etcdmanager/test/rig"
)

var (
	rounds = flag.Int("rounds", 4, "rounds of faults")
	seed   = flag.Uint64("seed", 13, "what the faults follow from")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(rig.Main(m))
}
