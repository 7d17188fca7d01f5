package security

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// TestEnrolmentOfAnImpostor runs an agent of somebody's who has what the
// machine was given to boot with. It gets certificates for this machine's
// name and address and for no other, and for the first key that it showed.
func TestEnrolmentOfAnImpostor(t *testing.T) {
	f := rig.NewFleet(t)
	address, stranger := rig.FreeLoopback(t), "127.99.99.99"
	script, dir := handMade(t, address)
	f.StartController("--exec-actuator", "hand="+script)
	f.Apply("posed", func(c *v1alpha1.EtcdCluster) {
		c.Spec.Replicas, c.Spec.MachineTemplate.Actuator = 1, "hand"
	})
	i := startImpostor(t, dir, address)

	for _, each := range []struct {
		ask  func(protocol.Requests) protocol.Requests
		want string
	}{
		{i.with("agent", pki.Leaf{Name: pki.AgentName(i.data.MachineUID), IPs: local(stranger)}), "asks for more than it may have: IP " + stranger},
		{i.with("server", pki.Leaf{Name: pki.ServerName(i.data.MachineUID), IPs: local(stranger)}), "asks for more than it may have: IP " + stranger},
		{i.with("peer", pki.Leaf{Name: pki.PeerName(i.data.ClusterUID), IPs: append(local(address), local(stranger)...)}), "asks for more than it may have: IP " + stranger},
		{i.with("client", pki.Leaf{Name: pki.EtcdClientName()}), `asks for more than it may have: name "` + pki.EtcdClientName() + `"`},
		{i.with("agent", pki.Leaf{Name: pki.ControllerName(i.data.ClusterUID), IPs: local(address)}), `asks for more than it may have: name "` + pki.ControllerName(i.data.ClusterUID) + `"`},
		{i.with("server", pki.Leaf{Name: pki.ServerName(i.data.MachineUID), DNS: []string{"etcd.example"}}), `asks for more than it may have: DNS name "etcd.example"`},
	} {
		i.pose(each.ask)
		waitMessage(t, f, each.want)
		if got := i.answered(); got != 0 {
			t.Fatalf("the impostor was handed certificates %d times", got)
		}
	}

	// It was the excess that was refused: without it, it is a machine.
	i.pose(func(r protocol.Requests) protocol.Requests { return r })
	rig.Eventually(t, rig.Patience, "the machine to be enrolled", func(context.Context) error {
		if i.answered() == 0 {
			return errors.New("it got no certificates")
		}
		return nil
	})
	pinned := machineOf(t, f).Status.Enrolled
	if pinned == "" {
		t.Error("the key that was enrolled is not written down")
	}

	// From then on the bootstrap identity vouches for no other key.
	i.newKeys(t)
	waitMessage(t, f, "another key was enrolled for this machine before")
	m := machineOf(t, f)
	if m.Status.Enrolled != pinned {
		t.Errorf("the key that was enrolled is %s, and was %s", m.Status.Enrolled, pinned)
	}
	if i.secondKeySigned() {
		t.Error("a second key got certificates")
	}
	// Not even a writer of status can have another key enrolled.
	m.Status.Enrolled = strings.Repeat("0", len(pinned))
	if err := f.API.Status().Update(t.Context(), m); err == nil || !strings.Contains(err.Error(), "a machine enrols once") {
		t.Errorf("write another key into the status: %v, want a refusal", err)
	}
}

func machineOf(t *testing.T, f *rig.Fleet) *v1alpha1.EtcdMachine {
	t.Helper()
	var machines v1alpha1.EtcdMachineList
	if err := f.API.List(t.Context(), &machines, client.InNamespace(f.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(machines.Items) != 1 {
		t.Fatalf("there are %d machines, want 1", len(machines.Items))
	}
	return &machines.Items[0]
}

func waitMessage(t *testing.T, f *rig.Fleet, want string) {
	t.Helper()
	rig.Eventually(t, rig.Patience, "the cluster to say: "+want, func(ctx context.Context) error {
		cluster, err := f.Get(ctx, "posed")
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(cluster.Status.Conditions, "Progressing")
		if c == nil || !strings.Contains(c.Message, want) {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	})
}

// handMade is an actuator that makes no machine: it says that there is one at
// the address, and keeps what it was given for it.
func handMade(t *testing.T, address string) (script, dir string) {
	t.Helper()
	dir = t.TempDir()
	script = filepath.Join(dir, "actuator")
	text := fmt.Sprintf(`#!/bin/sh
umask 077
cd '%s'
case $1 in
create) cat > new && mv new request && echo '{}' ;;
observe)
  if [ -e request ]; then echo '{"instance": {"providerID": "hand://1", "state": "Running", "addresses": ["%s"]}}'
  else echo '{"error": {"code": "NotFound", "message": "none"}}'; fi ;;
delete) rm -f request; echo '{}' ;;
*) echo '{}' ;;
esac
`, dir, address)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return script, dir
}

// impostor serves the agent's protocol with a machine's bootstrap identity.
type impostor struct {
	data    bootstrap.Data
	address string

	mu      sync.Mutex
	ask     func(protocol.Requests) protocol.Requests // nil: not ready to be asked
	keys    map[string]*ecdsa.PrivateKey
	renewed bool
	signed  []protocol.Identity
	second  bool
}

func startImpostor(t *testing.T, dir, address string) *impostor {
	t.Helper()
	var request rig.PythonRequest
	rig.Eventually(t, rig.Patience, "the actuator to be asked for a machine", func(context.Context) error {
		raw, err := os.ReadFile(filepath.Join(dir, "request"))
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &request)
	})
	i := &impostor{data: bootstrapOf(t, request), address: address}
	i.makeKeys(t)
	pool, err := pki.Pool([]byte(i.data.AgentCA))
	if err != nil {
		t.Fatal(err)
	}
	pair := loaded(t, []byte(i.data.Certificate), []byte(i.data.Key))
	conf := pki.ServerTLS(
		func() (*tls.Certificate, error) { return pair, nil },
		func() *x509.CertPool { return pool },
		func(string) error { return nil })
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "2378"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: i, ReadHeaderTimeout: rig.Timeout}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(tls.NewListener(listener, conf)) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the impostor's server: %v", err)
		}
	})
	return i
}

func (i *impostor) makeKeys(t *testing.T) {
	t.Helper()
	keys := map[string]*ecdsa.PrivateKey{}
	for _, name := range []string{"agent", "server", "peer", "client"} {
		key, err := pki.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = key
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// newKeys are shown from now on in place of those that were enrolled.
func (i *impostor) newKeys(t *testing.T) {
	t.Helper()
	i.makeKeys(t)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.renewed = true
}

func (i *impostor) pose(ask func(protocol.Requests) protocol.Requests) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ask = ask
}

// with replaces one of the requests.
func (i *impostor) with(role string, leaf pki.Leaf) func(protocol.Requests) protocol.Requests {
	return func(r protocol.Requests) protocol.Requests {
		text := i.request(role, leaf)
		switch role {
		case "agent":
			r.Agent = text
		case "server":
			r.Server = text
		case "peer":
			r.Peer = text
		case "client":
			r.Client = text
		}
		return r
	}
}

func (i *impostor) request(role string, leaf pki.Leaf) string {
	raw, err := pki.Request(i.keys[role], leaf)
	if err != nil {
		return err.Error() // no request: the test fails on what comes of it
	}
	return string(raw)
}

func (i *impostor) answered() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.signed)
}

func (i *impostor) secondKeySigned() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.second
}

// ServeHTTP plays an agent that is never enrolled.
func (i *impostor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	seen := protocol.Seen{MachineUID: i.data.MachineUID, ClusterUID: i.data.ClusterUID, Time: time.Now()}
	var answer any = seen
	switch {
	case i.ask == nil:
		http.Error(w, "not yet", http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/v1/requests":
		ips := local(i.address)
		answer = i.ask(protocol.Requests{
			MachineUID: i.data.MachineUID,
			Agent:      i.request("agent", pki.Leaf{Name: pki.AgentName(i.data.MachineUID), IPs: ips}),
			Server:     i.request("server", pki.Leaf{Name: pki.ServerName(i.data.MachineUID), IPs: ips}),
			Peer:       i.request("peer", pki.Leaf{Name: pki.PeerName(i.data.ClusterUID), IPs: ips}),
			Client:     i.request("client", pki.Leaf{Name: pki.ProbeName(i.data.MachineUID)}),
		})
	case r.URL.Path == "/v1/identity":
		var identity protocol.Identity
		if err := json.NewDecoder(r.Body).Decode(&identity); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		i.signed = append(i.signed, identity)
		i.second = i.second || i.renewed && i.fits(identity)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// fits says whether a certificate is for the keys that are shown now.
func (i *impostor) fits(identity protocol.Identity) bool {
	key, err := pki.MarshalKey(i.keys["agent"])
	if err != nil {
		return false
	}
	_, err = tls.X509KeyPair([]byte(identity.Agent), key)
	return err == nil
}
