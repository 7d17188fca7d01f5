package management

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// markerName is the file that says that a folder is ours to remove.
const markerName = ".etcdmanager"

// Marker is what a claimed folder says of itself.
type Marker struct {
	Purpose string `json:"purpose"` // for who opens the file
	// ExecActuators were given to runs on this folder, by name: machines
	// that they made live elsewhere.
	ExecActuators []string `json:"execActuators,omitempty"`
}

// NotOursError says that a folder was not made by etcdmanager.
type NotOursError struct{ Dir string }

func (e *NotOursError) Error() string {
	return fmt.Sprintf("%s was not made by etcdmanager up (it has no %s): it is left alone", e.Dir, markerName)
}

// Claim makes a folder ours, which is one that is not there, is empty or is
// ours already; else it answers a *NotOursError. Names of exec actuators are
// added to those that it knows.
func Claim(dir string, execActuators []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("claim %s: %w", dir, err)
	}
	marker, err := Claimed(dir)
	var notOurs *NotOursError
	if err != nil && !errors.As(err, &notOurs) {
		return err
	}
	if notOurs != nil {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("claim %s: %w", dir, err)
		}
		if len(entries) > 0 {
			return fmt.Errorf("%w: name an empty folder or a new one", notOurs)
		}
	}
	marker.Purpose = "This folder was made by etcdmanager up; etcdmanager down removes it."
	marker.ExecActuators = append(marker.ExecActuators, execActuators...)
	slices.Sort(marker.ExecActuators)
	marker.ExecActuators = slices.Compact(marker.ExecActuators)
	raw, err := json.MarshalIndent(marker, "", "  ")
	if err != nil {
		return fmt.Errorf("claim %s: %w", dir, err)
	}
	return writePrivate(filepath.Join(dir, markerName), append(raw, '\n'))
}

// Claimed reads what a folder says of itself: a *NotOursError if nothing.
func Claimed(dir string) (Marker, error) {
	raw, err := os.ReadFile(filepath.Join(dir, markerName))
	if errors.Is(err, os.ErrNotExist) {
		return Marker{}, &NotOursError{Dir: dir}
	}
	if err != nil {
		return Marker{}, fmt.Errorf("look whose %s is: %w", dir, err)
	}
	var marker Marker
	if err := json.Unmarshal(raw, &marker); err != nil {
		return Marker{}, fmt.Errorf("look whose %s is: %w", dir, err)
	}
	return marker, nil
}

// Clear removes what Start made in a claimed folder and the named parts that
// others made, then the claim, and then the folder if nothing else is in it.
// It tells every path before it removes it. The lock, which the caller holds,
// is given back at the end.
func Clear(dir string, lock *Lock, parts []string, tell func(path string)) error {
	for _, part := range append(parts, stateName, kubeconfigName) {
		path := filepath.Join(dir, part)
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		tell(path)
		if err := os.RemoveAll(path); err != nil {
			return errors.Join(fmt.Errorf("remove %s: %w", path, err), lock.Release())
		}
	}
	// The claim last of all: an interrupted removal can be repeated.
	err := errors.Join(lock.Remove(), os.Remove(filepath.Join(dir, markerName)))
	if err != nil {
		return fmt.Errorf("remove the claim of %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		return err
	}
	tell(dir)
	return os.Remove(dir)
}
