package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcdmanager/etcdmanager/etcdmanager/controllers"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// controllerEnv makes the test binary the product's controller, with
// something between it and everything that it changes.
const controllerEnv = "STORIES_CONTROLLER"

// tapped is a controller that dies by SIGKILL, or loses the answer, right
// after each side effect that none has had before.
type tapped struct {
	Kubeconfig, Namespace, Dir, Mirror, Program string
	// Effects is a file with a line for each side effect so far.
	Effects string
	Dies    bool // else the answer is lost
}

func startTapped(t *testing.T, f *rig.Fleet, effects string, dies bool) *rig.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(tapped{f.API.Kubeconfig(), f.Namespace, f.Dir, f.Mirror, f.Program, effects, dies})
	if err != nil {
		t.Fatal(err)
	}
	return rig.StartProcess(t, "controller", []string{controllerEnv + "=" + string(config)}, self)
}

func runController() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serveTapped(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveTapped(ctx context.Context) error {
	var c tapped
	if err := json.Unmarshal([]byte(os.Getenv(controllerEnv)), &c); err != nil {
		return err
	}
	e := &effects{file: c.Effects, dies: c.Dies}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	cfg.Wrap((&apiTap{effects: e}).wrap)
	machines, err := local.New(local.Options{Dir: c.Dir, Executable: c.Program})
	if err != nil {
		return err
	}
	return controllers.Run(ctx, cfg, controllers.Options{
		Actuators:     map[string]machine.Actuator{"local": actuatorTap{machines, e}},
		ReleaseMirror: c.Mirror, MetricsAddress: "0", HealthAddress: "0", NoLeaderElection: true,
		Namespaces: []string{c.Namespace}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Taps: observe.Taps{Agents: e.agents, Etcd: e.etcd},
	})
}

// effects are the side effects that were had, over all lives of a controller.
type effects struct {
	file string
	dies bool
	mu   sync.Mutex // held during each side effect, so that none hides behind another
}

// errLost looks to the caller like a deadline that passed.
var errLost = status.Error(codes.DeadlineExceeded, "the answer was lost on purpose")

// had is called when a side effect was answered with success, before anyone
// else sees the answer. If there was none like it before, this controller
// dies, or the answer is lost: then it returns errLost. The caller holds mu.
func (e *effects) had(effect string) error {
	before, err := os.ReadFile(e.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	for line := range strings.Lines(string(before)) {
		if strings.TrimSuffix(line, "\n") == effect {
			return nil
		}
	}
	file, err := os.OpenFile(e.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	if _, err := fmt.Fprintln(file, effect); err != nil {
		panic(err)
	}
	_ = file.Close() // or with the process
	fmt.Fprintln(os.Stderr, "after", effect)
	if !e.dies {
		return errLost
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // SIGKILL is on its way
}

// actuatorTap taps what an actuator does to machines.
type actuatorTap struct {
	machine.Actuator
	effects *effects
}

func (a actuatorTap) Create(ctx context.Context, m machine.Machine, data []byte) error {
	a.effects.mu.Lock()
	defer a.effects.mu.Unlock()
	if err := a.Actuator.Create(ctx, m, data); err != nil {
		return err
	}
	return a.effects.had("actuator: create " + m.Name)
}

func (a actuatorTap) Delete(ctx context.Context, m machine.Machine) error {
	a.effects.mu.Lock()
	defer a.effects.mu.Unlock()
	if err := a.Actuator.Delete(ctx, m); err != nil {
		return err
	}
	return a.effects.had("actuator: delete " + m.Name)
}
