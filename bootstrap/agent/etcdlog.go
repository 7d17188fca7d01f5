package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
)

const (
	startMark       = "etcd is started by its agent"
	tailLength      = 256 << 10 // bytes
	tellingLength   = 500
	rotationChecked = time.Second
)

// markStart writes a line that separates the runs of etcd in its log.
func markStart(path, version string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("marking a start in etcd's log: %w", err)
	}
	line, err := json.Marshal(map[string]string{
		"level": "info", "ts": time.Now().UTC().Format(time.RFC3339Nano), "msg": startMark, "version": version,
	})
	if err == nil {
		_, err = f.Write(append(line, '\n'))
	}
	return errors.Join(err, f.Close())
}

// lastTelling is the last line of the last run that says what went wrong.
func lastTelling(path string) string {
	raw, err := tail(path, tailLength)
	if err != nil {
		return ""
	}
	lines := bytes.Split(raw, []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		text, begins := telling(lines[i])
		if begins {
			return ""
		}
		if text != "" {
			return text[:min(len(text), tellingLength)]
		}
	}
	return ""
}

// telling reads one line: zap's JSON, or what Go and the flag package print.
func telling(line []byte) (text string, begins bool) {
	var entry struct{ Level, Msg, Error string }
	if json.Unmarshal(line, &entry) == nil {
		switch entry.Level {
		case "error", "dpanic", "panic", "fatal":
			if entry.Error != "" {
				return entry.Msg + ": " + entry.Error, false
			}
			return entry.Msg, false
		}
		return "", entry.Msg == startMark
	}
	for _, prefix := range []string{"panic: ", "fatal error: ", "flag provided but not defined", "invalid value", "error verifying flags"} {
		if bytes.HasPrefix(line, []byte(prefix)) {
			return string(line), false
		}
	}
	return "", false
}

func tail(path string, length int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(max(0, size-length), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, length))
}

// rotateLog keeps etcd's log small. etcd writes to the file itself, and goes on
// to when there is no agent (F121); so it is copied and emptied, which a writer
// that appends does not notice. What is written in between is lost.
func rotateLog(ctx context.Context, opts Options) {
	tick := time.NewTicker(rotationChecked)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		info, err := os.Stat(opts.etcdLog())
		if err == nil && info.Size() > opts.LogLimit {
			rotateOnce(opts.etcdLog(), opts.Log)
		}
	}
}

func rotateOnce(path string, log *slog.Logger) {
	if err := keepCopy(path); err != nil {
		// Most likely the disk is full; then room matters more than old lines.
		log.Warn("etcd's log is emptied without a copy", "error", err)
	}
	if err := os.Truncate(path, 0); err != nil {
		log.Error("etcd's log could not be emptied", "error", err)
	}
}

func keepCopy(path string) (err error) {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	temp := path + ".copy"
	to, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp) }()
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	for i := logsKept - 1; i >= 1; i-- {
		err := os.Rename(numbered(path, i), numbered(path, i+1))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Rename(temp, numbered(path, 1))
}

func numbered(path string, i int) string { return fmt.Sprintf("%s.%d", path, i) }
