package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// send signals processes. One that is gone needs none.
func send(pids []int, signal unix.Signal) error {
	var all error
	for _, pid := range pids {
		if pid == 0 {
			continue // being started again
		}
		if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			all = errors.Join(all, fmt.Errorf("send %s to process %d: %w", signal, pid, err))
		}
	}
	return all
}

// freeze stops processes and wakes them after a while, those very ones: a
// number may have passed on to another process meanwhile.
func freeze(ctx context.Context, pids []int, lasts time.Duration) error {
	var frozen []int
	var all error
	for _, pid := range pids {
		if pid == 0 {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open process %d: %w", pid, err)
		}
		defer func() { _ = unix.Close(fd) }()
		frozen = append(frozen, fd)
	}
	all = signalAll(frozen, unix.SIGSTOP)
	all = errors.Join(all, pause(ctx, lasts))
	return errors.Join(all, signalAll(frozen, unix.SIGCONT))
}

func signalAll(fds []int, signal unix.Signal) error {
	var all error
	for _, fd := range fds {
		if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			all = errors.Join(all, fmt.Errorf("send %s: %w", signal, err))
		}
	}
	return all
}

// pause lets time pass, which is part of a fault.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
