package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	for _, text := range []string{"one", "a second, longer", "3"} {
		if err := WriteFile(path, []byte(text), Private); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("read %q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != Private {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// A write that fails leaves the old content, and nothing beside it.
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "taken"), []byte("x"), Private); err == nil {
		t.Error("wrote over a directory")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestPointToSurvivesAnInterruptedOne(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "identity")
	if err := os.Symlink("nowhere", link+".next"); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"1", "2"} {
		if err := PointTo(link, target); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(link); err != nil || got != target {
			t.Errorf("points to %q, %v", got, err)
		}
	}
}

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}
