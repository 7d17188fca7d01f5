package chaos

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/etcdmanager/etcdmanager/test/rig"
)

var (
	rounds = flag.Int("rounds", 4, "rounds of faults")
	seed   = flag.Uint64("seed", 2790, "what the faults follow from")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if status, done := inNetwork(); done {
		os.Exit(status)
	}
	if partitions() {
		if err := setUpNetwork(); err != nil {
			fmt.Fprintln(os.Stderr, "set up a network:", err)
			os.Exit(1)
		}
	}
	os.Exit(rig.Main(m))
}
