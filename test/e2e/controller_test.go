package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcdmanager/etcdmanager/etcdmanager/controllers"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// controllerEnv makes the test binary the product's controller, which kills
// itself at the moments that it is told.
const controllerEnv = "E2E_CONTROLLER"

type mortal struct {
	Kubeconfig, Namespace, Dir, Mirror, Program string
	// Died holds a line for each moment at which a controller died before.
	Died string
}

// startMortal starts a controller that dies by SIGKILL at the first moment, of
// those before and after each kind of step, at which none has died before.
func startMortal(t *testing.T, f *rig.Fleet, died string) *rig.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(mortal{f.API.Kubeconfig(), f.Namespace, f.Dir, f.Mirror, f.Program, died})
	if err != nil {
		t.Fatal(err)
	}
	return rig.StartProcess(t, "controller", []string{controllerEnv + "=" + string(config)}, self)
}

func runController() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := serveMortal(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveMortal(ctx context.Context) error {
	var m mortal
	if err := json.Unmarshal([]byte(os.Getenv(controllerEnv)), &m); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", m.Kubeconfig)
	if err != nil {
		return err
	}
	machines, err := local.New(local.Options{Dir: m.Dir, Executable: m.Program})
	if err != nil {
		return err
	}
	return controllers.Run(ctx, cfg, controllers.Options{
		Actuators: map[string]machine.Actuator{"local": machines}, ReleaseMirror: m.Mirror,
		MetricsAddress: "0", HealthAddress: "0", NoLeaderElection: true, Namespaces: []string{m.Namespace},
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), OnStep: m.dieAt,
	})
}

// dieAt kills the process if nobody has died at this moment before.
func (m mortal) dieAt(moment string, step plan.Step) {
	line := moment + " " + string(step.Kind)
	died, err := os.ReadFile(m.Died)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	for before := range strings.Lines(string(died)) {
		if strings.TrimSpace(before) == line {
			return
		}
	}
	file, err := os.OpenFile(m.Died, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	if _, err := fmt.Fprintln(file, line); err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, "dying", line, step)
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {} // SIGKILL is on its way
}
