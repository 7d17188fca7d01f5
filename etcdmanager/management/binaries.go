package management

import (
	"fmt"
	"os"
	"path/filepath"
)

// etcdRelease is the release that the management API is kept in.
const etcdRelease = "v3.7.3"

// Binaries are the programs that the management API consists of.
type Binaries struct {
	Etcd          string
	KubeAPIServer string
}

// FindBinaries looks for the programs in a folder made by `make testbin`. It
// answers absolute paths.
func FindBinaries(binDir string) (Binaries, error) {
	dir, err := filepath.Abs(binDir)
	if err != nil {
		return Binaries{}, fmt.Errorf("find the programs of the management API: %w", err)
	}
	found := Binaries{
		Etcd:          filepath.Join(dir, "etcd-"+etcdRelease, "etcd"),
		KubeAPIServer: filepath.Join(dir, "kube-apiserver"),
	}
	for _, path := range []string{found.Etcd, found.KubeAPIServer} {
		if err := executable(path); err != nil {
			return Binaries{}, fmt.Errorf("the management API needs %s, but %w: run `make testbin`, or name the right folder", path, err)
		}
	}
	return found, nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return fmt.Errorf("it is not there")
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("it is not a program")
	}
	return nil
}
