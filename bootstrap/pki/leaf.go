package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"time"
)

// Usage is what a leaf may be used for.
type Usage int

// Usages of a leaf. Peers of etcd dial each other with the certificate they
// serve, so theirs must have both usages or the cluster never forms (F131).
const (
	Server Usage = iota
	Client
	Peer // server and client
)

func (u Usage) extended() ([]x509.ExtKeyUsage, error) {
	switch u {
	case Server:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, nil
	case Client:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, nil
	case Peer:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, nil
	}
	return nil, fmt.Errorf("there is no usage %d", u)
}

// Leaf is what a certificate says of its holder.
type Leaf struct {
	Name  string        // the common name
	IPs   []net.IP      // from the machine's real addresses (F133)
	DNS   []string      // names that resolve to them
	Usage Usage         // what for
	Life  time.Duration // from now; never past the authority's own end
}

// Issue signs a leaf for a public key and answers it in PEM. It is valid one
// hour before now too, for slow clocks (F140), and ends with the authority at
// the latest.
func (a *Authority) Issue(leaf Leaf, pub crypto.PublicKey, now time.Time) ([]byte, error) {
	der, err := a.issue(leaf, pub, now)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate to %q: %w", leaf.Name, err)
	}
	return encodeCert(der), nil
}

func (a *Authority) issue(leaf Leaf, pub crypto.PublicKey, now time.Time) ([]byte, error) {
	switch {
	case leaf.Name == "":
		return nil, errors.New("it needs a name")
	case leaf.Life <= 0:
		return nil, errors.New("it needs a life")
	case !now.Before(a.cert.NotAfter):
		return nil, fmt.Errorf("authority %q expired at %s", a.cert.Subject.CommonName, a.cert.NotAfter.Format(time.RFC3339))
	}
	extended, err := leaf.Usage.extended()
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	notAfter := now.Add(leaf.Life)
	if notAfter.After(a.cert.NotAfter) {
		notAfter = a.cert.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: leaf.Name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           extended,
		BasicConstraintsValid: true,
		IPAddresses:           leaf.IPs,
		DNSNames:              leaf.DNS,
	}
	return x509.CreateCertificate(rand.Reader, template, a.cert, pub, a.key)
}

// IssuePair makes a key and issues its certificate: for holders that live where
// the authority does. Keys of machines are made on the machines; see Request.
func (a *Authority) IssuePair(leaf Leaf, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := NewKey()
	if err != nil {
		return nil, nil, err
	}
	if certPEM, err = a.Issue(leaf, key.Public(), now); err != nil {
		return nil, nil, err
	}
	if keyPEM, err = MarshalKey(key); err != nil {
		return nil, nil, err
	}
	return certPEM, keyPEM, nil
}
