package release

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

const (
	maxArchive = 1 << 30 // bytes of an archive; upstream's have 25 MB
	maxSums    = 1 << 20 // bytes of SHA256SUMS; upstream's have 2 kB
)

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// source is a mirror.
type source struct {
	base   *url.URL
	client *http.Client
	stall  time.Duration
}

// redacted is a URL of the mirror for messages, without user and password.
func (s source) redacted(path ...string) string {
	u := *s.base.JoinPath(path...)
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// published is the digest that the mirror's SHA256SUMS gives for an archive.
func (s source) published(ctx context.Context, dir, archive string) (string, error) {
	var sums bytes.Buffer
	if err := s.copy(ctx, &sums, maxSums, nil, dir, "SHA256SUMS"); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(&sums)
	for lines.Scan() {
		digest, name, found := strings.Cut(lines.Text(), " ")
		name = strings.TrimPrefix(strings.TrimLeft(name, " "), "*")
		if found && name == archive && digestPattern.MatchString(digest) {
			return digest, nil
		}
	}
	return "", fmt.Errorf("%s has no digest of %s", s.redacted(dir, "SHA256SUMS"), archive)
}

// download writes a file of the mirror to a new file and answers its SHA-256.
func (s source) download(ctx context.Context, to string, progress func(int64), path ...string) (string, error) {
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = s.copy(ctx, io.MultiWriter(file, sum), maxArchive, progress, path...)
	if err := closeAfter(err, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// copy copies a file of the mirror of at most limit bytes. It gives up when
// nothing arrives for the time of a stall; there is no limit to the whole, as
// nobody knows how slow a line is that still works.
func (s source) copy(ctx context.Context, to io.Writer, limit int64, progress func(int64), path ...string) error {
	name := s.redacted(path...)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(s.stall, func() { cancel(fmt.Errorf("nothing arrived for %s", s.stall)) })
	defer watchdog.Stop()

	body, err := s.open(ctx, path...)
	if err == nil {
		arriving := &counter{from: io.LimitReader(body, limit+1), arrived: func(total int64) {
			watchdog.Reset(s.stall)
			if progress != nil {
				progress(total)
			}
		}}
		if _, err = io.CopyBuffer(to, arriving, make([]byte, 1<<18)); err == nil && arriving.total > limit {
			err = fmt.Errorf("it has more than %d bytes", limit)
		}
		err = closeAfter(err, body)
	}
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if missing := new(NotFoundError); errors.As(err, &missing) {
		return err
	}
	return fmt.Errorf("get %s: %w", name, err)
}

func (s source) open(ctx context.Context, path ...string) (io.ReadCloser, error) {
	target := s.base.JoinPath(path...)
	if target.Scheme == "file" {
		return openFile(target.Path, s.redacted(path...))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, errors.New("it cannot be asked for") // the error has the URL
	}
	// The digest is of the file as it is stored.
	request.Header.Set("Accept-Encoding", "identity")
	response, err := s.client.Do(request)
	if err != nil {
		// The URL in it may be a redirect's, with a signature that is secret.
		if wrapped := new(url.Error); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return response.Body, nil
	case http.StatusNotFound, http.StatusGone:
		err = &NotFoundError{URL: s.redacted(path...)}
	default:
		err = fmt.Errorf("the mirror answers %s", response.Status)
	}
	_ = response.Body.Close()
	return nil, err
}

func openFile(path, name string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &NotFoundError{URL: name}
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // a named pipe would block
		return nil, errors.New("it is not a file")
	}
	return os.Open(path)
}

// counter tells of what is read, and hides what else a reader can do.
type counter struct {
	from    io.Reader
	total   int64
	arrived func(total int64)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if n > 0 {
		c.total += int64(n)
		c.arrived(c.total)
	}
	return n, err
}
