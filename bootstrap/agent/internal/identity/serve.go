package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// Agent is the agent's own certificate and whom it believes; nil before
// enrolment.
func (s *Store) Agent() (*tls.Certificate, *x509.CertPool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	cert, ok := s.current.certificates[agent]
	if !ok {
		return nil, nil
	}
	return &cert, s.current.authorities[agentCA].pool
}

// Probe is how the agent talks to its own etcd; nil before enrolment.
func (s *Store) Probe() *tls.Config {
	s.mu.RLock()
	defer s.mu.RUnlock()
	cert, ok := s.current.certificates[client]
	if !ok {
		return nil
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{cert},
		RootCAs:      s.current.authorities[clientCA].pool,
	}
}

// Certificates says what is on disk, in the order of the protocol.
func (s *Store) Certificates() []protocol.Certificate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []protocol.Certificate
	for _, r := range s.roles {
		leaf, ok := s.current.leaves[r.name]
		if !ok {
			continue
		}
		list = append(list, protocol.Certificate{
			Name:     r.name,
			NotAfter: leaf.NotAfter,
			Issuer:   s.current.authorities[r.ca].issuerOf(leaf),
		})
	}
	return list
}

// issuerOf is the fingerprint of the authority that signed the leaf: while
// authorities are rotated there are several of one name.
func (a authorities) issuerOf(leaf *x509.Certificate) string {
	for _, cert := range a.certs {
		if leaf.CheckSignatureFrom(cert) == nil {
			sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
			return hex.EncodeToString(sum[:])
		}
	}
	return ""
}
