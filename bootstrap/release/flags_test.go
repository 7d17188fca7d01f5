package release

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

func sample() Member {
	return Member{
		Name: "m1", DataDir: "/d/data",
		ClientURL: "https://10.9.8.7:2379", PeerURL: "https://10.9.8.7:2380",
		Token: "token-1", Found: true,
		InitialCluster: "m0=https://10.9.8.6:2380,m1=https://10.9.8.7:2380",
		Certs: Files{
			ServerCert: "/d/server.crt", ServerKey: "/d/server.key", ClientCA: "/d/client-ca.crt",
			PeerCert: "/d/peer.crt", PeerKey: "/d/peer.key", PeerCA: "/d/peer-ca.crt",
		},
		PeerCN:   "etcdmanager:peer:uid",
		Settings: protocol.Settings{QuotaBackendBytes: 8 << 30},
		LogFile:  "/d/etcd.log",
	}
}

// TestCommandLines compares whole command lines with testdata/flags-3.x.txt,
// to be read in one piece. -update writes them anew.
func TestCommandLines(t *testing.T) {
	for _, version := range tested {
		v, err := ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		line, err := Flags(version, sample())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", fmt.Sprintf("flags-%d.%d.txt", v.Major, v.Minor))
		text := strings.Join(line, "\n") + "\n"
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s: recorded (-) and rendered (+):\n%s", version, diff)
		}
	}
}

func TestCommandLineVaries(t *testing.T) {
	for _, test := range []struct {
		name, version string
		change        func(*Member)
		has, hasnt    []string
	}{
		{"joining (F027)", "3.7.3", func(m *Member) { m.Found = false }, []string{"--initial-cluster-state=existing"}, []string{"--initial-cluster-state=new"}},
		{"a disk for the log", "3.7.3", func(m *Member) { m.WALDir = "/w" }, []string{"--wal-dir=/w"}, nil},
		{"log on standard error", "3.7.3", func(m *Member) { m.LogFile = "" }, nil, []string{"--log-outputs"}},
		{"slow network", "3.7.3", func(m *Member) { m.Settings.HeartbeatMilliseconds, m.Settings.ElectionMilliseconds = 300, 3000 }, []string{"--heartbeat-interval=300", "--election-timeout=3000"}, nil},
		{"etcd's own timing and quota", "3.7.3", func(m *Member) { m.Settings = protocol.Settings{} }, nil, []string{"--heartbeat-interval", "--election-timeout", "--quota-backend-bytes"}},
		{"compaction", "3.7.3", func(m *Member) { m.Settings.AutoCompactionRetention = "1h30m" }, []string{"--auto-compaction-mode=periodic", "--auto-compaction-retention=1h30m"}, []string{"--auto-compaction-retention=0"}},
		{"a default overridden", "3.6.16", func(m *Member) { m.Settings.ExtraArgs = map[string]string{"snapshot-count": "500"} }, []string{"--snapshot-count=500"}, []string{"--snapshot-count=10000"}},
		{"a default overridden by its older name", "3.6.16", func(m *Member) {
			m.Settings.ExtraArgs = map[string]string{"experimental-watch-progress-notify-interval": "9s"}
		}, []string{"--experimental-watch-progress-notify-interval=9s"}, []string{"--watch-progress-notify-interval"}},
		{"gates merged", "3.7.3", func(m *Member) {
			m.Settings.ExtraArgs = map[string]string{"feature-gates": "PriorityRequest=true, CompactHashCheck=true"}
		}, []string{"--feature-gates=CompactHashCheck=true,InitialCorruptCheck=true,PriorityRequest=true,StopGRPCServiceOnDefrag=true"}, nil},
		{"on loopback, where everybody dials from 127.0.0.1 (F134)", "3.6.16", func(m *Member) {
			m.PeerURL, m.InitialCluster = "https://127.9.8.7:2380", "m1=https://127.9.8.7:2380"
		}, []string{"--peer-skip-client-san-verification=true"}, nil},
		{"on the network", "3.6.16", func(*Member) {}, nil, []string{"--peer-skip-client-san-verification"}},
		{"IPv6", "3.7.3", func(m *Member) {
			m.PeerURL, m.InitialCluster = "https://[fd00::7]:2380", "m1=https://[fd00::7]:2380"
		}, []string{"--listen-peer-urls=https://[fd00::7]:2380"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := sample()
			test.change(&m)
			line, err := Flags(test.version, m)
			if err != nil {
				t.Fatal(err)
			}
			for _, flag := range test.has {
				if !slices.Contains(line, flag) {
					t.Errorf("no %s in\n%s", flag, strings.Join(line, "\n"))
				}
			}
			for _, flag := range test.hasnt {
				if slices.ContainsFunc(line, func(have string) bool { return have == flag || strings.HasPrefix(have, flag+"=") }) {
					t.Errorf("there is %s in\n%s", flag, strings.Join(line, "\n"))
				}
			}
			seen := map[string]bool{}
			for _, flag := range line {
				name, _, _ := strings.Cut(flag, "=")
				if seen[name] {
					t.Errorf("%s is there twice", name)
				}
				seen[name] = true
			}
		})
	}
}

func TestCommandLineRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Member)
		want   string
	}{
		{"relative data directory", func(m *Member) { m.DataDir = "data" }, "path of the data directory is not absolute"},
		{"no peer authority", func(m *Member) { m.Certs.PeerCA = "" }, "path of the peer authority is not absolute"},
		{"no client authority", func(m *Member) { m.Certs.ClientCA = "" }, "path of the client authority is not absolute"},
		{"relative log", func(m *Member) { m.LogFile = "etcd.log" }, "not absolute"},
		{"plain text to clients", func(m *Member) { m.ClientURL = "http://10.9.8.7:2379" }, "not of the form https://IP:PORT"},
		{"plain text to peers", func(m *Member) {
			m.PeerURL, m.InitialCluster = "http://10.9.8.7:2380", "m1=http://10.9.8.7:2380"
		}, "not of the form https://IP:PORT"},
		{"a name for an address", func(m *Member) { m.ClientURL = "https://m1:2379" }, "not of the form https://IP:PORT"},
		{"two addresses", func(m *Member) { m.ClientURL = "https://10.9.8.7:2379,https://0.0.0.0:2379" }, "not of the form https://IP:PORT"},
		{"any peer name", func(m *Member) { m.PeerCN = "" }, "not usable as a name"},
		{"two peer names", func(m *Member) { m.PeerCN = "a,b" }, "not usable as a name"},
		{"no token (F068)", func(m *Member) { m.Token = "" }, "no cluster token"},
		{"not a member of its cluster (F028)", func(m *Member) { m.InitialCluster = "m0=https://10.9.8.6:2380" }, "does not have the member itself"},
		{"election too soon", func(m *Member) { m.Settings.ElectionMilliseconds = 400 }, "five heartbeats at least"},
		{"election too late (F193)", func(m *Member) { m.Settings.ElectionMilliseconds = 50_001 }, "50 s at most"},
		{"compaction without a unit", func(m *Member) { m.Settings.AutoCompactionRetention = "10" }, "is not a duration"},
		{"negative quota", func(m *Member) { m.Settings.QuotaBackendBytes = -1 }, "quota of -1 bytes"},
		{"a bad extra argument", func(m *Member) { m.Settings.ExtraArgs = map[string]string{"name": "x"} }, "extra argument name is set by the manager"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := sample()
			test.change(&m)
			if line, err := Flags("3.7.3", m); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v %v, want …%s…", line, err, test.want)
			}
		})
	}
}
