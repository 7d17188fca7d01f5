package security

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
)

// caller is somebody who knocks at a port.
type caller struct {
	pair     *tls.Certificate // nil: shows none
	max, min uint16           // versions of TLS; zero: Go's default
}

// knock answers nil if the caller is let in: if a request is answered over TLS,
// whatever the answer. It shows the certificate also where the server has said
// that it believes other authorities.
func knock(ctx context.Context, address string, c caller) error {
	conf := &tls.Config{InsecureSkipVerify: true, MaxVersion: c.max, MinVersion: c.min} //nolint:gosec // the server's refusal is asked for
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if c.pair == nil {
			return &tls.Certificate{}, nil
		}
		return c.pair, nil
	}
	dialer := &tls.Dialer{Config: conf}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if until, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(until); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", address); err != nil {
		return err
	}
	answer := make([]byte, 5)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if string(answer) != "HTTP/" {
		return fmt.Errorf("the answer begins with %q", answer)
	}
	return nil
}

// refused asserts that TLS itself turns a certificate away; that nobody listens
// would prove nothing.
func refused(t *testing.T, who, address string, pair *tls.Certificate) {
	t.Helper()
	err := knock(deadline(t), address, caller{pair: pair})
	if err == nil || !strings.Contains(err.Error(), "remote error: tls:") {
		t.Errorf("%s at %s: %v, want a refusal by TLS", who, address, err)
	}
}

func admitted(t *testing.T, who, address string, c caller) {
	t.Helper()
	if err := knock(deadline(t), address, c); err != nil {
		t.Errorf("%s at %s: %v, want an answer", who, address, err)
	}
}

// ports are all three of a machine of main. Each lets its own callers in and
// nobody else, those of the other two ports and of other clusters among them.
func ports(t *testing.T, f *fleet, disk []file) {
	m := f.Machine(f.clusters[0].Status.Members[0].Machine)
	address := m.Status.Address
	mainUID, otherUID := string(f.clusters[0].UID), string(f.clusters[1].UID)
	main, other := f.authorities[0], f.authorities[1]
	callers := map[string]*tls.Certificate{
		"nobody": nil,

		"a consumer":                    consumer(t, f, "main"),
		"another cluster's consumer":    consumer(t, f, "other"),
		"a consumer of the past":        issued(t, main.Client, pki.Leaf{Name: pki.ConsumerName(), Usage: pki.Client}, -2*time.Hour),
		"a server of etcd as a client":  issued(t, main.Client, pki.Leaf{Name: pki.ServerName("none"), Usage: pki.Server}, 0),
		"a peer":                        onDisk(t, disk, string(m.UID), "peer"),
		"another cluster's peer":        issued(t, other.Peer, pki.Leaf{Name: pki.PeerName(otherUID), IPs: local(address), Usage: pki.Peer}, 0),
		"another cluster's name":        issued(t, main.Peer, pki.Leaf{Name: pki.PeerName(otherUID), IPs: local(address), Usage: pki.Peer}, 0),
		"a peer by a foreign authority": issued(t, other.Peer, pki.Leaf{Name: pki.PeerName(mainUID), IPs: local(address), Usage: pki.Peer}, 0),
		"a peer by clients' authority":  issued(t, main.Client, pki.Leaf{Name: pki.PeerName(mainUID), IPs: local(address), Usage: pki.Peer}, 0),
		"a peer of the past":            issued(t, main.Peer, pki.Leaf{Name: pki.PeerName(mainUID), IPs: local(address), Usage: pki.Peer}, -2*time.Hour),

		"the controller":               issued(t, main.Agent, pki.Leaf{Name: pki.ControllerName(mainUID), Usage: pki.Client}, 0),
		"another cluster's controller": issued(t, other.Agent, pki.Leaf{Name: pki.ControllerName(otherUID), Usage: pki.Client}, 0),
		"a controller under its name":  issued(t, other.Agent, pki.Leaf{Name: pki.ControllerName(mainUID), Usage: pki.Client}, 0),
		"a controller of the past":     issued(t, main.Agent, pki.Leaf{Name: pki.ControllerName(mainUID), Usage: pki.Client}, -2*time.Hour),
		"a controller that may serve":  issued(t, main.Agent, pki.Leaf{Name: pki.ControllerName(mainUID), Usage: pki.Server}, 0),
		"an agent":                     onDisk(t, disk, string(m.UID), "agent"),
		"an agent that may call":       issued(t, main.Agent, pki.Leaf{Name: pki.AgentName(string(m.UID)), Usage: pki.Client}, 0),
		"a machine that boots":         issued(t, main.Agent, pki.Leaf{Name: pki.BootstrapName(string(m.UID)), Usage: pki.Server}, 0),
	}
	for port, own := range map[string]string{"2378": "the controller", "2379": "a consumer", "2380": "a peer"} {
		t.Run(port, func(t *testing.T) {
			at := net.JoinHostPort(address, port)
			for who, pair := range callers {
				// etcd lets in whomever clients' authority signed, so one of
				// its certificates with both usages is a client.
				if who != own && (port != "2379" || who != "a peer by clients' authority") {
					refused(t, who, at, pair)
				}
			}
			welcome := caller{pair: callers[own]}
			admitted(t, own, at, welcome)
			welcome.min, welcome.max = tls.VersionTLS10, tls.VersionTLS11
			if err := knock(deadline(t), at, welcome); err == nil || !strings.Contains(err.Error(), "protocol version") {
				t.Errorf("%s with TLS 1.1: %v, want a refusal", own, err)
			}
		})
	}
}

func local(address string) []net.IP { return []net.IP{net.ParseIP(address)} }

// issued is a certificate for an hour, which began as long ago as said.
func issued(t *testing.T, authority *pki.Authority, leaf pki.Leaf, since time.Duration) *tls.Certificate {
	t.Helper()
	leaf.Life = time.Hour
	cert, key, err := authority.IssuePair(leaf, time.Now().Add(since))
	if err != nil {
		t.Fatal(err)
	}
	return loaded(t, cert, key)
}

func loaded(t *testing.T, cert, key []byte) *tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// onDisk is an identity as a thief of the disk has it.
func onDisk(t *testing.T, disk []file, uid, name string) *tls.Certificate {
	t.Helper()
	content := map[string][]byte{}
	for _, each := range disk {
		if strings.Contains(each.path, "/"+uid+"/") {
			content[filepath.Base(each.path)] = each.content
		}
	}
	return loaded(t, content[name+".crt"], content[name+".key"])
}

func consumer(t *testing.T, f *fleet, cluster string) *tls.Certificate {
	t.Helper()
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: f.Namespace, Name: credentials.ClientSecret(cluster)}
	if err := f.API.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	return loaded(t, secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
}
