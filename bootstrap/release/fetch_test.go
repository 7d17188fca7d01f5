package release

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestFetchFromEachKindOfMirror(t *testing.T) {
	archive := tarball(t, upstreamLike("v1"))
	m := newMirror(t, archive)
	disk := t.TempDir()
	for path, raw := range m.files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(disk, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(disk, path), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pinned := map[string]string{someArch: digestOf(archive), "arm64": digestOf(nil)}
	for _, test := range []struct {
		name, mirror string
		sha256       map[string]string
	}{
		{"http", m.URL, nil},
		{"http with a slash and a pinned digest", m.URL + "/", pinned},
		{"a directory", "file://" + disk, nil},
		{"a directory with a pinned digest", "file://localhost" + disk + "/", pinned},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFetcher(t)
			var seen []int64
			got, err := f.Ensure(t.Context(), someVersion, test.mirror, test.sha256, func(bytes int64) { seen = append(seen, bytes) })
			if err != nil {
				t.Fatal(err)
			}
			mustHold(t, got, "v1")
			if got.Dir != filepath.Join(f.Dir, "v"+someVersion) {
				t.Errorf("in %s", got.Dir)
			}
			if len(seen) == 0 || !slices.IsSorted(seen) || seen[len(seen)-1] != int64(len(archive)) {
				t.Errorf("progress %v of %d bytes", seen, len(archive))
			}
			if staged, _ := filepath.Glob(filepath.Join(f.Dir, ".staging*")); len(staged) > 0 {
				t.Errorf("left behind: %q", staged)
			}
		})
	}
}

// TestFetchPinnedNeedsNoSums: a mirror without SHA256SUMS will do then.
func TestFetchPinnedNeedsNoSums(t *testing.T) {
	archive := tarball(t, upstreamLike("v1"))
	m := newMirror(t, archive)
	delete(m.files, sumsPath)
	if _, err := newFetcher(t).Ensure(t.Context(), someVersion, m.URL, map[string]string{someArch: digestOf(archive)}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestFetchOnceOnly(t *testing.T) {
	archive := tarball(t, upstreamLike("v1"))
	m, f := newMirror(t, archive), newFetcher(t)
	first, err := f.Ensure(t.Context(), someVersion, m.URL, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	again, err := f.Ensure(t.Context(), someVersion, m.URL, map[string]string{someArch: digestOf(archive)}, nil)
	if err != nil || again != first {
		t.Errorf("without the network: %v, %v", again, err)
	}
	if _, err := f.Ensure(t.Context(), someVersion, m.URL, map[string]string{someArch: digestOf(nil)}, nil); err == nil {
		t.Error("what another archive held was answered")
	}
	mustHold(t, first, "v1")
}

func TestFetchReplacesWhatIsNotWhole(t *testing.T) {
	for name, damage := range map[string]func(Binaries) error{
		"a program cut short":     func(b Binaries) error { return os.Truncate(b.Etcd, 3) },
		"a program gone":          func(b Binaries) error { return os.Remove(b.Etcdutl) },
		"a program not to be run": func(b Binaries) error { return os.Chmod(b.Etcdctl, 0o644) },
		"a link":                  func(b Binaries) error { _ = os.Remove(b.Etcd); return os.Symlink("/bin/true", b.Etcd) },
		"no marker":               func(b Binaries) error { return os.Remove(filepath.Join(b.Dir, markerName)) },
		"a torn marker":           func(b Binaries) error { return os.Truncate(filepath.Join(b.Dir, markerName), 9) },
		"a file in its place":     func(b Binaries) error { _ = os.RemoveAll(b.Dir); return os.WriteFile(b.Dir, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			m, f := newMirror(t, tarball(t, upstreamLike("v1"))), newFetcher(t)
			got, err := f.Ensure(t.Context(), someVersion, m.URL, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(got); err != nil {
				t.Fatal(err)
			}
			if got, err = f.Ensure(t.Context(), someVersion, m.URL, nil, nil); err != nil {
				t.Fatal(err)
			}
			mustHold(t, got, "v1")
		})
	}
}

func TestFetchAnotherArchiveWhenAskedFor(t *testing.T) {
	m, f := newMirror(t, tarball(t, upstreamLike("v1"))), newFetcher(t)
	if _, err := f.Ensure(t.Context(), someVersion, m.URL, nil, nil); err != nil {
		t.Fatal(err)
	}
	rebuilt := tarball(t, upstreamLike("v2"))
	m.files[archivePath] = rebuilt
	got, err := f.Ensure(t.Context(), someVersion, m.URL, map[string]string{someArch: digestOf(rebuilt)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustHold(t, got, "v2")
}

// TestFetchSweeps removes what a killed fetch left, of this version and of
// others, and leaves alone what another process is at work on.
func TestFetchSweeps(t *testing.T) {
	m, f := newMirror(t, tarball(t, upstreamLike("v1"))), newFetcher(t)
	left := map[string]bool{"v" + someVersion: false, "v3.6.16": false, "v3.5.35": true} // whether it stays
	for version := range left {
		dir := filepath.Join(f.Dir, stagingPrefix+version, "release")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "etcd"), []byte("half"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := store{dir: f.Dir, version: "3.5.35"}.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	got, err := f.Ensure(t.Context(), someVersion, m.URL, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustHold(t, got, "v1")
	for version, stays := range left {
		if _, err := os.Stat(filepath.Join(f.Dir, stagingPrefix+version)); (err == nil) != stays {
			t.Errorf("staging of %s: %v, should stay: %t", version, err, stays)
		}
	}
}

func TestFetchManyAtOnce(t *testing.T) {
	m, f := newMirror(t, tarball(t, upstreamLike("v1"))), newFetcher(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := f.Ensure(t.Context(), someVersion, m.URL, nil, nil)
			if err != nil {
				t.Error(err)
				return
			}
			mustHold(t, got, "v1")
		})
	}
	group.Wait()
	if got := m.requests.Load(); got != 2 { // the sums and the archive
		t.Errorf("the mirror was asked %d times", got)
	}
}

func TestFetchWaitsForAnotherNoLongerThanItMay(t *testing.T) {
	m, f := newMirror(t, tarball(t, upstreamLike("v1"))), newFetcher(t)
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := store{dir: f.Dir, version: someVersion}.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := f.Ensure(ctx, someVersion, m.URL, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestFetchTheRealReleases installs what the tests run, as a machine would.
func TestFetchTheRealReleases(t *testing.T) {
	for _, version := range tested {
		t.Run(version, func(t *testing.T) {
			etcdBinary(t, version)
			dir, err := filepath.Abs(filepath.Join("..", "..", "bin", "testbin", "mirror"))
			if err != nil {
				t.Fatal(err)
			}
			f := &Fetcher{Dir: t.TempDir()}
			got, err := f.Ensure(t.Context(), version, "file://"+dir, nil, nil)
			if err != nil {
				t.Fatalf("%v; is the mirror there? run `make testbin`", err)
			}
			for program, args := range map[string][]string{got.Etcd: {"--version"}, got.Etcdctl: {"version"}, got.Etcdutl: {"version"}} {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
				cancel()
				if err != nil || !strings.Contains(string(out), version) {
					t.Errorf("%s: %v: %s", program, err, out)
				}
			}
		})
	}
}

// TestFetchOntoAFullDisk mounts a file system of 1 MB. Where that is not
// permitted, the same error comes from the check of the message alone.
func TestFetchOntoAFullDisk(t *testing.T) {
	full := t.TempDir()
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(full, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	noise := make([]byte, 2<<20)
	m, f := newMirror(t, noise), newFetcher(t)
	f.Dir = filepath.Join(full, "releases")
	_, err := f.Ensure(t.Context(), someVersion, m.URL, nil, nil)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk that holds "+f.Dir+" is full") {
		t.Errorf("got %v", err)
	}
	mustHaveNothing(t, f)
}

func TestFetchNeverLeavesTLS(t *testing.T) {
	next, err := http.NewRequest(http.MethodGet, "http://elsewhere.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := http.NewRequest(http.MethodGet, "https://mirror.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := staySecure(next, []*http.Request{first}); err == nil {
		t.Error("a redirect from https to http was followed")
	}
	if err := staySecure(first, []*http.Request{next}); err != nil {
		t.Errorf("a redirect from http to https: %v", err)
	}
}
