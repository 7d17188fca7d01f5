package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
	"github.com/etcdmanager/etcdmanager/bootstrap/release"
)

const dataDirName = "etcd"

func (o Options) dataDir() string   { return filepath.Join(o.Dir, dataDirName) }
func (o Options) releases() string  { return filepath.Join(o.Dir, "releases") }
func (o Options) etcdLog() string   { return filepath.Join(o.Dir, "etcd.log") }
func (o Options) clientURL() string { return o.url(bootstrap.PortClient) }
func (o Options) peerURL() string   { return o.url(bootstrap.PortPeer) }

func (o Options) url(port int) string {
	return "https://" + net.JoinHostPort(o.Address, strconv.Itoa(port))
}

// decodeStrictly refuses fields that this agent does not know: to carry out
// only half of what was wanted is worse than to decline it.
func decodeStrictly(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return refuse(protocol.CodeInvalid, "the body is not the document expected: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return refuse(protocol.CodeInvalid, "there is something after the document")
	}
	return nil
}

// validate declines a wanted member that could not run on this machine.
func (o Options) validate(w protocol.Wanted, f facts, certs release.Files) error {
	if err := o.problem(w, f, certs); err != nil {
		return refuse(protocol.CodeInvalid, "%v", err)
	}
	return nil
}

func (o Options) problem(w protocol.Wanted, f facts, certs release.Files) error {
	switch {
	case w.Name != f.Machine:
		return fmt.Errorf("member %q is wanted on machine %q", w.Name, f.Machine)
	case w.Run && w.Fenced:
		return errors.New("a member can't be wanted both to run and fenced")
	case !w.Run && w.Version == "":
		return nil
	}
	for _, id := range []string{w.MemberID, w.ClusterID} {
		if _, err := strconv.ParseUint(id, 16, 64); id != "" && err != nil {
			return fmt.Errorf("%q is not an ID in hex", id)
		}
	}
	if err := checkMirror(w.Mirror, w.SHA256); err != nil {
		return err
	}
	if err := checkPeers(w.InitialCluster); err != nil {
		return err
	}
	if strings.ContainsFunc(w.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("token %q has characters that are not printable", w.Token)
	}
	if err := release.Check(w.Version); err != nil {
		return err
	}
	_, err := release.Flags(w.Version, o.member(w, f, certs, w.Found))
	return err
}

func checkMirror(mirror string, sha256 map[string]string) error {
	parsed, err := url.Parse(mirror)
	if err != nil {
		return errors.New("the mirror is not a URL")
	}
	switch parsed.Scheme {
	case "http", "https", "file":
	default:
		return fmt.Errorf("mirror %s is not an http, https or file URL", parsed.Redacted())
	}
	for arch, sum := range sha256 {
		if len(sum) != 64 || strings.Trim(strings.ToLower(sum), "0123456789abcdef") != "" {
			return fmt.Errorf("the SHA-256 for %s is not 64 hex digits", arch)
		}
	}
	return nil
}

func checkPeers(peers []protocol.Peer) error {
	names, urls := map[string]bool{}, map[string]bool{}
	for _, p := range peers {
		parsed, err := url.Parse(p.URL)
		switch {
		case p.Name == "" || strings.ContainsAny(p.Name, ",= "):
			return fmt.Errorf("%q is not usable as a member's name", p.Name)
		case err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.Port() == "" ||
			parsed.Path != "" || parsed.RawQuery != "" || parsed.User != nil || strings.Contains(p.URL, ","):
			return fmt.Errorf("the peer URL of %s is not of the form https://HOST:PORT", p.Name)
		case names[p.Name]:
			return fmt.Errorf("the initial cluster has two members named %s", p.Name)
		case urls[p.URL]:
			return fmt.Errorf("the initial cluster has two members at %s", p.URL) // F012
		}
		names[p.Name], urls[p.URL] = true, true
	}
	return nil
}

// member is what a wanted member comes to on this machine.
func (o Options) member(w protocol.Wanted, f facts, certs release.Files, found bool) release.Member {
	peers := make([]string, 0, len(w.InitialCluster))
	for _, p := range w.InitialCluster {
		peers = append(peers, p.Name+"="+p.URL)
	}
	return release.Member{
		Name:           w.Name,
		DataDir:        o.dataDir(),
		ClientURL:      o.clientURL(),
		PeerURL:        o.peerURL(),
		Token:          w.Token,
		Found:          found,
		InitialCluster: strings.Join(peers, ","),
		Certs:          certs,
		PeerCN:         pki.PeerName(f.ClusterUID),
		Settings:       w.Settings,
	}
}
