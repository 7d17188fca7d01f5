package management

import (
	"bytes"
	"net"
	"os"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// A leaf is kept while it is good, so that a kubeconfig is; and renewed before
// it runs out, or for another address.
func TestLeavesAreRenewedInTime(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	here := pki.Leaf{Name: "server", IPs: []net.IP{net.IPv4(127, 1, 1, 1)}, Usage: pki.Server}
	there := pki.Leaf{Name: "server", IPs: []net.IP{net.IPv4(127, 2, 2, 2)}, Usage: pki.Server}
	first := issueAt(t, dir, now, here)
	if again := issueAt(t, dir, now.Add(leafLife/2), here); !bytes.Equal(first.cert, again.cert) {
		t.Error("a leaf with half its life left was renewed")
	}
	late := issueAt(t, dir, now.Add(leafLife*3/4), here)
	if bytes.Equal(first.cert, late.cert) {
		t.Error("a leaf with a quarter of its life left was kept")
	}
	moved := issueAt(t, dir, now.Add(leafLife*3/4), there)
	if bytes.Equal(late.cert, moved.cert) {
		t.Error("a leaf for another address was kept")
	}
	// A crash between the two files leaves the key of another certificate.
	if err := os.WriteFile(dir+"/server.key", first.key, 0o600); err != nil {
		t.Fatal(err)
	}
	if mended := issueAt(t, dir, now.Add(leafLife*3/4), there); bytes.Equal(mended.cert, moved.cert) {
		t.Error("a leaf without its key was kept")
	}
}

func issueAt(t *testing.T, dir string, now time.Time, leaf pki.Leaf) pair {
	t.Helper()
	ids, err := openIdentities(dir, "test", now)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := ids.leaf("server", leaf)
	if err != nil {
		t.Fatal(err)
	}
	return issued
}
