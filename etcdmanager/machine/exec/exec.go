// Package exec makes machines through any program: it is run once per call,
// with a verb as its only argument, one JSON document on its standard input
// and one on its standard output. docs/actuators.md is the contract for those
// who write such programs.
//
// The package trusts the program with machines and not with its manners: time,
// output and what it may see of this process are bounded. It may import the
// contract it fulfils and nothing else of the project.
package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// Defaults of Options.
const (
	DefaultTimeout = time.Minute
	DefaultLimit   = 8
)

// Options of New.
type Options struct {
	// Name of the actuator, as in spec.machineTemplate.actuator.
	Name string
	// Command is the program and the arguments that come before the verb.
	Command []string
	// Env is added, as NAME=value, to the PATH, HOME and LANG of this process;
	// the program sees nothing else of its environment.
	Env []string
	// Dir the program runs in; by default that of this process.
	Dir string
	// Timeout of one call, 0 for DefaultTimeout. The program and all its
	// process group are killed then.
	Timeout time.Duration
	// Limit of calls at a time, 0 for DefaultLimit. Others wait.
	Limit int
	// Log gets the program's standard error, line by line. It may be nil.
	Log *slog.Logger
}

// Actuator is a machine.Actuator that asks a program.
type Actuator struct {
	name    string
	program string
	args    []string
	env     []string
	dir     string
	timeout time.Duration
	slots   chan struct{}
	log     *slog.Logger
}

var _ machine.Actuator = (*Actuator)(nil)

// New checks that there is such a program; it does not run it.
func New(o Options) (*Actuator, error) {
	if o.Name == "" || len(o.Command) == 0 {
		return nil, errors.New("an exec actuator needs a name and a command")
	}
	program, err := osexec.LookPath(o.Command[0])
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return nil, fmt.Errorf("actuator %s: %w", o.Name, err)
	}
	for _, setting := range o.Env {
		if name, _, ok := strings.Cut(setting, "="); !ok || name == "" {
			return nil, fmt.Errorf("actuator %s: an environment setting is not NAME=value", o.Name)
		}
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	if o.Timeout < 0 || o.Limit < 0 {
		return nil, fmt.Errorf("actuator %s: timeout and limit cannot be negative", o.Name)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Actuator{
		name: o.Name, program: program, args: o.Command[1:], env: environment(o.Env), dir: o.Dir,
		timeout: o.Timeout, slots: make(chan struct{}, o.Limit), log: o.Log.With("actuator", o.Name),
	}, nil
}

// environment leaves out whatever opens the management cluster or a cloud that
// the program was not given on purpose.
func environment(added []string) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, added...)
}

// Create runs the verb create. The bootstrap data goes through the pipe only.
func (a *Actuator) Create(ctx context.Context, m machine.Machine, bootstrap []byte) error {
	_, err := a.call(ctx, verbCreate, Request{APIVersion: APIVersion, Machine: m, Bootstrap: string(bootstrap)})
	if errors.Is(err, machine.ErrNotFound) {
		return fmt.Errorf("actuator %s answers create with NotFound, which means nothing there", a.name)
	}
	return err
}

// Observe runs the verb observe.
func (a *Actuator) Observe(ctx context.Context, m machine.Machine) (machine.Instance, error) {
	instance, err := a.call(ctx, verbObserve, Request{APIVersion: APIVersion, Machine: m})
	if err != nil {
		return machine.Instance{}, err
	}
	if instance == nil {
		return machine.Instance{}, fmt.Errorf("actuator %s answers observe without an instance", a.name)
	}
	return *instance, nil
}

// Update runs the verb update.
func (a *Actuator) Update(ctx context.Context, m machine.Machine) error {
	_, err := a.call(ctx, verbUpdate, Request{APIVersion: APIVersion, Machine: m})
	return err
}

// Delete runs the verb delete; the answer NotFound is as good as none.
func (a *Actuator) Delete(ctx context.Context, m machine.Machine) error {
	_, err := a.call(ctx, verbDelete, Request{APIVersion: APIVersion, Machine: m})
	if errors.Is(err, machine.ErrNotFound) {
		return nil
	}
	return err
}
