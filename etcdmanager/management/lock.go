package management

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const lockName = "lock"

// Lock is the right to use a folder. The kernel takes it back when its holder
// dies, however it dies.
type Lock struct{ file *os.File }

// InUseError says that another process uses the folder.
type InUseError struct {
	Dir    string
	holder process
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by another etcdmanager (process %d): stop that one first, or name another folder", e.Dir, e.holder.PID)
}

// Acquire takes the lock of a folder that is there, or answers an *InUseError.
func Acquire(dir string) (*Lock, error) {
	path := filepath.Join(dir, lockName)
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			holder, _ := recall(path)
			return nil, errors.Join(&InUseError{Dir: dir, holder: holder}, file.Close())
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
		}
		if current(file, path) {
			return &Lock{file: file}, sign(file)
		}
		// Its holder removed the folder just before; look again.
		if err := file.Close(); err != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
	}
}

// current says whether path still leads to the file that was locked.
func current(file *os.File, path string) bool {
	locked, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}

// sign writes the holder into the lock, for whoever finds it taken.
func sign(file *os.File) error {
	holder, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	raw, err := json.Marshal(holder)
	if err != nil {
		return fmt.Errorf("sign the lock: %w", err)
	}
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("sign the lock: %w", err)
	}
	if _, err := file.WriteAt(raw, 0); err != nil {
		return fmt.Errorf("sign the lock: %w", err)
	}
	return nil
}

// holderGrace is how long a holder may take to stop its API and controller.
const holderGrace = time.Minute

// TakeOver takes the lock of a folder, ending the process that holds it if
// there is one: SIGTERM first. It tells the number of that process before.
func TakeOver(ctx context.Context, dir string, tell func(pid int)) (*Lock, error) {
	for {
		lock, err := Acquire(dir)
		var used *InUseError
		if !errors.As(err, &used) {
			return lock, err
		}
		if used.holder.PID == 0 || used.holder.PID == os.Getpid() {
			return nil, err
		}
		tell(used.holder.PID)
		if err := used.holder.end(ctx, holderGrace); err != nil {
			return nil, fmt.Errorf("take over %s: %w", dir, err)
		}
	}
}

// Release gives the lock back.
func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("release the lock: %w", err)
	}
	return nil
}

// Remove deletes the lock's file and gives the lock back.
func (l *Lock) Remove() error {
	return errors.Join(os.Remove(l.file.Name()), l.Release())
}
