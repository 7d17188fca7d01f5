package release

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// Files are where a member's certificates, keys and authorities are.
type Files struct {
	ServerCert, ServerKey string
	ClientCA              string
	PeerCert, PeerKey     string
	PeerCA                string
}

// Member is all that a command line says of one member.
type Member struct {
	Name      string
	DataDir   string // absolute
	WALDir    string // absolute; empty: in the data directory
	ClientURL string // https, with an IP address; advertised and listened on
	PeerURL   string // likewise
	Token     string // initial-cluster-token
	Found     bool   // takes part in founding the cluster (F027)
	// InitialCluster is name=peerURL,… of all members as etcd takes it.
	InitialCluster string
	Certs          Files
	PeerCN         string // common name that every peer's certificate must have
	Settings       protocol.Settings
	LogFile        string // absolute; empty: standard error
}

// arg is one flag with its value.
type arg struct{ name, value string }

// Flags is the command line of a member, without the program's name, the same
// for the same input. It holds no secret. Flags that only some minors have are
// looked up in the minor's own table, so that a version never meets a flag it
// doesn't know (F050).
func Flags(version string, m Member) ([]string, error) {
	of, err := lookup(version)
	if err != nil {
		return nil, err
	}
	if err := CheckArgs(version, m.Settings.ExtraArgs); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("command line of member %q: %w", m.Name, err)
	}
	args := slices.Concat(m.identity(), m.security(), m.settings(), m.logging())
	args = append(args, of.addresses(m)...)
	args = append(args, of.safety(m.Settings.ExtraArgs)...)
	args = append(args, of.defaults(m.Settings.ExtraArgs)...)
	for _, name := range slices.Sorted(maps.Keys(m.Settings.ExtraArgs)) {
		if name != "feature-gates" {
			args = append(args, arg{name, m.Settings.ExtraArgs[name]})
		}
	}
	line := make([]string, 0, len(args))
	for _, a := range args {
		line = append(line, "--"+a.name+"="+a.value)
	}
	return line, nil
}

func (m Member) identity() []arg {
	state := "existing"
	if m.Found {
		state = "new"
	}
	args := []arg{
		{"name", m.Name},
		{"data-dir", m.DataDir},
		{"listen-client-urls", m.ClientURL},
		{"advertise-client-urls", m.ClientURL},
		{"listen-peer-urls", m.PeerURL},
		{"initial-advertise-peer-urls", m.PeerURL},
		{"initial-cluster", m.InitialCluster},
		{"initial-cluster-state", state},
		{"initial-cluster-token", m.Token},
	}
	if m.WALDir != "" {
		args = append(args, arg{"wal-dir", m.WALDir})
	}
	return args
}

// security is mutual TLS on both ports.
func (m Member) security() []arg {
	return []arg{
		{"cert-file", m.Certs.ServerCert},
		{"key-file", m.Certs.ServerKey},
		{"trusted-ca-file", m.Certs.ClientCA},
		{"client-cert-auth", "true"},
		{"peer-cert-file", m.Certs.PeerCert},
		{"peer-key-file", m.Certs.PeerKey},
		{"peer-trusted-ca-file", m.Certs.PeerCA},
		{"peer-client-cert-auth", "true"},
		{"peer-cert-allowed-cn", m.PeerCN},
	}
}

func (m Member) settings() []arg {
	var args []arg
	for _, number := range []struct {
		name  string
		value int64
	}{
		{"quota-backend-bytes", m.Settings.QuotaBackendBytes},
		{"heartbeat-interval", m.Settings.HeartbeatMilliseconds},
		{"election-timeout", m.Settings.ElectionMilliseconds},
	} {
		if number.value != 0 {
			args = append(args, arg{number.name, strconv.FormatInt(number.value, 10)})
		}
	}
	// Kubernetes' API servers compact, so etcd does only when asked.
	retention := m.Settings.AutoCompactionRetention
	if retention == "" {
		retention = "0"
	}
	return append(args, arg{"auto-compaction-mode", "periodic"}, arg{"auto-compaction-retention", retention})
}

// logging lets etcd write a file of its own, appending: a pipe whose reader
// stops would block it (F121). Who reads the file rotates it.
func (m Member) logging() []arg {
	args := []arg{{"logger", "zap"}}
	if m.LogFile != "" {
		args = append(args, arg{"log-outputs", m.LogFile})
	}
	return args
}

// addresses turns one check of peers off on loopback: etcd compares the address
// that a peer dials from with its certificate (F134), and on loopback everybody
// dials from 127.0.0.1 whatever their own address. The peers' own authority and
// common name are still required.
func (m minor) addresses(of Member) []arg {
	peer, err := url.Parse(of.PeerURL)
	if err != nil || !net.ParseIP(peer.Hostname()).IsLoopback() {
		return nil
	}
	return []arg{{m.spell("peer-skip-client-san-verification"), "true"}}
}

// spell is a flag's name in this minor: many were experimental- before 3.6.
func (m minor) spell(name string) string {
	if _, has := m.flags[name]; has {
		return name
	}
	return "experimental-" + name
}

// safety is what is not the user's to turn off.
func (m minor) safety(extra map[string]string) []arg {
	args := []arg{{"strict-reconfig-check", "true"}, {"pre-vote", "true"}}
	if _, has := m.flags["feature-gates"]; has {
		gates, _ := m.mergeGates(extra["feature-gates"]) // CheckArgs saw them
		return append(args, arg{"feature-gates", gates})
	}
	return append(args,
		arg{"experimental-initial-corrupt-check", "true"},
		arg{"experimental-compact-hash-check-enabled", "true"},
		arg{"experimental-stop-grpc-service-on-defrag", "true"})
}

// defaults are the user's to change. Every minor snapshots after 10,000
// entries, as 3.6 and later do by themselves: the memory held, the time a start
// takes, and the wait before a version change (F200) are all by that number.
// Progress every 5 s lets watchers know how far they are. Nobody here uses the
// gateway, which needs a server certificate that is a client's too (F132).
func (m minor) defaults(extra map[string]string) []arg {
	var args []arg
	for _, a := range []arg{
		{"enable-grpc-gateway", "false"},
		{"tls-min-version", "TLS1.2"},
		{"snapshot-count", "10000"},
		{"watch-progress-notify-interval", "5s"},
	} {
		_, given := extra[a.name]
		_, givenOlder := extra["experimental-"+a.name]
		if !given && !givenOlder {
			args = append(args, arg{m.spell(a.name), a.value})
		}
	}
	return args
}
