package management

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// writePrivate replaces a file so that a crash leaves the old or the new
// content, readable by this user alone.
func writePrivate(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(temp.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// logLimit is the size in bytes at which a child's log is set aside when the
// child is started anew. Both children log little, so that is often enough.
const logLimit = 16 << 20

// openLog opens a child's log for appending.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("set aside the log %s: %w", path, err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log %s: %w", path, err)
	}
	return file, nil
}

// tail is the end of a log in one line, for an error message.
func tail(path string) string {
	const window, lines = 4096, 4
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	if size, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, size-window), io.SeekStart)
	}
	raw, err := io.ReadAll(io.LimitReader(file, window))
	if err != nil {
		return ""
	}
	all := strings.Split(string(bytes.TrimSpace(raw)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, " / ")
}
