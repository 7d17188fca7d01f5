package release

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	maxUnpacked = 2 << 30 // bytes of all files of an archive; upstream's have 80 MB
	maxEntries  = 10_000
)

// programs are the files of an archive that are kept.
var programs = []string{"etcd", "etcdctl", "etcdutl"}

var errTooLarge = errors.New("it unpacks to more than a release of etcd can have")

// unpack writes the programs in an archive to a directory. An archive's
// checksum only proves who made it, so what could write elsewhere or fill the
// disk is refused all the same.
func unpack(archivePath, into, archive string) (err error) {
	file, err := os.Open(archivePath)
	if err != nil {
		return err
	}
	defer func() { err = closeAfter(err, file) }()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	root := strings.TrimSuffix(archive, ".tar.gz")
	limited := &limitedReader{from: compressed, left: maxUnpacked}
	entries, found := tar.NewReader(limited), map[string]bool{}
	for count := 0; ; count++ {
		header, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return complete(found, into)
		case err != nil:
			return err
		case count >= maxEntries:
			return errTooLarge
		}
		name, err := wanted(header, root)
		switch {
		case err != nil:
			return err
		case name == "":
			continue
		case found[name]:
			return fmt.Errorf("it has %s twice", name)
		}
		found[name] = true
		if err := writeProgram(filepath.Join(into, name), entries); err != nil {
			return err
		}
	}
}

// wanted is the program that an entry is, or nothing if it is something else
// that is harmless, like documentation.
func wanted(header *tar.Header, root string) (string, error) {
	switch header.Typeflag {
	case tar.TypeXGlobalHeader:
		return "", nil
	case tar.TypeReg, tar.TypeDir:
	default:
		return "", fmt.Errorf("%q is neither a file nor a directory", header.Name)
	}
	if clean := strings.TrimSuffix(strings.TrimPrefix(header.Name, "./"), "/"); clean != "" && !fs.ValidPath(clean) {
		return "", fmt.Errorf("%q is not a path inside the archive", header.Name)
	}
	for _, program := range programs {
		if path.Clean(header.Name) == root+"/"+program {
			if header.Typeflag != tar.TypeReg {
				return "", fmt.Errorf("%q is not a file", header.Name)
			}
			return program, nil
		}
	}
	return "", nil
}

func complete(found map[string]bool, into string) error {
	for _, program := range programs {
		if !found[program] {
			return fmt.Errorf("it has no %s", program)
		}
	}
	return syncDir(into)
}

func writeProgram(to string, from io.Reader) (err error) {
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = closeAfter(err, file) }()
	if _, err := io.Copy(file, from); err != nil {
		return err
	}
	if err := file.Chmod(0o755); err != nil { // whatever the umask
		return err
	}
	return file.Sync()
}

// limitedReader fails where io.LimitReader would say that it is the end.
type limitedReader struct {
	from io.Reader
	left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return closeAfter(dir.Sync(), dir)
}
