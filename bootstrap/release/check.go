package release

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

func (m Member) check() error {
	for _, path := range []struct{ what, value string }{
		{"data directory", m.DataDir},
		{"server certificate", m.Certs.ServerCert},
		{"server key", m.Certs.ServerKey},
		{"client authority", m.Certs.ClientCA},
		{"peer certificate", m.Certs.PeerCert},
		{"peer key", m.Certs.PeerKey},
		{"peer authority", m.Certs.PeerCA},
	} {
		if !filepath.IsAbs(path.value) {
			return fmt.Errorf("the path of the %s is not absolute: %q", path.what, path.value)
		}
	}
	for _, path := range []string{m.WALDir, m.LogFile} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("a path is not absolute: %q", path)
		}
	}
	// etcd reads lists separated by commas in these.
	for _, word := range []string{m.Name, m.PeerCN} {
		if word == "" || strings.ContainsAny(word, ",=") {
			return fmt.Errorf("%q is not usable as a name", word)
		}
	}
	if m.Token == "" {
		return errors.New("there is no cluster token")
	}
	if !slices.Contains(strings.Split(m.InitialCluster, ","), m.Name+"="+m.PeerURL) {
		return fmt.Errorf("the initial cluster %q does not have the member itself", m.InitialCluster)
	}
	for _, address := range []string{m.ClientURL, m.PeerURL} {
		if err := checkURL(address); err != nil {
			return err
		}
	}
	return checkSettings(m.Settings)
}

// checkURL wants IP addresses: etcd listens on nothing else, and names would
// make peers depend on DNS (F189, F190).
func checkURL(address string) error {
	parsed, err := url.Parse(address)
	if err != nil || net.ParseIP(parsed.Hostname()) == nil || parsed.Port() == "" ||
		address != "https://"+net.JoinHostPort(parsed.Hostname(), parsed.Port()) {
		return fmt.Errorf("%q is not of the form https://IP:PORT", address)
	}
	return nil
}

func checkSettings(s protocol.Settings) error {
	heartbeat, election := s.HeartbeatMilliseconds, s.ElectionMilliseconds
	if heartbeat == 0 {
		heartbeat = 100
	}
	if election == 0 {
		election = 1000
	}
	switch {
	case s.QuotaBackendBytes < 0:
		return fmt.Errorf("quota of %d bytes", s.QuotaBackendBytes)
	case heartbeat < 0 || election < 5*heartbeat || election > 50_000:
		return fmt.Errorf("election timeout of %d ms with a heartbeat every %d ms: it must be five heartbeats at least and 50 s at most", election, heartbeat)
	}
	if s.AutoCompactionRetention == "" {
		return nil
	}
	if d, err := time.ParseDuration(s.AutoCompactionRetention); err != nil || d <= 0 {
		return fmt.Errorf("auto-compaction retention %q is not a duration", s.AutoCompactionRetention)
	}
	return nil
}
