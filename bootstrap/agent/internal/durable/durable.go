// Package durable writes files so that a crash at any moment leaves the old
// content or the new, whole, and locks directories. It may import the standard
// library and x/sys only.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Private is the mode of files that others must not read.
const Private = 0o600

// WriteFile replaces the file at path: written aside, synced, renamed over it,
// and the directory synced.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return SyncDir(dir)
}

// Create writes and syncs a private file that must not exist yet. Its name is
// durable after SyncDir.
func Create(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, Private)
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// SyncDir makes names in a directory durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing directory %s: %w", dir, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("syncing directory %s: %w", dir, err)
	}
	return nil
}

// PointTo makes link a symbolic link to target, in one step even where link
// pointed elsewhere before.
func PointTo(link, target string) error {
	temp := link + ".next"
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("pointing %s to %s: %w", link, target, err)
	}
	if err := os.Symlink(target, temp); err != nil {
		return fmt.Errorf("pointing %s to %s: %w", link, target, err)
	}
	if err := os.Rename(temp, link); err != nil {
		return fmt.Errorf("pointing %s to %s: %w", link, target, err)
	}
	return SyncDir(filepath.Dir(link))
}

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("another process holds the lock")

// Lock takes the lock that the file at path stands for, for as long as the
// file answered is open. It does not wait: ErrLocked. Child processes do not
// inherit it.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, Private)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}
