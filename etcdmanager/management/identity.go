package management

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// leafLife of the certificates on loopback. They are renewed at a start that
// finds less than a third of it left.
const leafLife = 365 * 24 * time.Hour

// pair is a certificate with its key, in PEM.
type pair struct{ cert, key []byte }

// identities are an authority and its leaves in one folder: NAME.crt, NAME.key.
type identities struct {
	dir       string
	authority *pki.Authority
	now       time.Time
}

// openIdentities reads the authority in dir, or makes it.
func openIdentities(dir, name string, now time.Time) (*identities, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for certificates: %w", err)
	}
	ids := &identities{dir: dir, now: now}
	kept, err := ids.read("ca")
	if err == nil {
		if ids.authority, err = pki.ParseAuthority(kept.cert, kept.key); err != nil {
			return nil, fmt.Errorf("read the authority in %s: %w", dir, err)
		}
		return ids, nil
	}
	if !os.IsNotExist(err) {
		return nil, fmt.Errorf("read the authority in %s: %w", dir, err)
	}
	if ids.authority, err = pki.NewAuthority(name, now); err != nil {
		return nil, err
	}
	key, err := ids.authority.KeyPEM()
	if err != nil {
		return nil, fmt.Errorf("write the authority in %s: %w", dir, err)
	}
	return ids, ids.write("ca", pair{cert: ids.authority.CertPEM(), key: key})
}

func (ids *identities) certFile(name string) string { return filepath.Join(ids.dir, name+".crt") }
func (ids *identities) keyFile(name string) string  { return filepath.Join(ids.dir, name+".key") }

func (ids *identities) read(name string) (pair, error) {
	cert, err := os.ReadFile(ids.certFile(name))
	if err != nil {
		return pair{}, err
	}
	key, err := os.ReadFile(ids.keyFile(name))
	return pair{cert: cert, key: key}, err
}

// write puts the key first: a certificate that is there has its key.
func (ids *identities) write(name string, p pair) error {
	if err := writePrivate(ids.keyFile(name), p.key); err != nil {
		return err
	}
	return writePrivate(ids.certFile(name), p.cert)
}

// leaf answers the named pair: the one that is there, while it is good for
// what is asked, else a new one. Organizations are Kubernetes' groups.
func (ids *identities) leaf(name string, wanted pki.Leaf, organizations ...string) (pair, error) {
	if kept, err := ids.read(name); err == nil && ids.good(kept, wanted) {
		return kept, nil
	}
	wanted.Life = leafLife
	var made pair
	var err error
	if len(organizations) == 0 {
		made.cert, made.key, err = ids.authority.IssuePair(wanted, ids.now)
	} else {
		made, err = ids.issueTo(wanted, organizations)
	}
	if err != nil {
		return pair{}, fmt.Errorf("make the certificate %s: %w", ids.certFile(name), err)
	}
	return made, ids.write(name, made)
}

func (ids *identities) good(kept pair, wanted pki.Leaf) bool {
	loaded, err := tls.X509KeyPair(kept.cert, kept.key)
	if err != nil {
		return false
	}
	roots, err := pki.Pool(ids.authority.CertPEM())
	if err != nil {
		return false
	}
	_, err = loaded.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: ids.now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err == nil && loaded.Leaf.NotAfter.Sub(ids.now) > leafLife/3 &&
		slices.EqualFunc(loaded.Leaf.IPAddresses, wanted.IPs, net.IP.Equal)
}

// issueTo issues a client certificate whose holder is in groups, which leaves
// of etcd never are.
func (ids *identities) issueTo(leaf pki.Leaf, groups []string) (pair, error) {
	keyPEM, err := ids.authority.KeyPEM()
	if err != nil {
		return pair{}, err
	}
	signer, err := tls.X509KeyPair(ids.authority.CertPEM(), keyPEM)
	if err != nil {
		return pair{}, err
	}
	key, err := pki.NewKey()
	if err != nil {
		return pair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: leaf.Name, Organization: groups},
		NotBefore:             ids.now.Add(-time.Hour),
		NotAfter:              ids.now.Add(leaf.Life),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}, signer.Leaf, key.Public(), signer.PrivateKey)
	if err != nil {
		return pair{}, err
	}
	made := pair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	made.key, err = pki.MarshalKey(key)
	return made, err
}
