package client_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/client"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// agent is a server that answers as it is told; the real one is tested with
// this client in its own package.
func agent(t *testing.T, answer http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	c := client.New(strings.TrimPrefix(server.URL, "https://"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // pki's matter
	t.Cleanup(c.CloseIdle)
	return c
}

func TestPutMemberSaysWhatAndInWhoseName(t *testing.T) {
	c := agent(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var wanted protocol.Wanted
		if err := json.Unmarshal(body, &wanted); err != nil || wanted.Name != "m1" {
			t.Errorf("body %s: %v", body, err)
		}
		if r.Method != http.MethodPut || r.URL.Path != "/v1/member" || r.Header.Get(protocol.EpochHeader) != "42" ||
			r.Header.Get("Content-Type") != "application/json" || len(r.Header.Values("Idempotency-Key")) != 0 {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		_ = json.NewEncoder(w).Encode(protocol.Seen{Epoch: 42})
	})
	if seen, err := c.PutMember(t.Context(), 42, protocol.Wanted{Name: "m1"}); err != nil || seen.Epoch != 42 {
		t.Errorf("%+v, %v", seen, err)
	}
}

func TestRefusalsAreTold(t *testing.T) {
	c := agent(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(protocol.Refusal{Code: protocol.CodeFenced, Message: "never again"})
	})
	_, err := c.PutMember(t.Context(), 1, protocol.Wanted{})
	var refused *client.RefusedError
	if !errors.As(err, &refused) || refused.Code != protocol.CodeFenced || refused.Message != "never again" {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNoAnswerIsAnError(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"failed":             func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"4xx without a code": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/v1/other", http.StatusTemporaryRedirect)
		},
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"refusal":"`+strings.Repeat("x", 5<<20)+`"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := agent(t, answer).Seen(t.Context(), true)
			var refused *client.RefusedError
			if err == nil || errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCommandIsSentAgainOverANewConnection(t *testing.T) {
	var calls atomic.Int32
	c := agent(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 2 {
			// The agent ends right when the command arrives.
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = json.NewEncoder(w).Encode(protocol.Seen{})
	})
	for range 2 {
		if _, err := c.PutMember(t.Context(), 1, protocol.Wanted{}); err != nil {
			t.Fatal(err)
		}
	}
	if calls.Load() != 3 {
		t.Errorf("%d calls", calls.Load())
	}
}
