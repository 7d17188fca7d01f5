// Package client is the caller's side of the agent's protocol. It knows nothing
// of Kubernetes and of etcd, and never decides anything: it asks and tells.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

const (
	dialTimeout     = 5 * time.Second
	callTimeout     = 15 * time.Second
	maxAnswer       = 4 << 20 // bytes; a Seen is a few kilobytes
	idleConnTimeout = 30 * time.Second
)

// RefusedError is an agent's refusal: it was reached, it believed the caller,
// and it declined. Nothing was changed.
type RefusedError struct {
	Code    string // one of protocol.Code…
	Message string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused by the agent (%s): %s", e.Code, e.Message)
}

// Client talks to one agent. It may be used by many goroutines at once.
type Client struct {
	base string
	http *http.Client
}

// Tap puts something between the client and the network. It must be called
// before the first call.
func (c *Client) Tap(tap func(http.RoundTripper) http.RoundTripper) {
	c.http.Transport = tap(c.http.Transport)
}

// New returns a client of the agent at an address; without a port the agent's
// standard one is meant. The configuration is one of pki.ClientTLS. Nothing is
// dialled yet.
func New(address string, conf *tls.Config) *Client {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, strconv.Itoa(bootstrap.PortAgent))
	}
	return &Client{
		base: "https://" + address,
		http: &http.Client{
			Transport: &http.Transport{
				// Agents are never behind a proxy, whatever the environment says.
				Proxy:                 nil,
				DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
				TLSClientConfig:       conf,
				TLSHandshakeTimeout:   dialTimeout,
				ResponseHeaderTimeout: callTimeout,
				MaxIdleConnsPerHost:   1,
				IdleConnTimeout:       idleConnTimeout,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// CloseIdle closes connections that are not in use. The client stays usable.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Seen asks what is really there. When fresh, the agent probes etcd anew for
// this answer, which takes up to three seconds.
func (c *Client) Seen(ctx context.Context, fresh bool) (protocol.Seen, error) {
	path := "/v1/seen"
	if fresh {
		path += "?fresh=1"
	}
	var seen protocol.Seen
	err := c.call(ctx, http.MethodGet, path, 0, nil, &seen)
	return seen, err
}

// Requests asks for certificate requests for the keys the machine has.
func (c *Client) Requests(ctx context.Context) (protocol.Requests, error) {
	var requests protocol.Requests
	err := c.call(ctx, http.MethodGet, "/v1/requests", 0, nil, &requests)
	return requests, err
}

// NewRequests asks for certificate requests for new keys, which replace the
// present ones when certificates for them are put. Until then they live in the
// agent's memory only.
func (c *Client) NewRequests(ctx context.Context) (protocol.Requests, error) {
	var requests protocol.Requests
	err := c.call(ctx, http.MethodGet, "/v1/requests?keys=new", 0, nil, &requests)
	return requests, err
}

// PutMember declares the member that the machine is to run. It returns as soon
// as the agent has stored it; what comes of it is seen later.
func (c *Client) PutMember(ctx context.Context, epoch int64, wanted protocol.Wanted) (protocol.Seen, error) {
	var seen protocol.Seen
	err := c.call(ctx, http.MethodPut, "/v1/member", epoch, wanted, &seen)
	return seen, err
}

// PutIdentity hands over signed certificates. From then on the agent presents
// the new identity, so connections made before are given up.
func (c *Client) PutIdentity(ctx context.Context, epoch int64, identity protocol.Identity) (protocol.Seen, error) {
	var seen protocol.Seen
	err := c.call(ctx, http.MethodPut, "/v1/identity", epoch, identity, &seen)
	c.CloseIdle()
	return seen, err
}

func (c *Client) call(ctx context.Context, method, path string, epoch int64, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encoding the body of %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("asking the agent: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(protocol.EpochHeader, strconv.FormatInt(epoch, 10))
		// Every command may be repeated, so one that meets a connection which
		// the agent has just closed is sent again; the header itself is not.
		req.Header["Idempotency-Key"] = []string{}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking the agent: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	return decode(resp, out)
}

func decode(resp *http.Response, out any) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("reading the agent's answer: %w", err)
	}
	if len(raw) > maxAnswer {
		return fmt.Errorf("the agent's answer is larger than %d bytes", maxAnswer)
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		if err := json.Unmarshal(raw, out); err != nil {
			return fmt.Errorf("the agent's answer is not what was asked for: %w", err)
		}
		return nil
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		var refusal protocol.Refusal
		if json.Unmarshal(raw, &refusal) == nil && refusal.Code != "" {
			return &RefusedError{Code: refusal.Code, Message: refusal.Message}
		}
	}
	return fmt.Errorf("the agent answered %w", statusError(resp.StatusCode))
}

func statusError(code int) error {
	return errors.New(strconv.Itoa(code) + " " + http.StatusText(code))
}
