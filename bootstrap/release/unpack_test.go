package release

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestUnpackStopsAtItsLimit reads what expands to more than is allowed.
func TestUnpackStopsAtItsLimit(t *testing.T) {
	limited := &limitedReader{from: bytes.NewReader(make([]byte, 100)), left: 60}
	got := make([]byte, 0, 100)
	buffer := make([]byte, 7)
	for {
		n, err := limited.Read(buffer)
		got = append(got, buffer[:n]...)
		if err != nil {
			if !errors.Is(err, errTooLarge) || len(got) != 60 {
				t.Errorf("%d bytes, then %v", len(got), err)
			}
			return
		}
	}
}

// FuzzUnpack: whatever an archive holds, nothing but the programs is written.
func FuzzUnpack(f *testing.F) {
	f.Add(tarball(f, upstreamLike("v1")))
	f.Add(tarball(f, []entry{{name: root + "/../../etcd", body: "out"}}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		archive, into := filepath.Join(dir, "archive"), filepath.Join(dir, "a", "b", "into")
		if err := os.MkdirAll(into, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(archive, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		failed := unpack(archive, into, root+".tar.gz")
		have := map[string]bool{}
		err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && path != archive {
				have[path] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range programs {
			if path := filepath.Join(into, program); !have[path] && failed == nil {
				t.Errorf("there is no %s, and it did not fail", program)
			} else {
				delete(have, path)
			}
		}
		if len(have) > 0 {
			t.Errorf("it wrote %v", have)
		}
	})
}
