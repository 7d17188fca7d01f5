package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stagingPrefix = ".staging-"
	lockPrefix    = ".lock-"
	markerName    = "release.json"
	lockInterval  = 100 * time.Millisecond
)

// store is one version's place in a fetcher's directory.
type store struct{ dir, version string }

// marker is written last into a directory and says that it is complete.
type marker struct {
	SHA256 string           `json:"sha256"` // of the archive
	Sizes  map[string]int64 `json:"sizes"`  // of the programs, in bytes
}

func (s store) final() string   { return filepath.Join(s.dir, "v"+s.version) }
func (s store) staging() string { return filepath.Join(s.dir, stagingPrefix+"v"+s.version) }
func (s store) release() string { return filepath.Join(s.staging(), "release") }
func (s store) archive() string { return filepath.Join(s.staging(), "archive.tar.gz") }

func (s store) binaries() Binaries {
	dir := s.final()
	return Binaries{
		Dir:     dir,
		Etcd:    filepath.Join(dir, "etcd"),
		Etcdctl: filepath.Join(dir, "etcdctl"),
		Etcdutl: filepath.Join(dir, "etcdutl"),
	}
}

// has says whether the version is there, whole, and from the archive with the
// digest; any archive will do when that is empty.
func (s store) has(digest string) bool {
	raw, err := os.ReadFile(filepath.Join(s.final(), markerName))
	if err != nil {
		return false
	}
	var m marker
	if json.Unmarshal(raw, &m) != nil || digest != "" && m.SHA256 != digest {
		return false
	}
	for _, program := range programs {
		info, err := os.Lstat(filepath.Join(s.final(), program))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 || info.Size() != m.Sizes[program] {
			return false
		}
	}
	return true
}

// commit puts the staged release in its place, whole or not at all.
func (s store) commit(digest string) error {
	m := marker{SHA256: digest, Sizes: map[string]int64{}}
	for _, program := range programs {
		info, err := os.Lstat(filepath.Join(s.release(), program))
		if err != nil {
			return err
		}
		m.Sizes[program] = info.Size()
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(s.release(), markerName), raw); err != nil {
		return err
	}
	if err := syncDir(s.release()); err != nil {
		return err
	}
	if err := s.swap(); err != nil {
		return fmt.Errorf("put %s in place: %w", s.final(), err)
	}
	return syncDir(s.dir)
}

// swap renames the release into its place. A damaged one or one of another
// archive that is there changes places with it, so that at no moment there is
// none, and goes with the staging directory. Processes that run from it keep
// their files. Few file systems cannot do that; there it is moved out first.
func (s store) swap() error {
	err := os.Rename(s.release(), s.final())
	if !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	err = unix.Renameat2(unix.AT_FDCWD, s.release(), unix.AT_FDCWD, s.final(), unix.RENAME_EXCHANGE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if err := os.Rename(s.final(), filepath.Join(s.staging(), "former")); err != nil {
		return err
	}
	return os.Rename(s.release(), s.final())
}

// lock waits until nobody else is at work on the version. The lock goes with
// the process that holds it, however that ends.
func (s store) lock(ctx context.Context) (unlock func(), err error) {
	for {
		unlock, err := tryLock(filepath.Join(s.dir, lockPrefix+"v"+s.version))
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another fetch of the version: %w", context.Cause(ctx))
		case <-time.After(lockInterval):
		}
	}
}

func tryLock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

// sweep removes what interrupted fetches left, of this version, whose lock is
// held, and of others that nobody is at work on.
func (s store) sweep() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		version, is := strings.CutPrefix(entry.Name(), stagingPrefix)
		if !is {
			continue
		}
		if version != "v"+s.version {
			unlock, err := tryLock(filepath.Join(s.dir, lockPrefix+version))
			if err != nil {
				continue
			}
			defer unlock()
		}
		if err := os.RemoveAll(filepath.Join(s.dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (s store) discard(log *slog.Logger) {
	if err := os.RemoveAll(s.staging()); err != nil {
		log.Warn("a staging directory stays until the next fetch", "dir", s.staging(), "error", err)
	}
}

func writeSynced(path string, raw []byte) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = closeAfter(err, file) }()
	if _, err := file.Write(raw); err != nil {
		return err
	}
	return file.Sync()
}
