package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	osexec "os/exec"
	"syscall"
	"time"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// drainTime is how long output may stay open after the program has ended, by
// something it started and did not cut loose.
const drainTime = 5 * time.Second

// errTooMuch ends a program that does not stop talking.
var errTooMuch = fmt.Errorf("more than %d bytes on standard output", outputLimit)

// call runs the program once and returns what it answered.
func (a *Actuator) call(ctx context.Context, verb string, request Request) (*machine.Instance, error) {
	instance, err := a.ask(ctx, verb, request)
	if err != nil {
		return nil, fmt.Errorf("actuator %s, %s machine %s: %w", a.name, verb, request.Machine.Name, err)
	}
	return instance, nil
}

func (a *Actuator) ask(ctx context.Context, verb string, request Request) (*machine.Instance, error) {
	if request.Machine.UID == "" {
		return nil, fmt.Errorf("the machine has no UID: %w", machine.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for one of %d calls to end: %w", cap(a.slots), ctx.Err())
	}
	input, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", errors.New("config is not JSON"))
	}
	secret := newSecret(request.Bootstrap)
	log := a.log.With("verb", verb, "machine", request.Machine.Name, "cluster", request.Machine.Cluster)
	output, err := a.run(ctx, verb, input, secret, log)
	var exit *osexec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	if exit != nil && !exit.Exited() {
		return nil, fmt.Errorf("the program was ended: %w", exit)
	}
	answer, wrong := parse(output)
	switch {
	case wrong != nil && exit != nil:
		return nil, fmt.Errorf("%w: %w", exit, wrong)
	case wrong != nil:
		return nil, wrong
	case answer.Error != nil:
		return nil, answer.Error.err(secret.clean)
	case exit != nil:
		return nil, fmt.Errorf("%w, though its answer says success", exit)
	}
	return withoutSecret(answer.Instance, secret), nil
}

func withoutSecret(instance *machine.Instance, s secret) *machine.Instance {
	if instance != nil {
		instance.Message = s.clean(instance.Message)
	}
	return instance
}

// run returns the program's standard output. The error is an *exec.ExitError
// only when the program ended by itself and in time.
func (a *Actuator) run(ctx context.Context, verb string, input []byte, s secret, log *slog.Logger) ([]byte, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, a.timeout, fmt.Errorf("no answer within %s", a.timeout))
	defer cancel()
	output := &bounded{full: func() { stop(errTooMuch) }}
	stderr := &lines{log: log, secret: s}

	cmd := osexec.CommandContext(ctx, a.program, append(append([]string{}, a.args...), verb)...) //nolint:gosec // the operator's own program
	cmd.Dir, cmd.Env = a.dir, a.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), output, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drainTime
	err := cmd.Run()
	stderr.flush()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the program was killed: %w", context.Cause(ctx))
	case errors.Is(err, osexec.ErrWaitDelay):
		return nil, errors.New("the program ended and left a process that holds its output: give what it starts a log file of its own")
	}
	return output.content.Bytes(), err
}
