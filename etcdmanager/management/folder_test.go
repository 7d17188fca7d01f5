package management

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOnlyOurFoldersAreCleared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := Claim(dir, []string{"site"}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"management", "machines", "mine"} {
		if err := os.MkdirAll(filepath.Join(dir, part), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Claim(dir, []string{"other", "site"}); err != nil {
		t.Fatalf("claim what is ours already: %v", err)
	}
	marker, err := Claimed(dir)
	if err != nil || !slices.Equal(marker.ExecActuators, []string{"other", "site"}) {
		t.Errorf("the claim knows of %v (%v), want other and site", marker.ExecActuators, err)
	}
	lock, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	err = Clear(dir, lock, []string{"machines"}, func(path string) { told = append(told, filepath.Base(path)) })
	if err != nil || !slices.Equal(told, []string{"machines", "management"}) {
		t.Errorf("clear told %v (%v), want machines and management", told, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "mine" {
		t.Errorf("left are %v (%v), want mine alone", left, err)
	}

	var notOurs *NotOursError
	if err := Claim(dir, nil); !errors.As(err, &notOurs) {
		t.Errorf("claim a folder with somebody's files: %v, want a NotOursError", err)
	}
	if _, err := Claimed(dir); !errors.As(err, &notOurs) {
		t.Errorf("whose is it: %v, want a NotOursError", err)
	}
}
