package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// ExcessError says that a certificate request asked for more than its sender
// may have.
type ExcessError struct {
	Name   string   // whom the certificate would be for
	Excess []string // what was asked beyond that, for example `IP 10.0.0.9`
}

func (e *ExcessError) Error() string {
	return fmt.Sprintf("the certificate request for %q asks for more than it may have: %s", e.Name, strings.Join(e.Excess, ", "))
}

// Request makes a certificate request in PEM for the leaf's name and addresses.
// Usage and life are not in it: who signs decides them.
func Request(key *ecdsa.PrivateKey, leaf Leaf) ([]byte, error) {
	template := &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: leaf.Name},
		IPAddresses: leaf.IPs,
		DNSNames:    leaf.DNS,
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate request of %q: %w", leaf.Name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockRequest, Bytes: der}), nil
}

// Sign answers a certificate request. The request only proves possession of
// the key and may not ask for more than is allowed, which is an *ExcessError;
// what the certificate says is what is allowed, whatever else was asked.
func (a *Authority) Sign(csrPEM []byte, allowed Leaf, now time.Time) ([]byte, error) {
	request, err := parseRequest(csrPEM)
	if err != nil {
		return nil, fmt.Errorf("sign for %q: %w", allowed.Name, err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("sign for %q: the request is not signed by its own key: %w", allowed.Name, err)
	}
	if key, ok := request.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("sign for %q: the request's key is not ECDSA P-256", allowed.Name)
	}
	if excess := excessOf(request, allowed); len(excess) > 0 {
		return nil, fmt.Errorf("sign: %w", &ExcessError{Name: allowed.Name, Excess: excess})
	}
	return a.Issue(allowed, request.PublicKey, now)
}

// RequestFingerprint is the SHA-256 in hex of the SubjectPublicKeyInfo that a
// certificate request is for: it tells a repeated request from one for another
// key.
func RequestFingerprint(csrPEM []byte) (string, error) {
	request, err := parseRequest(csrPEM)
	if err != nil {
		return "", err
	}
	return fingerprint(request.RawSubjectPublicKeyInfo), nil
}

func parseRequest(csrPEM []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(csrPEM)
	if block == nil || block.Type != blockRequest || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("read a certificate request: it is not exactly one PEM block " + blockRequest)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read a certificate request: %w", err)
	}
	return request, nil
}

func excessOf(request *x509.CertificateRequest, allowed Leaf) []string {
	var excess []string
	if request.Subject.CommonName == "" {
		excess = append(excess, `name ""`)
	}
	for _, attribute := range request.Subject.Names { // there may be several names
		switch {
		case !attribute.Type.Equal(commonName):
			excess = append(excess, fmt.Sprintf("subject attribute %s", attribute.Type))
		case attribute.Value != any(allowed.Name):
			excess = append(excess, fmt.Sprintf("name %q", attribute.Value))
		}
	}
	for _, ip := range request.IPAddresses {
		if !slices.ContainsFunc(allowed.IPs, func(known net.IP) bool { return known.Equal(ip) }) {
			excess = append(excess, "IP "+ip.String())
		}
	}
	for _, name := range request.DNSNames {
		if !slices.Contains(allowed.DNS, name) {
			excess = append(excess, fmt.Sprintf("DNS name %q", name))
		}
	}
	for _, address := range request.EmailAddresses {
		excess = append(excess, fmt.Sprintf("e-mail address %q", address))
	}
	for _, uri := range request.URIs {
		excess = append(excess, fmt.Sprintf("URI %q", uri.Redacted()))
	}
	return excess
}

// commonName is the object identifier id-at-commonName.
var commonName = []int{2, 5, 4, 3}
