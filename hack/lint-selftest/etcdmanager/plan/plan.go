// Package plan breaks every rule of the pure layer.
package plan

import (
	_ "cmp"
	_ "context" // want depguard
	_ "encoding/json"
	_ "fmt"
	_ "io"
	_ "io/fs"     // want depguard
	_ "log/slog"  // want depguard
	_ "math/rand" // want depguard
	_ "net"       // want depguard
	_ "net/http"  // want depguard
	_ "net/netip"
	_ "os"      // want depguard
	_ "os/exec" // want depguard
	_ "slices"
	_ "strings"
	"time"

	_ "github.com/etcdmanager/etcdmanager/api/v1alpha1"            // want depguard
	_ "github.com/etcdmanager/etcdmanager/bootstrap/agent"         // want depguard
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/act"         // want depguard
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/controllers" // want depguard
	_ "github.com/etcdmanager/etcdmanager/etcdmanager/observe"     // want depguard
	_ "go.etcd.io/etcd/client/v3/client"                           // want depguard
	_ "k8s.io/apimachinery/pkg/runtime"                            // want depguard
	_ "k8s.io/client-go/kubernetes"                                // want depguard
	_ "sigs.k8s.io/controller-runtime/pkg/client"                  // want depguard
)

func readsTheClock(at time.Time) time.Duration {
	_ = time.Now()                 // want forbidigo
	_ = time.Until(at)             // want forbidigo
	_ = time.NewTimer(time.Second) // want forbidigo
	<-time.After(time.Second)      // want forbidigo
	return time.Since(at)          // want forbidigo
}

func usesTimes(at, now time.Time) time.Duration { return now.Sub(at) }
