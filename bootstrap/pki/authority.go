package pki

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	// backdate makes certificates valid on machines whose clock is slow (F140).
	backdate = time.Hour
	// authorityLife is how long an authority is valid.
	authorityLife = 10 * 365 * 24 * time.Hour
)

// Authority is a certificate authority: ECDSA P-256, good for leaves only (its
// path length is zero). It is safe for concurrent use.
type Authority struct {
	cert    *x509.Certificate
	certPEM []byte
	key     *ecdsa.PrivateKey
}

// NewAuthority makes an authority with the given common name, valid for ten
// years from now and, for slow clocks, one hour before (F140).
func NewAuthority(name string, now time.Time) (*Authority, error) {
	if name == "" {
		return nil, errors.New("make authority: it needs a name")
	}
	key, err := NewKey()
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	return &Authority{cert: cert, certPEM: encodeCert(der), key: key}, nil
}

// ParseAuthority reads an authority back from the PEM of its certificate and
// of its key. It refuses a certificate that may not sign and a key that is not
// the certificate's. Errors never contain key material.
func ParseAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	cert, err := parseCert(certPEM)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	name := cert.Subject.CommonName
	if !cert.BasicConstraintsValid || !cert.IsCA || cert.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, fmt.Errorf("read authority: the certificate of %q is not an authority's", name)
	}
	key, err := ParseKey(keyPEM)
	if err != nil {
		return nil, fmt.Errorf("read authority %q: %w", name, err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("read authority %q: the key does not belong to the certificate", name)
	}
	return &Authority{cert: cert, certPEM: encodeCert(cert.Raw), key: key}, nil
}

// CertPEM is the authority's certificate, which is no secret.
func (a *Authority) CertPEM() []byte { return append([]byte(nil), a.certPEM...) }

// KeyPEM is the authority's private key. It belongs into one Secret that only
// the controller reads, and nowhere else.
func (a *Authority) KeyPEM() ([]byte, error) { return MarshalKey(a.key) }

// NotAfter is when the authority expires.
func (a *Authority) NotAfter() time.Time { return a.cert.NotAfter }

// Fingerprint is the SHA-256 of the authority's SubjectPublicKeyInfo in hex.
func (a *Authority) Fingerprint() string { return fingerprint(a.cert.RawSubjectPublicKeyInfo) }

func fingerprint(spki []byte) string {
	sum := sha256.Sum256(spki)
	return hex.EncodeToString(sum[:])
}

// newSerial draws 127 random bits, as unguessable as RFC 5280 allows.
func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	return serial.Add(serial, big.NewInt(1)), nil
}
