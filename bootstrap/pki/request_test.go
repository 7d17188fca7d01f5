package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var allowed = Leaf{
	Name:  AgentName("uid"),
	IPs:   []net.IP{net.ParseIP("127.1.2.3"), net.ParseIP("fd00::1")},
	DNS:   []string{"m1.etcd.test", "m1"},
	Usage: Server,
	Life:  time.Hour,
}

// rawRequest makes requests that Request never would.
func rawRequest(t testing.TB, key crypto.Signer, template *x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockRequest, Bytes: der})
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSignGivesWhatIsAllowed(t *testing.T) {
	a, key := newAuthority(t, "ca", noon), newKey(t)
	request, err := Request(key, Leaf{Name: allowed.Name, IPs: allowed.IPs[:1]})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := a.Sign(request, allowed, noon)
	if err != nil {
		t.Fatal(err)
	}
	cert := decode(t, signed)
	if cert.Subject.CommonName != allowed.Name || len(cert.IPAddresses) != 2 || !slices.Equal(cert.DNSNames, allowed.DNS) {
		t.Errorf("issued %q %v %v", cert.Subject.CommonName, cert.IPAddresses, cert.DNSNames)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		t.Error("issued for another key")
	}
	want, err := CertFingerprint(signed)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := RequestFingerprint(request); err != nil || got != want {
		t.Errorf("fingerprint of the request %s, %v; of the certificate %s", got, err, want)
	}
}

func TestSignNamesWhatIsInExcess(t *testing.T) {
	a, key := newAuthority(t, "ca", noon), newKey(t)
	spiffe := &url.URL{Scheme: "spiffe", Host: "x", Path: "/y"}
	for _, test := range []struct {
		name    string
		request x509.CertificateRequest
		want    []string
	}{
		{"another machine's name", x509.CertificateRequest{Subject: pkix.Name{CommonName: AgentName("other")}}, []string{`name "etcdmanager:agent:other"`}},
		{"no name", x509.CertificateRequest{}, []string{`name ""`}},
		{"an organization, which is a group to Kubernetes", x509.CertificateRequest{Subject: pkix.Name{CommonName: allowed.Name, Organization: []string{"system:masters"}}}, []string{"subject attribute 2.5.4.10"}},
		{"two names", x509.CertificateRequest{Subject: pkix.Name{CommonName: allowed.Name, ExtraNames: []pkix.AttributeTypeAndValue{
			{Type: commonName, Value: "first"}, {Type: commonName, Value: allowed.Name},
		}}}, []string{`name "first"`}},
		{"another machine's address", x509.CertificateRequest{Subject: pkix.Name{CommonName: allowed.Name}, IPAddresses: []net.IP{allowed.IPs[0], net.ParseIP("127.9.9.9")}}, []string{"IP 127.9.9.9"}},
		{"a wildcard", x509.CertificateRequest{Subject: pkix.Name{CommonName: allowed.Name}, DNSNames: []string{"*.etcd.test"}}, []string{`DNS name "*.etcd.test"`}},
		{"other kinds of names", x509.CertificateRequest{Subject: pkix.Name{CommonName: allowed.Name}, EmailAddresses: []string{"a@b.test"}, URIs: []*url.URL{spiffe}}, []string{`e-mail address "a@b.test"`, `URI "spiffe://x/y"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := a.Sign(rawRequest(t, key, &test.request), allowed, noon)
			excess := new(ExcessError)
			if !errors.As(err, &excess) {
				t.Fatalf("got %v, want an ExcessError", err)
			}
			if !slices.Equal(excess.Excess, test.want) || excess.Name != allowed.Name {
				t.Errorf("for %q in excess: %q, want %q", excess.Name, excess.Excess, test.want)
			}
		})
	}
}

// TestSignTakesSubsetsOnly: whatever addresses are asked for, the answer has
// the allowed ones, or there is none.
func TestSignTakesSubsetsOnly(t *testing.T) {
	a, key := newAuthority(t, "ca", noon), newKey(t)
	rapid.Check(t, func(t *rapid.T) {
		octets := rapid.SliceOfNDistinct(rapid.IntRange(1, 8), 0, 6, rapid.ID[int])
		ips := func(label string) (list []net.IP) {
			for _, octet := range octets.Draw(t, label) {
				list = append(list, net.IPv4(127, 0, 0, byte(octet)))
			}
			return list
		}
		asked := Leaf{Name: "m", IPs: ips("asked")}
		given := Leaf{Name: "m", IPs: ips("given"), Usage: Client, Life: time.Hour}
		subset := true
		for _, ip := range asked.IPs {
			subset = subset && strings.Contains(fmt.Sprint(given.IPs, " "), ip.String())
		}
		request, err := Request(key, asked)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := a.Sign(request, given, noon)
		if (err == nil) != subset {
			t.Fatalf("asked %v of %v: %v", asked.IPs, given.IPs, err)
		}
		if err == nil {
			cert, err := parseCert(signed)
			if err != nil || fmt.Sprint(cert.IPAddresses) != fmt.Sprint(given.IPs) {
				t.Fatalf("got %v, %v, want %v", cert.IPAddresses, err, given.IPs)
			}
		}
	})
}

func TestSignHonoursNoExtension(t *testing.T) {
	basicConstraints, err := asn1.Marshal(struct{ IsCA bool }{true})
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t, "ca", noon)
	request := rawRequest(t, newKey(t), &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: allowed.Name},
		ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: basicConstraints},
		},
	})
	signed, err := a.Sign(request, allowed, noon)
	if err != nil {
		t.Fatal(err)
	}
	if cert := decode(t, signed); cert.IsCA || cert.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("a machine became an authority: IsCA %t, usage %b", cert.IsCA, cert.KeyUsage)
	}
}

func TestSignRefusesOddRequests(t *testing.T) {
	a, key := newAuthority(t, "ca", noon), newKey(t)
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: allowed.Name}}
	good := rawRequest(t, key, template)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	forged, _ := pem.Decode(good)
	theirs, _ := pem.Decode(rawRequest(t, newKey(t), template))
	// Same length but for the signature: another key's information, this one's signature.
	swapped := bytes.Replace(forged.Bytes, spki(t, forged.Bytes), spki(t, theirs.Bytes), 1)
	for name, test := range map[string]struct {
		request []byte
		want    string
	}{
		"key not possessed": {pem.EncodeToMemory(&pem.Block{Type: blockRequest, Bytes: swapped}), "not signed by its own key"},
		"P-384":             {rawRequest(t, p384, template), "not ECDSA P-256"},
		"RSA":               {rawRequest(t, rsaKey, template), "not ECDSA P-256"},
		"nothing":           {nil, "exactly one PEM block"},
		"a certificate":     {a.CertPEM(), "exactly one PEM block"},
		"two of them":       {append(slices.Clone(good), good...), "exactly one PEM block"},
		"cut short":         {pem.EncodeToMemory(&pem.Block{Type: blockRequest, Bytes: forged.Bytes[:50]}), "read a certificate request"},
	} {
		if _, err := a.Sign(test.request, allowed, noon); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want …%s…", name, err, test.want)
		}
	}
}

func spki(t testing.TB, der []byte) []byte {
	t.Helper()
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	return request.RawSubjectPublicKeyInfo
}

func FuzzSign(f *testing.F) {
	a, key := newAuthority(f, "ca", noon), newKey(f)
	good, err := Request(key, allowed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(a.CertPEM())
	f.Fuzz(func(t *testing.T, request []byte) {
		signed, err := a.Sign(request, allowed, noon)
		if err != nil {
			return
		}
		if cert := decode(t, signed); cert.IsCA || cert.Subject.CommonName != allowed.Name || len(cert.IPAddresses) != len(allowed.IPs) {
			t.Errorf("signed %v for a request that was allowed %v", cert.Subject, allowed)
		}
	})
}
