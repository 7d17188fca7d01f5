package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// ClientTLS is how the controller talks to an agent: TLS 1.3, its own
// certificate shown, and the agent known by the common name of a certificate
// from the authorities in caPEM. wantPeerName answers an error for a name that
// is not the agent meant.
func ClientTLS(certPEM, keyPEM, caPEM []byte, wantPeerName func(cn string) error) (*tls.Config, error) {
	if wantPeerName == nil {
		return nil, errors.New("TLS client: nothing says whom to talk to")
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("TLS client: load certificate and key: %w", err)
	}
	roots, err := Pool(caPEM)
	if err != nil {
		return nil, fmt.Errorf("TLS client: %w", err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		// The machine's UID identifies an agent and its address does not,
		// because addresses get reused (F163). Go's own verification can
		// only be had with the host name, so it is off, and VerifyConnection
		// does all of it but the host name: on every connection, resumed
		// ones included, and it fails closed.
		InsecureSkipVerify: true, //nolint:gosec // verified in VerifyConnection
		VerifyConnection: func(state tls.ConnectionState) error {
			return verifyServer(state.PeerCertificates, roots, wantPeerName)
		},
	}, nil
}

func verifyServer(chain []*x509.Certificate, roots *x509.CertPool, wantPeerName func(cn string) error) error {
	if len(chain) == 0 {
		return errors.New("the server showed no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, cert := range chain[1:] {
		intermediates.AddCert(cert)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("verify the server's certificate: %w", err)
	}
	if err := wantPeerName(chain[0].Subject.CommonName); err != nil {
		return fmt.Errorf("verify the server's name: %w", err)
	}
	return nil
}

// ServerTLS is how an agent serves: TLS 1.3, a client certificate required.
// Certificate and authorities are asked for at every handshake, so that new
// ones count at once; a client let in by old ones cannot come back by session
// resumption, as no tickets are given out. It speaks HTTP/1.1.
func ServerTLS(cert func() (*tls.Certificate, error), clientCAs func() *x509.CertPool, wantClientName func(cn string) error) *tls.Config {
	base := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true,
		NextProtos:             []string{"http/1.1"},
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.VerifiedChains) == 0 {
				return errors.New("the client's certificate is not verified")
			}
			if err := wantClientName(state.PeerCertificates[0].Subject.CommonName); err != nil {
				return fmt.Errorf("verify the client's name: %w", err)
			}
			return nil
		},
	}
	config := base.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pair, err := cert()
		if err != nil {
			return nil, fmt.Errorf("load the server's certificate: %w", err)
		}
		pool := clientCAs()
		if pool == nil {
			// Without a pool Go would believe the operating system's authorities.
			return nil, errors.New("there are no authorities to verify clients with")
		}
		handshake := base.Clone()
		handshake.Certificates = []tls.Certificate{*pair}
		handshake.ClientCAs = pool
		return handshake, nil
	}
	return config
}
