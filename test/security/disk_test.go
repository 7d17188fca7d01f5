package security

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// modes: nobody else on the host reads what is private. Releases are public.
func modes(t *testing.T, disk []file) {
	for _, each := range disk {
		if strings.Contains(each.path, "/releases/") || strings.HasSuffix(each.path, "/releases") {
			continue
		}
		if each.mode.Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o, open to others", each.path, each.mode.Perm())
		}
	}
}

// noWayBack: a machine's disk holds neither the address nor a credential of
// the management cluster, and its identities are worth nothing there.
func noWayBack(t *testing.T, f *fleet, disk []file) {
	conf := f.API.Config()
	api, err := url.Parse(conf.Host)
	if err != nil {
		t.Fatal(err)
	}
	needles := map[string][]byte{
		"the management API's address": []byte(api.Host),
		"a kubeconfig":                 []byte("current-context"),
		"a service account":            []byte("serviceaccount/token"),
		"the kubeconfig's path":        []byte(f.API.Kubeconfig()),
	}
	for what, text := range map[string][]byte{
		"the management API's authority": conf.CAData, "the operator's certificate": conf.CertData, "the operator's key": conf.KeyData,
	} {
		if len(text) == 0 {
			t.Fatalf("the management API's configuration lacks %s", what)
		}
		needles[what] = middle(t, text)
		needles[what+" in base64"] = []byte(base64.StdEncoding.EncodeToString(text)[200:280])
	}
	if conf.BearerToken != "" {
		needles["a token"] = []byte(conf.BearerToken)
	}
	for _, each := range disk {
		if isRelease(each) {
			continue // as the mirror has it; a program has all kinds of words in it
		}
		for what, needle := range needles {
			if bytes.Contains(each.content, needle) {
				t.Errorf("%s holds %s", each.path, what)
			}
		}
	}
	tryIdentities(t, f, conf, disk)
}

// isRelease says whether a file is a program of etcd's.
func isRelease(f file) bool {
	base := filepath.Base(f.path)
	return strings.Contains(f.path, "/releases/") && (base == "etcd" || base == "etcdctl" || base == "etcdutl")
}

// tryIdentities asks the management API for Secrets as each of a machine's
// identities.
func tryIdentities(t *testing.T, f *fleet, conf *rest.Config, disk []file) {
	tried := 0
	for _, each := range disk {
		cert, is := strings.CutSuffix(each.path, ".key")
		if !is {
			continue
		}
		for _, other := range disk {
			if other.path != cert+".crt" {
				continue
			}
			as := &rest.Config{Host: conf.Host, TLSClientConfig: rest.TLSClientConfig{CAData: conf.CAData, CertData: other.content, KeyData: each.content}}
			c, err := client.New(as, client.Options{Scheme: rig.Scheme(t)})
			if err == nil {
				err = c.List(deadline(t), &corev1.SecretList{}, client.InNamespace(f.Namespace))
			}
			if !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
				t.Errorf("list Secrets as %s: %v, want it forbidden", other.path, err)
			}
			tried++
		}
	}
	if tried < 4*4 {
		t.Errorf("%d identities were found on four machines, want four on each", tried)
	}
	if err := f.API.List(deadline(t), &corev1.SecretList{}, client.InNamespace(f.Namespace)); err != nil {
		t.Errorf("list Secrets as the operator: %v", err)
	}
}

// noAuthority: no key on a machine is an authority's.
func noAuthority(t *testing.T, f *fleet, disk []file) {
	authorities := map[string]bool{}
	for _, a := range f.authorities {
		for _, each := range []*pki.Authority{a.Client, a.Peer, a.Agent} {
			authorities[each.Fingerprint()] = true
		}
	}
	if len(authorities) != 6 {
		t.Fatalf("two clusters have %d different authorities, want 6", len(authorities))
	}
	found := 0
	for _, each := range disk {
		for _, key := range privateKeys(t, each) {
			found++
			spki, err := x509.MarshalPKIXPublicKey(key.Public())
			if err != nil {
				t.Fatal(err)
			}
			cert := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})
			if authorities[fingerprint(spki)] {
				t.Errorf("%s holds an authority's key, of %s", each.path, cert)
			}
		}
	}
	if found < 4*4 {
		t.Errorf("%d private keys were found on four machines, want four on each", found)
	}
	// Nor in any other form: neither the PEM nor the bare number.
	for _, a := range f.authorities {
		for _, authority := range []*pki.Authority{a.Client, a.Peer, a.Agent} {
			for _, needle := range formsOf(t, authority) {
				for _, each := range disk {
					if bytes.Contains(each.content, needle) {
						t.Errorf("%s holds an authority's key", each.path)
					}
				}
			}
		}
	}
}

// formsOf are the ways in which a key may be written.
func formsOf(t *testing.T, authority *pki.Authority) [][]byte {
	t.Helper()
	text, err := authority.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	key, err := pki.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	number, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return append(lines(text), number)
}

// privateKeys are all that are in a file in PEM, also inside of JSON.
func privateKeys(t *testing.T, f file) []*ecdsa.PrivateKey {
	t.Helper()
	var keys []*ecdsa.PrivateKey
	if isRelease(f) {
		return nil
	}
	rest := bytes.ReplaceAll(f.content, []byte(`\n`), []byte("\n"))
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return keys
		}
		if !strings.Contains(block.Type, "PRIVATE KEY") {
			continue
		}
		key, err := pki.ParseKey(pem.EncodeToMemory(block))
		if err != nil {
			t.Errorf("%s holds a private key that no machine should have: %v", f.path, err)
			continue
		}
		keys = append(keys, key)
	}
}

// noBootstrap: what the machine was given to boot with is gone from its disk,
// and is let in nowhere.
func noBootstrap(t *testing.T, f *fleet, disk []file) {
	asked := f.python.Asked(t)
	if len(asked) == 0 {
		t.Fatal("the actuator was not asked for a machine")
	}
	for _, request := range asked {
		data := bootstrapOf(t, request)
		for _, each := range disk {
			if strings.HasPrefix(filepath.Base(each.path), "bootstrap") {
				t.Errorf("%s is still there", each.path)
			}
			for _, line := range append(lines([]byte(data.Key)), middle(t, []byte(data.Certificate))) {
				if bytes.Contains(each.content, line) {
					t.Errorf("%s holds the bootstrap identity", each.path)
				}
			}
		}
		address := f.Machine(request.Machine.Name).Status.Address
		for _, port := range []string{"2378", "2379", "2380"} {
			refused(t, "the bootstrap identity", net.JoinHostPort(address, port), loaded(t, []byte(data.Certificate), []byte(data.Key)))
		}
	}
}
