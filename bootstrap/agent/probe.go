package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/datadir"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

const (
	probeDeadline = 2 * time.Second
	// probeKey is read to see whether reads are answered. It need not exist.
	probeKey = "etcdmanager.io/probe"
)

// prober asks the machine's own etcd what a client would see.
type prober struct {
	url      string
	interval time.Duration
	tls      func() *tls.Config // nil before enrolment
	running  func() bool

	turn chan struct{} // holds one token: one probe at a time

	mu   sync.Mutex
	last protocol.Probe
}

func newProber(opts Options, conf func() *tls.Config, running func() bool) *prober {
	p := &prober{url: opts.clientURL(), interval: opts.ProbeInterval, tls: conf, running: running, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

func (p *prober) run(ctx context.Context) {
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	for {
		p.probe(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *prober) latest() protocol.Probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// probe takes a probe of its own, begun after the call. When ctx ends before
// its turn comes, the last one stays.
func (p *prober) probe(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-p.turn:
	}
	defer func() { p.turn <- struct{}{} }()
	result := p.ask(ctx)
	result.At = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = result
}

func (p *prober) ask(ctx context.Context) protocol.Probe {
	conf := p.tls()
	if conf == nil || !p.running() {
		return protocol.Probe{Error: "etcd does not run"}
	}
	ctx, cancel := context.WithTimeout(ctx, probeDeadline)
	defer cancel()
	// A client of its own for every probe: it meets etcd as a new client
	// would, with the certificates of this moment.
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{p.url},
		TLS:       conf,
		Context:   ctx,
		Logger:    zap.NewNop(),
	})
	if err != nil {
		return protocol.Probe{Error: err.Error()}
	}
	defer func() { _ = client.Close() }()
	read := make(chan error, 1)
	go func() {
		_, err := client.Get(ctx, probeKey, clientv3.WithCountOnly())
		read <- err
	}()
	result, err := status(ctx, client, p.url)
	readErr := <-read
	if err != nil {
		return protocol.Probe{Error: err.Error()}
	}
	switch {
	case result.Learner: // refuses linearizable reads by design
	case readErr == nil, errors.Is(readErr, rpctypes.ErrPermissionDenied): // answered, if only to decline
		result.Serving = true
	default:
		result.Error = fmt.Sprintf("linearizable read: %v", readErr)
	}
	return result
}

func status(ctx context.Context, client *clientv3.Client, url string) (protocol.Probe, error) {
	resp, err := client.Status(ctx, url)
	if err != nil {
		return protocol.Probe{}, fmt.Errorf("status: %w", err)
	}
	result := protocol.Probe{
		MemberID:     datadir.Hex(resp.Header.GetMemberId()),
		ClusterID:    datadir.Hex(resp.Header.GetClusterId()),
		Learner:      resp.IsLearner,
		Version:      resp.Version,
		Term:         resp.RaftTerm,
		RaftIndex:    resp.RaftIndex,
		AppliedIndex: resp.RaftAppliedIndex,
		Revision:     resp.Header.GetRevision(),
		DBSize:       resp.DbSize,
		DBInUse:      resp.DbSizeInUse,
		Alarms:       alarms(resp.Errors),
	}
	if resp.Leader != 0 {
		result.Leader = datadir.Hex(resp.Leader)
	}
	return result, nil
}

// alarms reads them from a member's status. To list them is a proposal, which
// every probe would write to every log of the cluster.
func alarms(statusErrors []string) []string {
	var raised []string
	for _, alarm := range []string{"CORRUPT", "NOSPACE"} {
		if slices.ContainsFunc(statusErrors, func(text string) bool { return strings.Contains(text, alarm) }) {
			raised = append(raised, alarm)
		}
	}
	return raised
}
