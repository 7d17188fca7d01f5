package local

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// Names in the directory of machines, and in each machine's.
const (
	markerFile    = ".etcdmanager-machines"
	newPrefix     = ".new-"
	deletedPrefix = ".deleted-"

	recordFile    = "machine.json"
	bootstrapFile = "bootstrap.json"
	pidFile       = "agent.pid"
	logFile       = "agent.log"
	agentDir      = "agent"
)

// record is what is written down of a machine before anything else happens.
type record struct {
	machine.Machine
	Address string `json:"address"`
}

// store is the directory of machines, held open: what it says of one entry and
// of itself comes from the same directory, whatever is mounted meanwhile.
type store struct {
	root *os.Root
}

// validUID is what can be a file's name without any care.
var validUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// openFor returns the store, for a machine of this UID.
func (a *Actuator) openFor(ctx context.Context, uid string) (*store, error) {
	if !validUID.MatchString(uid) {
		return nil, fmt.Errorf("machine UID %q: want letters, digits, - and _: %w", uid, machine.ErrInvalid)
	}
	return a.open(ctx)
}

// open returns the store if it is the one that New saw.
func (a *Actuator) open(ctx context.Context) (*store, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("look at the machines: %w", err)
	}
	root, err := os.OpenRoot(a.machines)
	if err != nil {
		return nil, fmt.Errorf("open the directory of machines: %s", opaque(err))
	}
	marker, err := root.ReadFile(markerFile)
	if err == nil && string(marker) != a.store {
		err = errors.New("its marker is another one's")
	}
	if err != nil {
		root.Close() //nolint:errcheck // only read from
		return nil, fmt.Errorf("%s is not the directory of machines that was opened: %s", a.machines, opaque(err))
	}
	return &store{root}, nil
}

// opaque keeps "file does not exist" of the parent from being taken for the
// absence of a machine by errors.Is (F162).
func opaque(err error) string { return err.Error() }

func (s *store) close() { _ = s.root.Close() }

// identifyStore reads the marker of a directory of machines and gives it one
// when it has none.
func identifyStore(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("open the directory of machines: %w", err)
	}
	s := &store{root}
	defer s.close()
	lock, err := s.lockAll(context.Background())
	if err != nil {
		return "", err
	}
	defer lock.Close() //nolint:errcheck // open for its lock
	marker, err := root.ReadFile(markerFile)
	if errors.Is(err, os.ErrNotExist) {
		marker = []byte(rand.Text() + "\n")
		err = s.writeFile(markerFile, marker)
	}
	if err != nil {
		return "", fmt.Errorf("mark the directory of machines: %w", err)
	}
	return string(marker), nil
}

// uids of all entries, each once.
func (s *store) uids() ([]string, error) {
	dir, err := s.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list the machines: %w", err)
	}
	defer dir.Close() //nolint:errcheck // only read from
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("list the machines: %w", err)
	}
	var uids []string
	for _, e := range entries {
		uid := strings.TrimPrefix(strings.TrimPrefix(e.Name(), newPrefix), deletedPrefix)
		if e.IsDir() && validUID.MatchString(uid) {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids), nil
}

// exists says whether there is an entry of that name, and fails when that
// cannot be told.
func (s *store) exists(name string) (bool, error) {
	_, err := s.root.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", name, err)
	}
	return true, nil
}

func (s *store) readRecord(uid string) (record, error) {
	raw, err := s.root.ReadFile(filepath.Join(uid, recordFile))
	if err != nil {
		return record{}, fmt.Errorf("read the record of machine %s: %s", uid, opaque(err))
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return record{}, fmt.Errorf("read the record of machine %s: %w", uid, err)
	}
	if r.UID != uid || r.Address == "" {
		return record{}, fmt.Errorf("the record in the directory of machine %s is not its own", uid)
	}
	return r, nil
}

func (s *store) writeRecord(dir string, r record) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the record of machine %s: %w", r.UID, err)
	}
	return s.writeFile(filepath.Join(dir, recordFile), append(raw, '\n'))
}

// writeFile leaves the old content or the new, whatever happens, and the new
// for good once it returns.
func (s *store) writeFile(name string, content []byte) error {
	temp := name + ".tmp"
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = s.root.Rename(temp, name)
	}
	if err == nil {
		err = s.sync(filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// sync makes the entries of a directory last.
func (s *store) sync(dir string) error {
	f, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lockAll keeps everyone else from choosing addresses and making machines,
// until the file is closed. The lock is on the directory itself: nothing stays
// behind, and it ends with its process.
func (s *store) lockAll(ctx context.Context) (io.Closer, error) {
	f, err := s.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("lock the directory of machines: %w", err)
	}
	if err := flock(ctx, f); err != nil {
		f.Close() //nolint:errcheck // only locked
		return nil, fmt.Errorf("lock the directory of machines: %w", err)
	}
	return f, nil
}

// lockMachine keeps everyone else from starting, stopping and removing one
// machine. The error is os.ErrNotExist when it is not there, or not any more
// once the lock is had.
func (s *store) lockMachine(ctx context.Context, uid string) (io.Closer, error) {
	f, err := s.root.Open(uid)
	if err != nil {
		return nil, fmt.Errorf("lock machine %s: %w", uid, err)
	}
	if err = flock(ctx, f); err == nil {
		err = s.sameFile(f, uid)
	}
	if err != nil {
		f.Close() //nolint:errcheck // only locked
		return nil, fmt.Errorf("lock machine %s: %w", uid, err)
	}
	return f, nil
}

func (s *store) sameFile(f *os.File, name string) error {
	held, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := s.root.Lstat(name)
	if err != nil {
		return err
	}
	if !os.SameFile(held, named) {
		return errors.New("it was replaced by another of the same name")
	}
	return nil
}

// flock waits for an exclusive lock as long as the context does.
func flock(ctx context.Context, f *os.File) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
