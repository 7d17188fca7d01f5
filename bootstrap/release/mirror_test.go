package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	someVersion = "3.7.3"
	someArch    = "amd64"
)

// entry is one of an archive under test; a file unless it says otherwise.
type entry struct {
	name, body, link string
	typeflag         byte
}

const root = "etcd-v" + someVersion + "-linux-" + someArch

// upstreamLike is laid out as upstream's archives are, documentation and all.
func upstreamLike(body string) []entry {
	return []entry{
		{name: root + "/", typeflag: tar.TypeDir},
		{name: root + "/README.md", body: "read me"},
		{name: root + "/Documentation/", typeflag: tar.TypeDir},
		{name: root + "/etcdutl", body: "utl " + body},
		{name: root + "/etcdctl", body: "ctl " + body},
		{name: root + "/etcd", body: "etcd " + body},
	}
}

func tarball(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.typeflag, Linkname: e.link, Mode: 0o600, Size: int64(len(e.body))}
		if e.typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(e.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// mirror is a real HTTP server that holds files by path and counts requests.
type mirror struct {
	*httptest.Server
	mu       sync.Mutex
	files    map[string][]byte
	requests atomic.Int64
	// instead, if set, answers in place of the files unless it answers false.
	instead func(http.ResponseWriter, *http.Request) bool
}

const (
	archivePath = "/v" + someVersion + "/" + root + ".tar.gz"
	sumsPath    = "/v" + someVersion + "/SHA256SUMS"
)

// newMirror serves an archive, with SHA256SUMS that agree with it.
func newMirror(t testing.TB, archive []byte) *mirror {
	t.Helper()
	m := &mirror{files: map[string][]byte{
		archivePath: archive,
		sumsPath:    []byte(digestOf(nil) + "  another.tar.gz\n" + digestOf(archive) + "  " + root + ".tar.gz\n"),
	}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.Add(1)
	if m.instead != nil && m.instead(w, r) {
		return
	}
	m.mu.Lock()
	raw, is := m.files[r.URL.Path]
	m.mu.Unlock()
	if !is {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(raw)
}

func newFetcher(t testing.TB) *Fetcher {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &Fetcher{
		Dir:    filepath.Join(t.TempDir(), "releases"),
		Arch:   someArch,
		Client: &http.Client{Transport: transport},
		Log:    slog.New(slog.DiscardHandler),
	}
}

// mustHold fails unless the binaries are there with what the archive had.
func mustHold(t testing.TB, got Binaries, body string) {
	t.Helper()
	for path, want := range map[string]string{got.Etcd: "etcd " + body, got.Etcdctl: "ctl " + body, got.Etcdutl: "utl " + body} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != want {
			t.Errorf("%s holds %q, want %q", path, raw, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// mustHaveNothing fails if anything but locks is in a fetcher's directory.
func mustHaveNothing(t testing.TB, f *Fetcher) {
	t.Helper()
	left, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range left {
		if !strings.HasPrefix(entry.Name(), lockPrefix) {
			t.Errorf("%s was left behind", entry.Name())
		}
	}
}
