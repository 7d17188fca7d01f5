// Package act may use clients and clocks.
package act

import (
	"time"

	_ "k8s.io/client-go/kubernetes"
	_ "sigs.k8s.io/controller-runtime/pkg/client"
)

func now() time.Time { return time.Now() }
