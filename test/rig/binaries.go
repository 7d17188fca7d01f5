package rig

import (
	"os"
	"path/filepath"
	"testing"
)

// BinDir is the folder that `make testbin` fills. The test fails when it has
// not been run.
func BinDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(root(t), "bin", "testbin")
	for _, name := range []string{"kube-apiserver", filepath.Join("etcd-v3.7.3", "etcd")} {
		binary(t, dir, name)
	}
	return dir
}

// Etcd is the path of a program of an etcd release: etcd, etcdctl or etcdutl.
// The version is without v.
func Etcd(t testing.TB, version, program string) string {
	t.Helper()
	return binary(t, filepath.Join(root(t), "bin", "testbin"), filepath.Join("etcd-v"+version, program))
}

// Kubectl is the path of kubectl.
func Kubectl(t testing.TB) string {
	t.Helper()
	return binary(t, filepath.Join(root(t), "bin", "testbin"), "kubectl")
}

func binary(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not there: run `make testbin`", path)
	}
	return path
}

// root is the folder of go.mod: tests run in their package's folder.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("the test does not run inside the repository: no go.mod above")
		}
		dir = parent
	}
}
