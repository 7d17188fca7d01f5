package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// ErrChecksum says that an archive is not what its checksum promises. Nothing
// of it was unpacked.
var ErrChecksum = errors.New("the checksum is wrong")

// NotFoundError says that the mirror answered and does not have a file.
type NotFoundError struct {
	URL string // without user and password
}

func (e *NotFoundError) Error() string { return "the mirror has no " + e.URL }

// Binaries are the programs of one release, unpacked.
type Binaries struct {
	Dir     string
	Etcd    string
	Etcdctl string
	Etcdutl string
}

// Fetcher brings releases from a mirror into a directory:
//
//	DIR/v3.7.3/{etcd,etcdctl,etcdutl}   complete and verified, or not there
//	DIR/.staging-v3.7.3                 what an interrupted fetch left
//	DIR/.lock-v3.7.3                    held while one is at work
//
// Several, also in several processes, may share a directory.
type Fetcher struct {
	Dir    string
	Client *http.Client  // nil: one that never leaves https for http
	Log    *slog.Logger  // nil: slog.Default()
	Arch   string        // empty: this machine's
	Stall  time.Duration // how long nothing may arrive; zero: 30 s
}

// Ensure answers the binaries of a version, and fetches them first if they
// are not there. The mirror is an http(s):// or file:// URL that is laid out as
// upstream's downloads are; sha256 has the archive's digest in hex by
// architecture and, when it is empty, the mirror's SHA256SUMS is believed. What
// was fetched and verified before is used again without the network, unless
// sha256 asks for another archive.
//
// progress, if not nil, is called with the bytes of the archive that have
// arrived; it must not block. Retries are the caller's. Errors: those of Check,
// ErrChecksum, *NotFoundError, syscall.ENOSPC, and whatever else keeps a mirror
// from being reached, with its URL.
func (f *Fetcher) Ensure(ctx context.Context, version, mirror string, sha256 map[string]string, progress func(bytes int64)) (Binaries, error) {
	if err := Check(version); err != nil {
		return Binaries{}, err
	}
	want, err := f.pinned(sha256)
	if err != nil {
		return Binaries{}, fmt.Errorf("fetch etcd %s: %w", version, err)
	}
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return Binaries{}, fmt.Errorf("fetch etcd %s: %w", version, err)
	}
	in := store{dir: dir, version: version}
	if in.has(want) {
		return in.binaries(), nil
	}
	if err := f.install(ctx, in, mirror, want, progress); err != nil {
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return Binaries{}, fmt.Errorf("fetch etcd %s: the disk that holds %s is full: %w", version, dir, err)
		}
		return Binaries{}, fmt.Errorf("fetch etcd %s: %w", version, err)
	}
	return in.binaries(), nil
}

// install does what Ensure promises under the lock of the version.
func (f *Fetcher) install(ctx context.Context, in store, mirror, want string, progress func(int64)) error {
	if err := os.MkdirAll(in.dir, 0o755); err != nil {
		return err
	}
	unlock, err := in.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if in.has(want) { // another one was faster
		return nil
	}
	if err := in.sweep(); err != nil {
		return err
	}
	defer in.discard(f.log())
	if err := os.MkdirAll(in.release(), 0o755); err != nil {
		return err
	}
	from, err := f.source(mirror)
	if err != nil {
		return err
	}
	archive := Archive(in.version, f.arch())
	if want == "" {
		if want, err = from.published(ctx, "v"+in.version, archive); err != nil {
			return err
		}
	}
	got, err := from.download(ctx, in.archive(), progress, "v"+in.version, archive)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s has SHA-256 %s and should have %s: %w", from.redacted("v"+in.version, archive), got, want, ErrChecksum)
	}
	if err := unpack(in.archive(), in.release(), archive); err != nil {
		return fmt.Errorf("unpack %s: %w", archive, err)
	}
	if err := in.commit(want); err != nil {
		return err
	}
	f.log().InfoContext(ctx, "fetched etcd", "version", in.version, "sha256", want, "dir", in.final())
	return nil
}

// Archive is the file name of a release for an architecture.
func Archive(version, arch string) string {
	return fmt.Sprintf("etcd-v%s-linux-%s.tar.gz", version, arch)
}

// pinned is the digest that the caller insists on, empty if none.
func (f *Fetcher) pinned(sha256 map[string]string) (string, error) {
	if len(sha256) == 0 {
		return "", nil
	}
	want, is := sha256[f.arch()]
	if !is {
		// To believe the mirror here would be less than was asked for.
		return "", fmt.Errorf("there are SHA-256 digests, but none for %s", f.arch())
	}
	if !digestPattern.MatchString(want) {
		return "", fmt.Errorf("the SHA-256 digest for %s is not 64 hexadecimal digits in lower case", f.arch())
	}
	return want, nil
}

func (f *Fetcher) source(mirror string) (source, error) {
	base, err := url.Parse(mirror)
	if err != nil {
		return source{}, errors.New("the mirror is not a URL") // which may hold a password
	}
	from := source{base: base, client: f.Client, stall: f.Stall}
	if from.client == nil {
		from.client = &http.Client{CheckRedirect: staySecure}
	}
	if from.stall <= 0 {
		from.stall = 30 * time.Second
	}
	switch {
	case base.RawQuery != "" || base.Fragment != "":
		return source{}, fmt.Errorf("mirror %s: a mirror is a base URL, without ? and #", from.redacted())
	case base.Scheme == "file" && (base.Host == "" || base.Host == "localhost") && filepath.IsAbs(base.Path):
		return from, nil
	case (base.Scheme == "http" || base.Scheme == "https") && base.Hostname() != "":
		return from, nil
	}
	return source{}, fmt.Errorf("mirror %s: it is neither http(s)://HOST/… nor file:///…", from.redacted())
}

// staySecure refuses redirects from https to http, on which the checksums
// could be anybody's.
func staySecure(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("it redirects more than ten times")
	}
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return errors.New("it redirects from https to " + next.URL.Scheme)
	}
	return nil
}

func (f *Fetcher) arch() string {
	if f.Arch != "" {
		return f.Arch
	}
	return runtime.GOARCH
}

func (f *Fetcher) log() *slog.Logger {
	if f.Log != nil {
		return f.Log
	}
	return slog.Default()
}

// closeAfter keeps the first error of using a file and of closing it: a full
// disk may show only then.
func closeAfter(err error, c io.Closer) error {
	if closing := c.Close(); err == nil {
		return closing
	}
	return err
}
