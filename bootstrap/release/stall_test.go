package release

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// lazyMirror answers in memory, and waits before every piece, so that a fetch
// can be watched under a clock that doesn't take its time.
type lazyMirror struct {
	files map[string][]byte
	wait  map[string]time.Duration // by path, before each piece of its file
	size  int                      // of a piece
}

func (l *lazyMirror) RoundTrip(r *http.Request) (*http.Response, error) {
	body := &lazyBody{ctx: r.Context(), rest: bytes.NewReader(l.files[r.URL.Path]), wait: l.wait[r.URL.Path], size: l.size}
	return &http.Response{StatusCode: http.StatusOK, Body: body, Request: r}, nil
}

type lazyBody struct {
	ctx  context.Context
	rest io.Reader
	wait time.Duration
	size int
}

func (l *lazyBody) Read(p []byte) (int, error) {
	select {
	case <-l.ctx.Done():
		return 0, l.ctx.Err()
	case <-time.After(l.wait):
		return l.rest.Read(p[:min(len(p), l.size)])
	}
}

func (l *lazyBody) Close() error { return nil }

// TestFetchIsPatientWhileBytesArrive: there is a limit to silence only.
func TestFetchIsPatientWhileBytesArrive(t *testing.T) {
	archive := tarball(t, upstreamLike("v1"))
	m := newMirror(t, archive)
	for _, test := range []struct {
		name string
		wait map[string]time.Duration
		want string // empty: it ends well
	}{
		{"slow for minutes", map[string]time.Duration{sumsPath: 29 * time.Second, archivePath: 29 * time.Second}, ""},
		{"silent in the sums", map[string]time.Duration{sumsPath: 31 * time.Second}, "get http://mirror.test" + sumsPath + ": nothing arrived for 30s"},
		{"silent in the archive", map[string]time.Duration{archivePath: 31 * time.Second}, "get http://mirror.test" + archivePath + ": nothing arrived for 30s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFetcher(t)
			f.Client = &http.Client{Transport: &lazyMirror{files: m.files, wait: test.wait, size: 1 + len(archive)/8}}
			synctest.Test(t, func(t *testing.T) {
				got, err := f.Ensure(t.Context(), someVersion, "http://mirror.test", nil, nil)
				if test.want == "" {
					if err != nil {
						t.Fatal(err)
					}
					mustHold(t, got, "v1")
					return
				}
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("got %v, want …%s…", err, test.want)
				}
				mustHaveNothing(t, f)
			})
		})
	}
}

// TestFetchLeavesASilentServer: a real connection is given up the same way.
func TestFetchLeavesASilentServer(t *testing.T) {
	m, f := newMirror(t, nil), newFetcher(t)
	f.Stall = time.Second
	m.instead = func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = w.Write([]byte("half a l"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	}
	_, err := f.Ensure(t.Context(), someVersion, m.URL, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "get "+m.URL+sumsPath+": nothing arrived for 1s") {
		t.Errorf("got %v", err)
	}
	mustHaveNothing(t, f)
}
