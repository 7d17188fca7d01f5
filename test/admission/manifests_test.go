package admission

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/controllers"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

const (
	systemNamespace = "etcdmanager-system"
	serviceAccount  = "system:serviceaccount:" + systemNamespace + ":etcdmanager"
)

// kubectl runs it against the shared API and answers what it printed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	api := rig.Management(t)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Timeout)
	defer cancel()
	command := exec.CommandContext(ctx, rig.Kubectl(t), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+api.Kubeconfig(), "HOME="+t.TempDir())
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestSamplesAreAccepted(t *testing.T) {
	samples, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil || len(samples) == 0 {
		t.Fatalf("found %d samples: %v", len(samples), err)
	}
	for _, sample := range samples {
		out := kubectl(t, "create", "--dry-run=server", "--validate=strict", "-f", sample)
		if !strings.Contains(out, "created (server dry run)") {
			t.Errorf("%s: %s", sample, out)
		}
	}
}

// slow is an actuator whose machines are for ever about to come up, until they
// are deleted.
type slow struct {
	mu       sync.Mutex
	machines map[string]bool // by UID
	asked    int
}

func (s *slow) Create(_ context.Context, m machine.Machine, _ []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.machines[m.UID] {
		s.machines[m.UID] = true
		s.asked++
	}
	return nil
}

func (s *slow) Observe(_ context.Context, m machine.Machine) (machine.Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.machines[m.UID] {
		return machine.Instance{}, machine.ErrNotFound
	}
	return machine.Instance{ProviderID: "slow://" + m.UID, State: machine.Pending}, nil
}

func (s *slow) Update(context.Context, machine.Machine) error { return nil }

func (s *slow) Delete(_ context.Context, m machine.Machine) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.machines, m.UID)
	return nil
}

func (s *slow) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// TestRoleSuffices deploys config/manager and runs the controller as its
// service account: everything it does until machines are up, and the deletion,
// must be allowed to it.
func TestRoleSuffices(t *testing.T) {
	c, namespace := strict(t)
	kubectl(t, "apply", "--server-side", "--validate=strict", "-k", "../../config/manager", "--force-conflicts")

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	machines := &slow{machines: map[string]bool{}}
	go func() {
		done <- controllers.Run(ctx, asServiceAccount(t), controllers.Options{
			Actuators:      map[string]machine.Actuator{"slow": machines},
			MetricsAddress: "0", HealthAddress: "0",
			LeaderElectionNamespace: systemNamespace,
			Log:                     slog.New(slog.NewTextHandler(&logged, nil)),
		})
	}()
	if err := c.Create(ctx, manifest(t, namespace, "one", "machineTemplate: {actuator: slow}")); err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha1.EtcdCluster{}
	key := client.ObjectKey{Namespace: namespace, Name: "one"}
	rig.Eventually(t, rig.Timeout, "machines are asked for", func(ctx context.Context) error {
		if machines.count() < 3 {
			return errors.New("not all machines were asked for")
		}
		return errors.Join(
			c.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "etcdmanager"}, &coordinationv1.Lease{}),
			c.Get(ctx, key, cluster))
	})
	if err := c.Delete(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, rig.Timeout, "the cluster is gone", func(ctx context.Context) error {
		err := c.Get(ctx, key, cluster)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if text := logged.String(); strings.Contains(text, "forbidden") {
		t.Errorf("the controller was refused something:\n%s", text)
	}
}

// TestRoleIsNoWider names what a stolen token of the controller must not do.
func TestRoleIsNoWider(t *testing.T) {
	kubectl(t, "apply", "--server-side", "--validate=strict", "-k", "../../config/manager", "--force-conflicts")
	c := newClient(t, asServiceAccount(t))
	for _, may := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Resource: "secrets", Namespace: "default"},
		{Verb: "watch", Resource: "secrets", Namespace: "default"},
		{Verb: "delete", Resource: "secrets", Namespace: "default"},
		{Verb: "get", Resource: "pods", Namespace: "default"},
		{Verb: "create", Resource: "etcdclusters", Group: v1alpha1.GroupVersion.Group, Namespace: "default"},
		{Verb: "delete", Resource: "etcdclusters", Group: v1alpha1.GroupVersion.Group, Namespace: "default"},
		{Verb: "update", Resource: "leases", Group: coordinationv1.GroupName, Namespace: "kube-system"},
		{Verb: "create", Resource: "clusterrolebindings", Group: "rbac.authorization.k8s.io"},
		{Verb: "impersonate", Resource: "users"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &may},
		}
		if err := c.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed {
			t.Errorf("the controller may %s %s in %q", may.Verb, may.Resource, may.Namespace)
		}
	}
	// The same question about what it needs, or the answers above prove nothing.
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "none"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("get a Secret that is not there: %v, want not found", err)
	}
}

func asServiceAccount(t *testing.T) *rest.Config {
	t.Helper()
	cfg := rig.Management(t).Config()
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: serviceAccount,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + systemNamespace, "system:authenticated"},
	}
	return cfg
}

func newClient(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: rig.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
