package management

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Back-off between starts of a child that keeps dying.
const (
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 15 * time.Second
	// steady is how long a child must have run for its next death to count
	// as the first.
	steady = time.Minute
)

// child keeps one process running until stop.
type child struct {
	name    string
	path    string
	args    []string
	logFile string
	pidFile string
	grace   time.Duration  // between SIGTERM and SIGKILL
	onDeath syscall.Signal // the kernel sends it when this process dies hard
	log     *slog.Logger

	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	process *os.Process // nil: none at the moment
	exits   int
	exit    error // the last
}

// start takes over from a leftover of an earlier run and begins. The context
// bounds taking over, not the life of the child.
func (c *child) start(ctx context.Context) error {
	if err := endLeftover(ctx, c.pidFile, c.grace); err != nil {
		return fmt.Errorf("end the %s of an earlier run: %w", c.name, err)
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel, c.done = cancel, make(chan struct{})
	go c.run(life)
	return nil
}

// stop ends the process and returns when it is gone. SIGKILL comes after the
// grace, or when ctx ends, so that it always is.
func (c *child) stop(ctx context.Context) {
	c.cancel()
	select {
	case <-c.done:
		return
	case <-ctx.Done():
	}
	c.mu.Lock()
	if c.process != nil {
		_ = c.process.Kill() // fails only when it is gone
	}
	c.mu.Unlock()
	<-c.done
}

func (c *child) run(ctx context.Context) {
	defer close(c.done)
	// The signal on the parent's death is tied to the thread that started
	// the child. Locked and never unlocked, the thread lives as long as this
	// goroutine, and so longer than any child.
	runtime.LockOSThread()
	backoff := firstBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := c.once(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) >= steady {
			backoff = firstBackoff
		}
		c.log.Warn("a process of the management API ended; starting it again",
			"process", c.name, "exit", err, "in", backoff, "log", c.logFile)
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
	}
	_ = os.Remove(c.pidFile)
}

// once runs the process until it ends or ctx does.
func (c *child) once(ctx context.Context) error {
	err := c.exec(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process, c.exit = nil, err
	c.exits++
	return err
}

func (c *child) exec(ctx context.Context) error {
	out, err := openLog(c.logFile)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the child has its own
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir = filepath.Dir(c.logFile)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no ETCD_… or proxy of the user's
	cmd.Stdout, cmd.Stderr = out, out
	// A group of its own: Ctrl-C in the terminal must not end etcd before
	// the kube-apiserver on it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: c.onDeath}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = c.grace
	if err := cmd.Start(); err != nil {
		return err
	}
	c.mu.Lock()
	c.process = cmd.Process
	c.mu.Unlock()
	remembered := remember(c.pidFile, cmd.Process.Pid)
	if errors.Is(remembered, os.ErrNotExist) {
		remembered = nil // it is gone already; Wait says why
	}
	return errors.Join(cmd.Wait(), remembered)
}

// PID of the process; 0 while there is none.
func (c *child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.Pid
}

// ended says how often the process ended, and how the last time.
func (c *child) ended() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exits, c.exit
}
