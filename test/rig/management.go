package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/management"
)

// Manager is a running management API and a client of it that knows our kinds.
type Manager struct {
	*management.API
	client.Client
}

// shared is the API of a package whose TestMain calls Main.
var shared struct {
	mu      sync.Mutex
	enabled bool
	dir     string
	manager *Manager
}

// Main runs a package's tests with one management API for them all, which the
// first call of Management starts. It belongs into TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }
func Main(m *testing.M) int {
	shared.enabled = true
	status := m.Run()
	if shared.manager == nil {
		return status
	}
	err := errors.Join(shared.manager.Stop(context.Background()), os.RemoveAll(shared.dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, "stop the shared management API:", err)
		return 1
	}
	return status
}

// Management is the package's management API, or one for this test alone when
// TestMain does not call Main.
func Management(t testing.TB) *Manager {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.enabled {
		manager := startManager(t, t.TempDir())
		t.Cleanup(func() {
			if err := manager.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return manager
	}
	if shared.manager == nil {
		dir, err := os.MkdirTemp("", "etcdmanager-test-")
		if err != nil {
			t.Fatal(err)
		}
		shared.dir = dir
		shared.manager = startManager(t, dir)
	}
	return shared.manager
}

func startManager(t testing.TB, dir string) *Manager {
	t.Helper()
	api, err := management.Start(t.Context(), management.Options{
		Dir: dir, BinDir: BinDir(t), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(api.Config(), client.Options{Scheme: Scheme(t)})
	if err != nil {
		t.Fatal(errors.Join(err, api.Stop(context.Background())))
	}
	return &Manager{API: api, Client: c}
}

// Scheme knows Kubernetes' kinds, CRDs and ours.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// Namespace makes a namespace for one test. It stays: without a namespace
// controller none can go.
func Namespace(t testing.TB, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// Certs are files that a client of etcd needs.
type Certs struct{ CA, Cert, Key string }

// KubeAPIServer runs a kube-apiserver on an etcd, as its consumer, until the
// test ends.
func KubeAPIServer(t testing.TB, endpoints []string, certs Certs) *management.APIServer {
	t.Helper()
	binaries, err := management.FindBinaries(BinDir(t))
	if err != nil {
		t.Fatal(err)
	}
	server, err := management.StartAPIServer(t.Context(), management.APIServerOptions{
		Dir: t.TempDir(), Binary: binaries.KubeAPIServer, Endpoints: endpoints,
		EtcdCA: certs.CA, EtcdCert: certs.Cert, EtcdKey: certs.Key,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatalf("run a kube-apiserver on %s: %v", strings.Join(endpoints, ","), err)
	}
	t.Cleanup(func() { server.Stop(context.Background()) })
	return server
}
