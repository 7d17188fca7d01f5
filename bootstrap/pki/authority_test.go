package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

func newAuthority(t testing.TB, name string, now time.Time) *Authority {
	t.Helper()
	a, err := NewAuthority(name, now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func decode(t testing.TB, certPEM []byte) *x509.Certificate {
	t.Helper()
	cert, err := parseCert(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func keyPEM(t testing.TB, a *Authority) []byte {
	t.Helper()
	key, err := a.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestAuthorityIsGoodForLeavesOnly(t *testing.T) {
	cert := decode(t, newAuthority(t, "demo-etcd-peer", noon).CertPEM())
	if !cert.IsCA || cert.MaxPathLen != 0 || !cert.MaxPathLenZero {
		t.Errorf("IsCA %t, path length %d, zero %t", cert.IsCA, cert.MaxPathLen, cert.MaxPathLenZero)
	}
	if cert.KeyUsage&x509.KeyUsageDigitalSignature != 0 || len(cert.ExtKeyUsage) > 0 {
		t.Errorf("the authority could serve or dial itself: %v %v", cert.KeyUsage, cert.ExtKeyUsage)
	}
	if want := noon.Add(-time.Hour); !cert.NotBefore.Equal(want) { // F140
		t.Errorf("valid from %s, want %s", cert.NotBefore, want)
	}
	if want := noon.Add(10 * 365 * 24 * time.Hour); !cert.NotAfter.Equal(want) {
		t.Errorf("valid until %s, want %s", cert.NotAfter, want)
	}
}

func TestAuthorityReadBackSignsAlike(t *testing.T) {
	made := newAuthority(t, "demo-etcd-client", noon)
	read, err := ParseAuthority(made.CertPEM(), keyPEM(t, made))
	if err != nil {
		t.Fatal(err)
	}
	if made.Fingerprint() != read.Fingerprint() {
		t.Error("the fingerprint changed")
	}
	if of, err := CertFingerprint(made.CertPEM()); err != nil || of != made.Fingerprint() {
		t.Errorf("fingerprint of the certificate: %s, %v; of the authority: %s", of, err, made.Fingerprint())
	}
	issued, _, err := read.IssuePair(Leaf{Name: "x", Usage: Client, Life: time.Hour}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := decode(t, issued).CheckSignatureFrom(decode(t, made.CertPEM())); err != nil {
		t.Error(err)
	}
}

func TestParseAuthorityRefuses(t *testing.T) {
	a, other := newAuthority(t, "a", noon), newAuthority(t, "a", noon)
	leaf, leafKey, err := a.IssuePair(Leaf{Name: "leaf", Usage: Peer, Life: time.Hour}, noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		cert, key []byte
		want      string
	}{
		{"another authority's key", a.CertPEM(), keyPEM(t, other), "does not belong"},
		{"a leaf", leaf, leafKey, "not an authority's"},
		{"no certificate", nil, keyPEM(t, a), "no PEM block CERTIFICATE"},
		{"key in place of the certificate", keyPEM(t, a), keyPEM(t, a), "no PEM block CERTIFICATE"},
		{"certificate in place of the key", a.CertPEM(), a.CertPEM(), "no PEM block PRIVATE KEY"},
		{"key cut short", a.CertPEM(), pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: []byte("secret")}), "not PKCS #8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseAuthority(test.cert, test.key)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want …%s…", err, test.want)
			}
			for line := range bytes.Lines(test.key) {
				if body := strings.TrimSpace(string(line)); len(body) > 20 && !strings.HasPrefix(body, "---") && strings.Contains(err.Error(), body) {
					t.Errorf("the error has key material: %v", err)
				}
			}
		})
	}
}

func TestPoolHoldsABundleAndNothingElse(t *testing.T) {
	old, next := newAuthority(t, "ca", noon), newAuthority(t, "ca", noon)
	leaf, key, err := next.IssuePair(Leaf{Name: "leaf", Usage: Client, Life: time.Hour}, noon)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := Pool(append(old.CertPEM(), next.CertPEM()...))
	if err != nil {
		t.Fatal(err)
	}
	options := x509.VerifyOptions{Roots: pool, CurrentTime: noon, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := decode(t, leaf).Verify(options); err != nil {
		t.Errorf("the second authority of the bundle is not believed: %v", err)
	}
	for name, bundle := range map[string][]byte{
		"nothing": nil, "text": []byte("none"), "a leaf": leaf, "a key after it": append(old.CertPEM(), key...),
	} {
		if _, err := Pool(bundle); err == nil {
			t.Errorf("%s: taken for authorities", name)
		}
	}
}
