package pki

import (
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"
)

func TestLeafUsages(t *testing.T) {
	a := newAuthority(t, "ca", noon)
	roots, err := Pool(a.CertPEM())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name           string
		usage          Usage
		server, client bool
	}{
		{"server", Server, true, false},
		{"client", Client, false, true},
		{"peer has both (F131)", Peer, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			issued, _, err := a.IssuePair(Leaf{Name: "x", Usage: test.usage, Life: time.Hour}, noon)
			if err != nil {
				t.Fatal(err)
			}
			for usage, want := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageServerAuth: test.server, x509.ExtKeyUsageClientAuth: test.client} {
				_, err := decode(t, issued).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: noon, KeyUsages: []x509.ExtKeyUsage{usage}})
				if (err == nil) != want {
					t.Errorf("usage %v: %v, want usable %t", usage, err, want)
				}
			}
		})
	}
}

func TestLeafLife(t *testing.T) {
	a := newAuthority(t, "ca", noon)
	lastDay := a.NotAfter().Add(-time.Hour)
	for _, test := range []struct {
		name     string
		now      time.Time
		life     time.Duration
		from, to time.Time
	}{
		{"backdated for slow clocks (F140)", noon, 48 * time.Hour, noon.Add(-time.Hour), noon.Add(48 * time.Hour)},
		{"not past its authority", lastDay, 48 * time.Hour, lastDay.Add(-time.Hour), a.NotAfter()},
	} {
		t.Run(test.name, func(t *testing.T) {
			issued, _, err := a.IssuePair(Leaf{Name: "x", Usage: Client, Life: test.life}, test.now)
			if err != nil {
				t.Fatal(err)
			}
			cert := decode(t, issued)
			if !cert.NotBefore.Equal(test.from) || !cert.NotAfter.Equal(test.to) {
				t.Errorf("valid %s to %s, want %s to %s", cert.NotBefore, cert.NotAfter, test.from, test.to)
			}
			if got, err := NotAfter(issued); err != nil || !got.Equal(test.to) {
				t.Errorf("NotAfter: %s, %v", got, err)
			}
		})
	}
}

func TestLeafRefusals(t *testing.T) {
	a := newAuthority(t, "ca", noon)
	for _, test := range []struct {
		name string
		leaf Leaf
		now  time.Time
		want string
	}{
		{"no name", Leaf{Life: time.Hour}, noon, "needs a name"},
		{"no life", Leaf{Name: "x"}, noon, "needs a life"},
		{"no such usage", Leaf{Name: "x", Life: time.Hour, Usage: 7}, noon, "no usage 7"},
		{"expired authority", Leaf{Name: "x", Life: time.Hour}, a.NotAfter(), `authority "ca" expired`},
	} {
		if _, _, err := a.IssuePair(test.leaf, test.now); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want …%s…", test.name, err, test.want)
		}
	}
}

func TestLeafAddressesAndSerials(t *testing.T) {
	a := newAuthority(t, "ca", noon)
	leaf := Leaf{Name: "x", IPs: []net.IP{net.ParseIP("127.3.2.1"), net.ParseIP("fd00::1")}, DNS: []string{"m1.etcd.test"}, Usage: Server, Life: time.Hour}
	serials := map[string]bool{}
	for range 10 {
		issued, _, err := a.IssuePair(leaf, noon)
		if err != nil {
			t.Fatal(err)
		}
		cert := decode(t, issued)
		for _, host := range []string{"127.3.2.1", "fd00::1", "m1.etcd.test"} {
			if err := cert.VerifyHostname(host); err != nil {
				t.Error(err)
			}
		}
		if cert.VerifyHostname("127.3.2.2") == nil || cert.VerifyHostname("x") == nil {
			t.Error("it serves a name that it was not issued for (F133)")
		}
		serials[cert.SerialNumber.String()] = true
	}
	if len(serials) != 10 {
		t.Errorf("10 certificates have %d serial numbers", len(serials))
	}
}

func TestNamesFitAndDiffer(t *testing.T) {
	const uid = "0b7f4c1e-2f53-4b5e-9a51-7c2f7c4f0a11"
	seen := map[string]bool{}
	for _, name := range []string{
		BootstrapName(uid), AgentName(uid), ControllerName(uid), PeerName(uid),
		ServerName(uid), ProbeName(uid), EtcdClientName(), ConsumerName(),
	} {
		if len(name) > 64 {
			t.Errorf("%s has %d characters; RFC 5280 allows a common name 64", name, len(name))
		}
		if strings.Contains(name, ",") {
			t.Errorf("%s would be two names in --peer-cert-allowed-cn", name)
		}
		if seen[name] {
			t.Errorf("%s is two holders' name", name)
		}
		seen[name] = true
	}
}
