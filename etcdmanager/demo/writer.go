package demo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Each write has a deadline of its own; between two is a short pause.
const (
	writeDeadline = time.Second
	writePause    = 20 * time.Millisecond
)

// count is what a writer saw.
type count struct {
	attempts, failures int
	gap                time.Duration // longest time between two writes that succeeded
}

// writer writes to etcd as a consumer, with a consumer's certificate.
type writer struct {
	cancel context.CancelFunc
	once   sync.Once
	done   chan count
	last   count
}

func startWriter(endpoints []string, f files) (*writer, error) {
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("load the writer's certificate: %w", err)
	}
	ca, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, fmt.Errorf("load the writer's authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, Logger: zap.NewNop(),
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool},
	})
	if err != nil {
		return nil, fmt.Errorf("make the writer's client: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &writer{cancel: cancel, done: make(chan count, 1)}
	go func() {
		defer func() { _ = etcd.Close() }()
		w.done <- write(ctx, etcd)
	}()
	return w, nil
}

func write(ctx context.Context, etcd *clientv3.Client) count {
	var c count
	last := time.Now()
	tick := time.NewTicker(writePause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return c
		case <-tick.C:
		}
		c.attempts++
		one, cancel := context.WithTimeout(ctx, writeDeadline)
		_, err := etcd.Put(one, "demo/writer", fmt.Sprint(c.attempts))
		cancel()
		if err != nil && ctx.Err() == nil {
			c.failures++
			continue
		}
		c.gap = max(c.gap, time.Since(last))
		last = time.Now()
	}
}

// stop ends the writer and tells what it saw; more than once is harmless.
func (w *writer) stop() count {
	w.once.Do(func() {
		w.cancel()
		w.last = <-w.done
	})
	return w.last
}
