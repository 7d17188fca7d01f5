package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var program struct {
	once sync.Once
	path string
	err  error
	out  []byte
}

// Program builds the binary once per test process and answers its path. It
// lies next to the test binary, which the go command removes.
func Program(t testing.TB) string {
	t.Helper()
	source := root(t)
	program.once.Do(func() {
		self, err := os.Executable()
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(filepath.Dir(self), "etcdmanager")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", program.path, "./cmd/etcdmanager")
		build.Dir = source
		program.out, program.err = build.CombinedOutput()
	})
	if program.err != nil {
		t.Fatalf("build etcdmanager: %v\n%s", program.err, program.out)
	}
	return program.path
}
