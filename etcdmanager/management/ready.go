package management

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

const (
	// startTimeout is how long a start may take at most. A cold machine with
	// two busy cores needs a good part of a minute.
	startTimeout = 3 * time.Minute
	probeEvery   = 100 * time.Millisecond
	probeTimeout = 5 * time.Second
	// startAttempts is how often a process may end before it is given up;
	// more than one, for a port that was taken just now.
	startAttempts = 3
)

// StartError says that a process did not become ready.
type StartError struct {
	Process string
	LogFile string
	Tail    string // the end of its log
	Err     error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s did not become ready: %v; its log %s ends with: %s", e.Process, e.Err, e.LogFile, e.Tail)
}

func (e *StartError) Unwrap() error { return e.Err }

// waitReady asks url until it answers 200.
func waitReady(ctx context.Context, c *child, client *http.Client, url string) error {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		err := probe(ctx, client, url)
		if err == nil {
			return nil
		}
		exits, exit := c.ended()
		if exits >= startAttempts {
			return c.failed(fmt.Errorf("it ended %d times, last with: %w", exits, exit))
		}
		select {
		case <-ctx.Done():
			return c.failed(fmt.Errorf("%w; last answer: %w", ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

func (c *child) failed(err error) error {
	return &StartError{Process: c.name, LogFile: c.logFile, Tail: tail(c.logFile), Err: err}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 512))
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: %s: %s", url, response.Status, body)
	}
	return nil
}

// httpClient speaks to a server of the authority's as the holder of a pair. It
// keeps no connection, so that nothing is left when probing is over.
func httpClient(caPEM []byte, holder pair) (*http.Client, error) {
	roots, err := pki.Pool(caPEM)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(holder.cert, holder.key)
	if err != nil {
		return nil, fmt.Errorf("read a client certificate: %w", err)
	}
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{cert},
		},
	}}, nil
}
