package observe

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	agentclient "github.com/etcdmanager/etcdmanager/bootstrap/agent/client"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
)

// identityLife is how long the controller's own certificates are good for.
// They exist in memory only and are made anew at half of it.
const identityLife = 24 * time.Hour

// Taps see every call to agents and to etcd, and its answer before anyone else
// does. Tests end the process there, or lose the answer.
type Taps struct {
	Agents func(http.RoundTripper) http.RoundTripper
	Etcd   grpc.UnaryClientInterceptor
}

// Contact is what is needed to talk to one machine: its agent and its etcd.
type Contact struct {
	Agent *agentclient.Client
	Etcd  *clientv3.Client
	// firstContact says that the agent last presented its bootstrap identity.
	firstContact atomic.Bool
	clusterUID   string
	address      string
	made         time.Time
}

// contacts keeps one Contact per machine UID.
type contacts struct {
	taps Taps
	mu   sync.Mutex
	by   map[string]*Contact
}

func (c *contacts) get(clusterUID, machineUID, address string, a credentials.Authorities, now time.Time) (*Contact, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.by[machineUID]
	if have != nil && have.address == address && now.Sub(have.made) < identityLife/2 {
		return have, nil
	}
	made, err := c.make(clusterUID, machineUID, address, a, now)
	if err != nil {
		return nil, fmt.Errorf("make clients for %s: %w", address, err)
	}
	if have != nil {
		have.close()
	}
	c.by[machineUID] = made
	return made, nil
}

func (c *contacts) forget(drop func(clusterUID, machineUID string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, contact := range c.by {
		if drop(contact.clusterUID, uid) {
			contact.close()
			delete(c.by, uid)
		}
	}
}

func (c *Contact) close() {
	c.Agent.CloseIdle()
	_ = c.Etcd.Close()
}

func (all *contacts) make(clusterUID, machineUID, address string, a credentials.Authorities, now time.Time) (*Contact, error) {
	c := &Contact{clusterUID: clusterUID, address: address, made: now}
	certPEM, keyPEM, err := a.Agent.IssuePair(pki.Leaf{Name: pki.ControllerName(clusterUID), Usage: pki.Client, Life: identityLife}, now)
	if err != nil {
		return nil, err
	}
	agentTLS, err := pki.ClientTLS(certPEM, keyPEM, a.Agent.CertPEM(), func(cn string) error {
		c.firstContact.Store(cn == pki.BootstrapName(machineUID))
		if cn != pki.AgentName(machineUID) && cn != pki.BootstrapName(machineUID) {
			return fmt.Errorf("%q answers where the agent of machine %s was expected", cn, machineUID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.Agent = agentclient.New(net.JoinHostPort(address, strconv.Itoa(bootstrap.PortAgent)), agentTLS)
	if all.taps.Agents != nil {
		c.Agent.Tap(all.taps.Agents)
	}

	etcdTLS, err := etcdTLS(a.Client, now)
	if err != nil {
		return nil, err
	}
	// A member that comes back is to be seen soon: grpc would wait for up to
	// two minutes between two attempts.
	options := []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		MinConnectTimeout: 2 * time.Second,
	})}
	if all.taps.Etcd != nil {
		options = append(options, grpc.WithChainUnaryInterceptor(all.taps.Etcd))
	}
	c.Etcd, err = clientv3.New(clientv3.Config{
		Endpoints: []string{ClientURL(address)}, TLS: etcdTLS, Logger: zap.NewNop(),
		DialOptions: options,
		DialTimeout: 2 * time.Second, DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
	})
	return c, err
}

func etcdTLS(authority *pki.Authority, now time.Time) (*tls.Config, error) {
	certPEM, keyPEM, err := authority.IssuePair(pki.Leaf{Name: pki.EtcdClientName(), Usage: pki.Client, Life: identityLife}, now)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.CertPEM())
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}

// ClientURL and PeerURL are where etcd on a machine is reached.
func ClientURL(address string) string { return memberURL(address, bootstrap.PortClient) }

// PeerURL is where other members reach it.
func PeerURL(address string) string { return memberURL(address, bootstrap.PortPeer) }

func memberURL(address string, port int) string {
	return "https://" + net.JoinHostPort(address, strconv.Itoa(port))
}
