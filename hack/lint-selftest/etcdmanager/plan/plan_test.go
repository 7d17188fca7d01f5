package plan

import (
	"os"
	"testing"
	clock "time"
)

func TestPlan(t *testing.T) {
	_, _ = os.ReadFile("testdata")
	_ = clock.Now()           // want forbidigo
	clock.Sleep(clock.Second) // want forbidigo
}
