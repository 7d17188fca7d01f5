package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

const (
	maxBody       = 1 << 20 // bytes
	freshDeadline = 3 * time.Second
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
)

// handler does one method of one path and answers the document to send.
type handler func(m *machine, r *http.Request, body []byte) (any, error)

var routes = map[string]map[string]handler{
	"/v1/seen":     {http.MethodGet: getSeen},
	"/v1/requests": {http.MethodGet: getRequests},
	"/v1/member":   {http.MethodPut: putMember},
	"/v1/identity": {http.MethodPut: putIdentity},
}

func getSeen(m *machine, r *http.Request, _ []byte) (any, error) {
	if r.URL.Query().Get("fresh") == "1" {
		ctx, cancel := context.WithTimeout(r.Context(), freshDeadline)
		defer cancel()
		m.prober.probe(ctx)
	}
	return m.seen(), nil
}

func getRequests(m *machine, r *http.Request, _ []byte) (any, error) {
	return m.requests(r.URL.Query().Get("keys") == "new")
}

func putMember(m *machine, r *http.Request, body []byte) (any, error) {
	if err := m.putMember(r.Header.Get(protocol.EpochHeader), body); err != nil {
		return nil, err
	}
	return m.seen(), nil
}

func putIdentity(m *machine, r *http.Request, body []byte) (any, error) {
	if err := m.putIdentity(r.Header.Get(protocol.EpochHeader), body, m.stale(r)); err != nil {
		return nil, err
	}
	return m.seen(), nil
}

// generationKey is of the identity that was in use when a connection was made.
type generationKey struct{}

func newServer(m *machine) *http.Server {
	return &http.Server{
		Handler:           m,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(m.log.Handler(), slog.LevelDebug), // strangers that knock
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, generationKey{}, m.identity.Generation())
		},
	}
}

// stale says whether a request came over a connection that was made with an
// earlier identity: with the bootstrap identity, for one.
func (m *machine) stale(r *http.Request) bool {
	made, ok := r.Context().Value(generationKey{}).(int)
	return !ok || made != m.identity.Generation()
}

func (m *machine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if problem := recover(); problem != nil {
			m.log.Error("a request panicked", "path", r.URL.Path, "panic", problem)
			answer(w, http.StatusInternalServerError, protocol.Refusal{Code: "Internal", Message: "see the agent's log"})
		}
	}()
	document, err := m.dispatch(w, r)
	if m.stale(r) {
		// Its next request comes over a connection with the identity in use.
		w.Header().Set("Connection", "close")
	}
	status := http.StatusOK
	var declined *refusal
	switch {
	case errors.As(err, &declined):
		status, document = declined.httpStatus(), protocol.Refusal{Code: declined.code, Message: declined.message}
	case err != nil:
		m.log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		status, document = http.StatusInternalServerError, protocol.Refusal{Code: "Internal", Message: err.Error()}
	}
	if r.Method == http.MethodPut {
		outcome := "done"
		if err != nil {
			outcome = err.Error()
		}
		m.log.Info("command", "path", r.URL.Path, "epoch", r.Header.Get(protocol.EpochHeader), "status", status, "outcome", outcome)
	}
	answer(w, status, document)
}

func (m *machine) dispatch(w http.ResponseWriter, r *http.Request) (any, error) {
	methods, ok := routes[r.URL.Path]
	if !ok {
		return nil, &refusal{code: protocol.CodeInvalid, status: http.StatusNotFound, message: "there is no " + r.URL.Path}
	}
	handle, ok := methods[r.Method]
	if !ok {
		for method := range methods {
			w.Header().Set("Allow", method)
		}
		return nil, &refusal{code: protocol.CodeInvalid, status: http.StatusMethodNotAllowed, message: r.URL.Path + " can't be asked to " + r.Method}
	}
	if r.Method != http.MethodPut {
		return handle(m, r, nil)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !strings.EqualFold(kind, "application/json") {
		return nil, &refusal{code: protocol.CodeInvalid, status: http.StatusUnsupportedMediaType, message: "the body must be application/json"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &refusal{code: protocol.CodeInvalid, status: http.StatusRequestEntityTooLarge, message: "the body is too large"}
	case err != nil:
		return nil, refuse(protocol.CodeInvalid, "the body could not be read: %v", err)
	}
	return handle(m, r, body)
}

func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error is the caller's connection, which it notices itself.
	_ = json.NewEncoder(w).Encode(document)
}
