package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

const (
	blockCert    = "CERTIFICATE"
	blockKey     = "PRIVATE KEY"
	blockRequest = "CERTIFICATE REQUEST"
)

// NewKey makes a private key on ECDSA P-256, the one kind in use.
func NewKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a private key: %w", err)
	}
	return key, nil
}

// MarshalKey writes a private key as PEM (PKCS #8), which etcd and openssl read.
func MarshalKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: der}), nil
}

// ParseKey reads what MarshalKey wrote. Its errors never contain the input.
func ParseKey(keyPEM []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil || block.Type != blockKey {
		return nil, errors.New("read a private key: there is no PEM block " + blockKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("read a private key: it is not PKCS #8")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("read a private key: it is not ECDSA P-256")
	}
	return key, nil
}

// NotAfter is when the first certificate in the PEM expires.
func NotAfter(certPEM []byte) (time.Time, error) {
	cert, err := parseCert(certPEM)
	if err != nil {
		return time.Time{}, err
	}
	return cert.NotAfter, nil
}

// CertFingerprint is the SHA-256 of the SubjectPublicKeyInfo of the first
// certificate in the PEM, in hex: of an authority's certificate it is what
// Authority.Fingerprint says.
func CertFingerprint(certPEM []byte) (string, error) {
	cert, err := parseCert(certPEM)
	if err != nil {
		return "", err
	}
	return fingerprint(cert.RawSubjectPublicKeyInfo), nil
}

// Pool reads a bundle of authorities' certificates. A bundle without any, or
// with anything else in it, is an error: an empty pool would otherwise come
// to mean "whomever the operating system believes".
func Pool(caPEM []byte) (*x509.CertPool, error) {
	pool, count := x509.NewCertPool(), 0
	for rest := caPEM; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != blockCert {
			return nil, fmt.Errorf("read authorities: there is a PEM block %q among them", block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read authorities: %w", err)
		}
		if !cert.IsCA {
			return nil, fmt.Errorf("read authorities: %q is not one", cert.Subject.CommonName)
		}
		pool.AddCert(cert)
	}
	if count == 0 {
		return nil, errors.New("read authorities: there are none")
	}
	return pool, nil
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockCert, Bytes: der})
}

func parseCert(certPEM []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != blockCert {
		return nil, errors.New("read a certificate: there is no PEM block " + blockCert)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read a certificate: %w", err)
	}
	return cert, nil
}
