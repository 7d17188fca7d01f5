package release

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFetchRefusals: whatever is wrong is said in one message that names the
// place, and nothing is left behind.
func TestFetchRefusals(t *testing.T) {
	archive := tarball(t, upstreamLike("v1"))
	sums := func(text string) func(*mirror) { return func(m *mirror) { m.files[sumsPath] = []byte(text) } }
	for _, test := range []struct {
		name   string
		change func(*mirror)
		sha256 map[string]string
		is     error
		want   string // MIRROR stands for its URL
	}{
		{"another archive than the sums say", func(m *mirror) { m.files[archivePath] = append(archive, 0) }, nil, ErrChecksum, "MIRROR" + archivePath + " has SHA-256 "},
		{"another archive than is pinned", func(*mirror) {}, map[string]string{someArch: digestOf(nil)}, ErrChecksum, "and should have " + digestOf(nil)},
		{"no archive", func(m *mirror) { delete(m.files, archivePath) }, nil, nil, "the mirror has no MIRROR" + archivePath},
		{"no sums", func(m *mirror) { delete(m.files, sumsPath) }, nil, nil, "the mirror has no MIRROR" + sumsPath},
		{"sums of other archives", sums(digestOf(nil) + "  other.tar.gz\n"), nil, nil, "MIRROR" + sumsPath + " has no digest of " + root + ".tar.gz"},
		{"sums that are none", sums("<html>" + root + ".tar.gz</html>"), nil, nil, "has no digest of"},
		{"sums without end", sums(strings.Repeat("x", maxSums+1)), nil, nil, "it has more than 1048576 bytes"},
		{"pinned for other machines only", func(*mirror) {}, map[string]string{"s390x": digestOf(archive)}, nil, "there are SHA-256 digests, but none for amd64"},
		{"pinned to nonsense", func(*mirror) {}, map[string]string{someArch: "ABC"}, nil, "not 64 hexadecimal digits"},
		{"a mirror that fails", func(m *mirror) {
			m.instead = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
		}, nil, nil, "get MIRROR" + sumsPath + ": the mirror answers 502 Bad Gateway"},
		{"an archive that ends early", func(m *mirror) {
			m.instead = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != archivePath {
					return false
				}
				w.Header().Set("Content-Length", fmt.Sprint(len(archive)))
				_, _ = w.Write(archive[:len(archive)/2])
				return true
			}
		}, nil, nil, "get MIRROR" + archivePath + ": unexpected EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, f := newMirror(t, archive), newFetcher(t)
			test.change(m)
			_, err := f.Ensure(t.Context(), someVersion, m.URL, test.sha256, nil)
			want := strings.ReplaceAll(test.want, "MIRROR", m.URL)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("got  %v\nwant …%s…", err, want)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("it is not %v", test.is)
			}
			mustHaveNothing(t, f)
		})
	}
}

func TestFetchRefusesMirrors(t *testing.T) {
	for mirror, want := range map[string]string{
		"":                            "neither http(s)://HOST/… nor file:///…",
		"ftp://mirror.test":           "neither http(s)://HOST/… nor file:///…",
		"http://":                     "neither http(s)://HOST/… nor file:///…",
		"file://elsewhere/dir":        "neither http(s)://HOST/… nor file:///…",
		"file:relative":               "neither http(s)://HOST/… nor file:///…",
		"http://mirror.test/?a=b":     "without ? and #",
		"http://user:hunter2@[broken": "the mirror is not a URL",
	} {
		_, err := newFetcher(t).Ensure(t.Context(), someVersion, mirror, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want …%s…", mirror, err, want)
		}
	}
	if _, err := newFetcher(t).Ensure(t.Context(), "3.4.1", "http://mirror.test", nil, nil); err == nil {
		t.Error("an unknown version was asked for")
	}
}

func TestFetchSaysWhatIsMissing(t *testing.T) {
	empty := t.TempDir()
	_, err := newFetcher(t).Ensure(t.Context(), someVersion, "file://"+empty, nil, nil)
	missing := new(NotFoundError)
	if !errors.As(err, &missing) || missing.URL != "file://"+empty+sumsPath {
		t.Errorf("got %v", err)
	}
	if err := os.MkdirAll(filepath.Join(empty, sumsPath), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := newFetcher(t).Ensure(t.Context(), someVersion, "file://"+empty, nil, nil); err == nil || !strings.Contains(err.Error(), "it is not a file") {
		t.Errorf("a directory in place of a file: %v", err)
	}
}

// TestFetchHidesPasswords: user and password of a mirror are used, and are in
// no message. The port is one where nothing listens any more.
func TestFetchHidesPasswords(t *testing.T) {
	m := newMirror(t, tarball(t, upstreamLike("v1")))
	m.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "user" && password == "hunter2" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	host := strings.TrimPrefix(m.URL, "http://")
	with := "http://user:hunter2@" + host
	if _, err := newFetcher(t).Ensure(t.Context(), someVersion, with, nil, nil); err != nil {
		t.Fatal(err)
	}
	_, refused := newFetcher(t).Ensure(t.Context(), someVersion, "http://user:hunter3@"+host, nil, nil)
	m.Close()
	_, unreachable := newFetcher(t).Ensure(t.Context(), someVersion, with, nil, nil)
	for want, err := range map[string]error{"401 Unauthorized": refused, "connection refused": unreachable} {
		if err == nil || !strings.Contains(err.Error(), "get "+m.URL+sumsPath) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
		if strings.Contains(fmt.Sprint(err), "hunter") || strings.Contains(fmt.Sprint(err), "user") {
			t.Errorf("%v", err)
		}
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	m, f := newMirror(t, nil), newFetcher(t)
	ctx, cancel := context.WithCancel(t.Context())
	m.instead = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	if _, err := f.Ensure(ctx, someVersion, m.URL, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	mustHaveNothing(t, f)
}

// TestFetchRefusesArchives that are what their checksum says, and hostile.
func TestFetchRefusesArchives(t *testing.T) {
	with := func(more ...entry) []byte { return tarball(t, append(upstreamLike("v1"), more...)) }
	many := make([]entry, maxEntries+1)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("%s/%d", root, i)}
	}
	for _, test := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"up and out", with(entry{name: root + "/../../../escape"}), "is not a path inside the archive"},
		{"absolute", with(entry{name: "/tmp/escape"}), "is not a path inside the archive"},
		{"a symbolic link", with(entry{name: root + "/doc", link: "/etc/passwd", typeflag: tar.TypeSymlink}), "neither a file nor a directory"},
		{"a hard link", with(entry{name: root + "/doc", link: "/etc/passwd", typeflag: tar.TypeLink}), "neither a file nor a directory"},
		{"a device", with(entry{name: root + "/null", typeflag: tar.TypeChar}), "neither a file nor a directory"},
		{"a program that is a link", tarball(t, []entry{{name: root + "/etcd", link: "/bin/sh", typeflag: tar.TypeSymlink}}), "neither a file nor a directory"},
		{"a program that is a directory", tarball(t, []entry{{name: root + "/etcd/", typeflag: tar.TypeDir}}), "is not a file"},
		{"a program twice", with(entry{name: "./" + root + "/etcd", body: "other"}), "it has etcd twice"},
		{"a program too few", tarball(t, upstreamLike("v1")[:5]), "it has no etcd"},
		{"programs at another place", tarball(t, []entry{{name: "etcd"}, {name: "etcdctl"}, {name: "etcdutl"}}), "it has no etcd"},
		{"too many entries", with(many...), errTooLarge.Error()},
		{"not gzip", []byte("<html>not here</html>"), "gzip"},
		{"cut short", with()[:60], "EOF"},
		{"nothing", nil, "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, f := newMirror(t, test.archive), newFetcher(t)
			_, err := f.Ensure(t.Context(), someVersion, m.URL, nil, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "unpack "+root) {
				t.Errorf("got %v, want …%s…", err, test.want)
			}
			mustHaveNothing(t, f)
		})
	}
}
