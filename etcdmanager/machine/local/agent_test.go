package local_test

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/machinetest"
)

// The real agent, unlike the suite's stand-in, reads its bootstrap data and
// shows the identity in it at the machine's address.
func TestRealAgent(t *testing.T) {
	r := newRig(t)
	binary := filepath.Join(t.TempDir(), "etcdmanager")
	build := osexec.CommandContext(r.ctx, "go", "build", "-o", binary, "github.com/etcdmanager/etcdmanager/cmd/etcdmanager")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	var err error
	if r.Actuator, err = local.New(local.Options{Dir: r.dir, Executable: binary}); err != nil {
		t.Fatal(err)
	}
	data := firstContact(t)
	if err := r.Create(r.ctx, demo, data); err != nil {
		t.Fatal(err)
	}
	before := r.observe()
	r.awaitIdentity(before.Addresses[0])
	machinetest.Kill(t, r.agentPID())
	if i := r.observe(); i.State != machine.Stopped {
		t.Errorf("the machine is %s after its agent died, want Stopped", i.State)
	}
	if err := r.Create(r.ctx, demo, data); err != nil {
		t.Fatal(err)
	}
	if after := r.observe(); !slices.Equal(after.Addresses, before.Addresses) {
		t.Errorf("address %v, was %v", after.Addresses, before.Addresses)
	}
	r.awaitIdentity(before.Addresses[0])
	if err := r.Delete(r.ctx, demo); err != nil {
		t.Fatal(err)
	}
	if left := r.Remains(t, demo); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func firstContact(t *testing.T) []byte {
	t.Helper()
	authority, err := pki.NewAuthority("agents", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.IssuePair(pki.Leaf{
		Name: pki.BootstrapName(demo.UID), Usage: pki.Server, Life: time.Hour,
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(bootstrap.Data{
		Cluster: demo.Cluster, ClusterUID: demo.ClusterUID, Machine: demo.Name, MachineUID: demo.UID,
		AgentCA: string(authority.CertPEM()), Certificate: string(cert), Key: string(key),
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// awaitIdentity waits for this machine's own first-contact identity at an address.
func (r *rig) awaitIdentity(address string) {
	r.Helper()
	var name string
	machinetest.Eventually(r.T, r.ctx, "the agent serves at "+address+"; its log:\n"+r.path("agent.log"), func() bool {
		dialer := tls.Dialer{Config: &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // the name is read, nothing is said
			VerifyConnection: func(s tls.ConnectionState) error {
				name = s.PeerCertificates[0].Subject.CommonName
				return nil
			},
		}}
		c, err := dialer.DialContext(r.ctx, "tcp", net.JoinHostPort(address, "2378"))
		if err == nil {
			_ = c.Close()
		}
		return name != ""
	})
	if want := pki.BootstrapName(demo.UID); name != want {
		raw, _ := os.ReadFile(r.path("agent.log"))
		r.Errorf("%s is served by %q, want %q\n%s", address, name, want, raw)
	}
}
