package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// InvalidError says why certificates were not taken. Nothing was changed.
type InvalidError struct{ Problem string }

func (e *InvalidError) Error() string { return e.Problem }

func invalid(format string, args ...any) error {
	return &InvalidError{Problem: fmt.Sprintf(format, args...)}
}

// authorities are whom to believe in one matter.
type authorities struct {
	pool  *x509.CertPool
	certs []*x509.Certificate
}

// Install checks the certificates against the machine's keys and puts all of
// them in use, or none: *InvalidError then.
func (s *Store) Install(id protocol.Identity, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	leaves := map[string]string{agent: id.Agent, server: id.Server, peer: id.Peer, client: id.Client}
	bundles := map[string]string{agentCA: id.AgentCA, clientCA: id.ClientCA, peerCA: id.PeerCA}
	next, err := s.check(leaves, bundles, now)
	if err != nil {
		return err
	}
	files, err := keyFiles(next.keys)
	if err != nil {
		return err
	}
	for name, text := range leaves {
		files[name+".crt"] = []byte(text)
	}
	for name, text := range bundles {
		files[name+".crt"] = []byte(text)
	}
	next.number = s.current.number + 1
	if err := s.write(next.number, files); err != nil {
		return fmt.Errorf("writing the machine's identity: %w", err)
	}
	// The one before stays until the next: etcd may be in the midst of reading it.
	outdated := s.folder(next.number - 2)
	s.current, s.pending = next, nil
	if err := os.RemoveAll(outdated); err != nil {
		return fmt.Errorf("removing an outdated identity: %w", err)
	}
	return nil
}

// check reads a whole generation and verifies that its parts belong together.
func (s *Store) check(leaves, bundles map[string]string, now time.Time) (generation, error) {
	next := generation{
		keys:         map[string]*ecdsa.PrivateKey{},
		leaves:       map[string]*x509.Certificate{},
		authorities:  map[string]authorities{},
		certificates: map[string]tls.Certificate{},
	}
	for name, text := range bundles {
		parsed, err := parseAuthorities(text)
		if err != nil {
			return generation{}, invalid("%s: %v", name, err)
		}
		next.authorities[name] = parsed
	}
	for _, r := range s.roles {
		leaf, err := r.parse(leaves[r.name])
		if err != nil {
			return generation{}, err
		}
		key := s.keyOf(r.name, leaf)
		if key == nil {
			return generation{}, invalid("the %s certificate is not for a key of this machine", r.name)
		}
		if err := r.verify(leaf, next.authorities[r.ca].pool, now); err != nil {
			return generation{}, err
		}
		next.keys[r.name], next.leaves[r.name] = key, leaf
		next.certificates[r.name] = tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	}
	return next, nil
}

func (s *Store) keyOf(name string, leaf *x509.Certificate) *ecdsa.PrivateKey {
	for _, keys := range []map[string]*ecdsa.PrivateKey{s.current.keys, s.pending} {
		if key := keys[name]; key != nil && key.PublicKey.Equal(leaf.PublicKey) {
			return key
		}
	}
	return nil
}

func (r role) parse(text string) (*x509.Certificate, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, invalid("the %s certificate is not exactly one PEM certificate", r.name)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, invalid("the %s certificate: %v", r.name, err)
	}
	if leaf.Subject.CommonName != r.leaf.Name {
		return nil, invalid("the %s certificate is for %q and not for %q", r.name, leaf.Subject.CommonName, r.leaf.Name)
	}
	for _, ip := range r.leaf.IPs {
		if err := leaf.VerifyHostname(ip.String()); err != nil {
			return nil, invalid("the %s certificate: %v", r.name, err) // F133
		}
	}
	return leaf, nil
}

func (r role) verify(leaf *x509.Certificate, roots *x509.CertPool, now time.Time) error {
	// Verify is content with any one of several usages, so each is asked for.
	for _, use := range r.uses {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use}})
		if err != nil {
			return invalid("the %s certificate, by this machine's clock %s: %v", r.name, now.UTC().Format(time.RFC3339), err)
		}
	}
	return nil
}

func parseAuthorities(text string) (authorities, error) {
	pool, err := pki.Pool([]byte(text))
	if err != nil {
		return authorities{}, err
	}
	parsed := authorities{pool: pool}
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return parsed, nil
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return authorities{}, err
		}
		parsed.certs = append(parsed.certs, cert)
	}
}

// load reads the generation that the link points to.
func (s *Store) load() (generation, error) {
	target, err := os.Readlink(s.link())
	if err != nil {
		return generation{}, err
	}
	found := generation{
		keys: map[string]*ecdsa.PrivateKey{}, leaves: map[string]*x509.Certificate{},
		authorities: map[string]authorities{}, certificates: map[string]tls.Certificate{},
	}
	if _, err := fmt.Sscan(filepath.Base(target), &found.number); err != nil {
		return generation{}, fmt.Errorf("%s points to %s", s.link(), target)
	}
	for _, r := range s.roles {
		if err := s.loadRole(&found, r); err != nil {
			return generation{}, err
		}
	}
	if len(found.leaves) == 0 {
		return found, nil
	}
	for _, name := range []string{agentCA, clientCA, peerCA} {
		raw, err := os.ReadFile(filepath.Join(s.link(), name+".crt"))
		if err != nil {
			return generation{}, err
		}
		if found.authorities[name], err = parseAuthorities(string(raw)); err != nil {
			return generation{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return found, nil
}

// loadRole does not look at the time: an expired identity is still the
// machine's, and can be renewed by a controller that knows.
func (s *Store) loadRole(into *generation, r role) error {
	raw, err := os.ReadFile(filepath.Join(s.link(), r.name+".key"))
	if err != nil {
		return err
	}
	key, err := pki.ParseKey(raw)
	if err != nil {
		return fmt.Errorf("%s key: %w", r.name, err)
	}
	into.keys[r.name] = key
	raw, err = os.ReadFile(filepath.Join(s.link(), r.name+".crt"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	leaf, err := r.parse(string(raw))
	if err != nil {
		return err
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return fmt.Errorf("the %s certificate is not for the key beside it", r.name)
	}
	into.leaves[r.name] = leaf
	into.certificates[r.name] = tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	return nil
}
