package act

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// Lives of the certificates on machines.
const leafLife = 365 * 24 * time.Hour

// enrol signs a machine's own keys. Which key asked first is written down
// before anything is signed, and no other key's requests are ever signed for
// this machine: the bootstrap identity is good for one enrolment.
func (a *Actor) enrol(ctx context.Context, s *Scene, step plan.Step) error {
	m, err := s.machine(step.Machine)
	if err != nil {
		return err
	}
	if m.Contact == nil {
		return fmt.Errorf("its address is not known")
	}
	requests, err := m.Contact.Agent.Requests(ctx)
	if err != nil {
		return fmt.Errorf("ask for its requests: %w", err)
	}
	fingerprint, err := pki.RequestFingerprint([]byte(requests.Agent))
	if err != nil {
		return fmt.Errorf("read its request: %w", err)
	}
	switch m.Object.Status.Enrolled {
	case fingerprint:
	case "":
		m.Object.Status.Enrolled, m.Object.Status.Address = fingerprint, m.Address
		if err := a.Client.Status().Update(ctx, m.Object); err != nil {
			return fmt.Errorf("note its key: %w", err)
		}
	default:
		return fmt.Errorf("another key was enrolled for this machine before; if its disk was lost, replace the machine")
	}
	identity, err := a.sign(s, m, requests)
	if err != nil {
		return err
	}
	if _, err := m.Contact.Agent.PutIdentity(ctx, s.Epoch, identity); err != nil {
		return fmt.Errorf("hand over its certificates: %w", err)
	}
	// The release can be fetched while other machines come up.
	step.InitialCluster = []plan.Peer{{Name: step.Machine, URL: observe.PeerURL(m.Address)}}
	_, err = m.Contact.Agent.PutMember(ctx, s.Epoch, a.wanted(s, step))
	if err != nil {
		a.Log.Info("the machine was not told its release yet", "machine", m.Object.Name, "error", err)
	}
	return nil
}

func (a *Actor) sign(s *Scene, m *observe.Machine, requests protocol.Requests) (protocol.Identity, error) {
	uid, clusterUID := string(m.Object.UID), string(s.Cluster.UID)
	ips := []net.IP{net.ParseIP(m.Address)}
	identity := protocol.Identity{
		AgentCA: string(s.Authorities.Agent.CertPEM()), ClientCA: string(s.Authorities.Client.CertPEM()), PeerCA: string(s.Authorities.Peer.CertPEM()),
	}
	for _, each := range []struct {
		authority *pki.Authority
		request   string
		allowed   pki.Leaf
		into      *string
	}{
		{s.Authorities.Agent, requests.Agent, pki.Leaf{Name: pki.AgentName(uid), IPs: ips, Usage: pki.Server}, &identity.Agent},
		// Etcd's gateway dials its own client port with its own server
		// certificate, which for that needs both usages (F132).
		{s.Authorities.Client, requests.Server, pki.Leaf{Name: pki.ServerName(uid), IPs: ips, Usage: pki.Peer}, &identity.Server},
		{s.Authorities.Peer, requests.Peer, pki.Leaf{Name: pki.PeerName(clusterUID), IPs: ips, Usage: pki.Peer}, &identity.Peer},
		{s.Authorities.Client, requests.Client, pki.Leaf{Name: pki.ProbeName(uid), Usage: pki.Client}, &identity.Client},
	} {
		each.allowed.Life = leafLife
		certPEM, err := each.authority.Sign([]byte(each.request), each.allowed, a.Now())
		if err != nil {
			return protocol.Identity{}, fmt.Errorf("sign its request for %s: %w", each.allowed.Name, err)
		}
		*each.into = string(certPEM)
	}
	return identity, nil
}

// declare tells an agent which member to run.
func (a *Actor) declare(ctx context.Context, s *Scene, step plan.Step) error {
	wanted := a.wanted(s, step)
	wanted.Run = true
	return a.put(ctx, s, step.Machine, wanted)
}

// fence stops a removed member for good. It says nothing of version or peers:
// an agent declines a member that could not run, and this one is not to.
func (a *Actor) fence(ctx context.Context, s *Scene, step plan.Step) error {
	return a.put(ctx, s, step.Machine, protocol.Wanted{Name: step.Machine, Fenced: true, Reason: step.Reason})
}

func (a *Actor) put(ctx context.Context, s *Scene, name string, wanted protocol.Wanted) error {
	m, err := s.machine(name)
	if err != nil {
		return err
	}
	if m.Contact == nil {
		return fmt.Errorf("its address is not known")
	}
	_, err = m.Contact.Agent.PutMember(ctx, s.Epoch, wanted)
	return err
}

func (a *Actor) wanted(s *Scene, step plan.Step) protocol.Wanted {
	w := observe.Template(s.Cluster, a.Mirror)
	w.Name, w.Reason, w.Token = step.Machine, step.Reason, s.Record.Token
	w.Found, w.MemberID, w.ClusterID = step.Found, step.MemberID, step.ClusterID
	for _, p := range step.InitialCluster {
		w.InitialCluster = append(w.InitialCluster, protocol.Peer{Name: p.Name, URL: p.URL})
	}
	return w
}
