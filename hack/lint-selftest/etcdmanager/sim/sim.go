// Package sim keeps its own time.
package sim

import "time"

func now() time.Time { return time.Now() } // want forbidigo
