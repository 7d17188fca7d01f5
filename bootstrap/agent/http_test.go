package agent_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

func TestEveryRefusalIsADocument(t *testing.T) {
	t.Parallel()
	h := newCluster(t).newHost(t, "m1").start().enrol()
	pair, err := tls.X509KeyPair(h.cluster.cert, h.cluster.key)
	must(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}} //nolint:gosec // not what is tested
	defer transport.CloseIdleConnections()
	const kind = "application/json; charset=utf-8"
	for name, c := range map[string]struct {
		method, path, kind, epoch, body string
		status                          int
		code                            string
	}{
		"no such path":     {"GET", "/", kind, "", "", 404, protocol.CodeInvalid},
		"no such method":   {"DELETE", "/v1/member", kind, "1", "{}", 405, protocol.CodeInvalid},
		"get a member":     {"GET", "/v1/member", kind, "1", "", 405, protocol.CodeInvalid},
		"another type":     {"PUT", "/v1/member", "text/plain", "1", "{}", 415, protocol.CodeInvalid},
		"too large":        {"PUT", "/v1/member", kind, "1", `{"name":"` + strings.Repeat("x", 2<<20) + `"}`, 413, protocol.CodeInvalid},
		"no epoch":         {"PUT", "/v1/member", kind, "", "{}", 409, protocol.CodeStaleEpoch},
		"epoch not number": {"PUT", "/v1/member", kind, "newest", "{}", 409, protocol.CodeStaleEpoch},
		"not JSON":         {"PUT", "/v1/member", kind, "1", "name: m1", 400, protocol.CodeInvalid},
		"unknown field":    {"PUT", "/v1/member", kind, "1", `{"name":"m1","runs":true}`, 400, protocol.CodeInvalid},
		"two documents":    {"PUT", "/v1/member", kind, "1", `{"name":"m1"}{}`, 400, protocol.CodeInvalid},
		"unknown identity": {"PUT", "/v1/identity", kind, "1", `{"agents":""}`, 400, protocol.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, "https://"+h.opts.Address+":2378"+c.path, strings.NewReader(c.body))
			must(t, err)
			req.Header.Set("Content-Type", c.kind)
			if c.epoch != "" {
				req.Header.Set(protocol.EpochHeader, c.epoch)
			}
			resp, err := transport.RoundTrip(req)
			must(t, err)
			defer func() { _ = resp.Body.Close() }()
			raw, err := io.ReadAll(resp.Body)
			must(t, err)
			var got protocol.Refusal
			must(t, json.Unmarshal(raw, &got))
			if resp.StatusCode != c.status || got.Code != c.code || got.Message == "" {
				t.Errorf("status %d, %s", resp.StatusCode, raw)
			}
		})
	}
	if s := h.seen(); s.Wanted != nil {
		t.Errorf("something refused had an effect: %+v", s)
	}
}
