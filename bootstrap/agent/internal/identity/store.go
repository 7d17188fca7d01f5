// Package identity keeps the machine's keys, which are made here and never
// leave, and the certificates signed for them. It may import pki, the protocol
// and the release package's file names, and nothing that talks to anyone.
package identity

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/durable"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/bootstrap/release"
)

// ErrGone says that a machine that had certificates has none any more.
var ErrGone = errors.New("the machine was enrolled and its identity is gone")

// Machine is who the certificates are for.
type Machine struct {
	ClusterUID string
	UID        string
	Address    net.IP
}

// Store is the identity on disk:
//
//	DIR/identity              symbolic link to the generation in use
//	DIR/identities/N/         one generation: keys, leaves, authorities
//
// A generation is never changed. A new one is written whole beside it and the
// link moved in one step, so that a certificate never meets another's key
// (F139). Safe for concurrent use.
type Store struct {
	dir     string
	machine Machine
	roles   []role

	mu      sync.RWMutex
	current generation
	pending map[string]*ecdsa.PrivateKey // new keys that certificates were asked for
}

// generation is what one folder holds, read.
type generation struct {
	number       int
	keys         map[string]*ecdsa.PrivateKey // by role
	leaves       map[string]*x509.Certificate // empty before enrolment
	authorities  map[string]authorities
	certificates map[string]tls.Certificate
}

// role is one of the four certificates of a machine.
type role struct {
	name string
	leaf pki.Leaf
	ca   string // which authority signs it
	uses []x509.ExtKeyUsage
}

// Names of the files' stems: roles and authorities.
const (
	agent    = "agent"
	server   = "server"
	peer     = "peer"
	client   = "client"
	agentCA  = "agent-ca"
	clientCA = "client-ca"
	peerCA   = "peer-ca"
)

func rolesOf(m Machine) []role {
	ips := []net.IP{m.Address}
	serve, call := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	return []role{
		{agent, pki.Leaf{Name: pki.AgentName(m.UID), IPs: ips}, agentCA, []x509.ExtKeyUsage{serve}},
		{server, pki.Leaf{Name: pki.ServerName(m.UID), IPs: ips}, clientCA, []x509.ExtKeyUsage{serve}},
		// Peers dial each other with what they serve (F131).
		{peer, pki.Leaf{Name: pki.PeerName(m.ClusterUID), IPs: ips}, peerCA, []x509.ExtKeyUsage{serve, call}},
		{client, pki.Leaf{Name: pki.ProbeName(m.UID)}, clientCA, []x509.ExtKeyUsage{call}},
	}
}

// Open reads the identity below dir, or makes its keys if there is none.
// enrolled says that there must be certificates: ErrGone if there are not.
func Open(dir string, m Machine, enrolled bool) (*Store, error) {
	s := &Store{dir: dir, machine: m, roles: rolesOf(m)}
	_, err := os.Stat(s.link())
	switch {
	case errors.Is(err, os.ErrNotExist) && enrolled:
		return nil, ErrGone
	case errors.Is(err, os.ErrNotExist):
		if err := s.create(); err != nil {
			return nil, fmt.Errorf("making the machine's keys: %w", err)
		}
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("reading the machine's identity: %w", err)
	}
	if s.current, err = s.load(); err != nil {
		return nil, fmt.Errorf("reading the machine's identity: %w", err)
	}
	if enrolled && len(s.current.leaves) == 0 {
		return nil, ErrGone
	}
	return s, nil
}

func (s *Store) create() error {
	keys, err := s.newKeys()
	if err != nil {
		return err
	}
	files, err := keyFiles(keys)
	if err != nil {
		return err
	}
	if err := s.write(1, files); err != nil {
		return err
	}
	s.current = generation{number: 1, keys: keys}
	return nil
}

func (s *Store) newKeys() (map[string]*ecdsa.PrivateKey, error) {
	keys := map[string]*ecdsa.PrivateKey{}
	for _, r := range s.roles {
		key, err := pki.NewKey()
		if err != nil {
			return nil, err
		}
		keys[r.name] = key
	}
	return keys, nil
}

func keyFiles(keys map[string]*ecdsa.PrivateKey) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, key := range keys {
		raw, err := pki.MarshalKey(key)
		if err != nil {
			return nil, err
		}
		files[name+".key"] = raw
	}
	return files, nil
}

// write makes generation n of the files and the link point to it.
func (s *Store) write(n int, files map[string][]byte) error {
	folder := s.folder(n)
	// What a crash left of an earlier attempt.
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name, raw := range files {
		if err := durable.Create(filepath.Join(folder, name), raw); err != nil {
			return err
		}
	}
	if err := errors.Join(durable.SyncDir(folder), durable.SyncDir(filepath.Dir(folder))); err != nil {
		return err
	}
	return durable.PointTo(s.link(), filepath.Join(generations, filepath.Base(folder)))
}

const generations = "identities"

func (s *Store) link() string        { return filepath.Join(s.dir, "identity") }
func (s *Store) folder(n int) string { return filepath.Join(s.dir, generations, fmt.Sprint(n)) }

// Enrolled says whether there are certificates.
func (s *Store) Enrolled() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.current.leaves) > 0
}

// Generation counts the identities that were installed; it starts at 1.
func (s *Store) Generation() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.current.number
}

// EtcdFiles is where etcd finds its certificates. The paths are always the
// same, and etcd reads leaves and keys anew at every handshake.
func (s *Store) EtcdFiles() release.Files {
	at := func(name string) string { return filepath.Join(s.link(), name) }
	return release.Files{
		ServerCert: at(server + ".crt"), ServerKey: at(server + ".key"), ClientCA: at(clientCA + ".crt"),
		PeerCert: at(peer + ".crt"), PeerKey: at(peer + ".key"), PeerCA: at(peerCA + ".crt"),
	}
}

// Requests asks certificates for the keys in use or, when fresh, for new ones,
// which are kept in memory until certificates for them are installed.
func (s *Store) Requests(fresh bool) (protocol.Requests, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.current.keys
	if fresh {
		if s.pending == nil {
			made, err := s.newKeys()
			if err != nil {
				return protocol.Requests{}, err
			}
			s.pending = made
		}
		keys = s.pending
	}
	requests := map[string]string{}
	for _, r := range s.roles {
		raw, err := pki.Request(keys[r.name], r.leaf)
		if err != nil {
			return protocol.Requests{}, err
		}
		requests[r.name] = string(raw)
	}
	return protocol.Requests{
		MachineUID: s.machine.UID,
		Agent:      requests[agent], Server: requests[server], Peer: requests[peer], Client: requests[client],
	}, nil
}
