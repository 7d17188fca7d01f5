package release

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdmanager/etcdmanager/bootstrap/pki"
)

// await is a linearizable read, tried again until one is answered.
func await(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, 5*time.Second)
		_, err := client.Get(try, "anything")
		done()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("no linearizable read in %s: %v", patience, err)
		}
	}
}

// TestEtcdServesWithItsCommandLine starts each real etcd as Flags has it and
// knocks at both ports with what must and what must not be let in.
func TestEtcdServesWithItsCommandLine(t *testing.T) {
	for _, version := range tested {
		t.Run(version, func(t *testing.T) {
			f, other := newFleet(t), newFleet(t)
			m := f.member(t, "m0")
			start(t, version, m)
			client := connect(t, f.tls(t, f.controller()), m)
			await(t, client)
			if status, err := client.Status(t.Context(), m.ClientURL); err != nil || status.Version != version {
				t.Errorf("status %v, %v", status, err)
			}
			peer := &identity{f.peer, pki.Leaf{Name: f.peerCN, Usage: pki.Peer}, time.Now()}
			for _, knock := range []struct {
				name, url string
				show      *identity
				welcome   bool
			}{
				{"a client to the client port", m.ClientURL, f.controller(), true},
				{"a peer to the peer port", m.PeerURL, peer, true},
				{"nobody to the client port", m.ClientURL, nil, false},
				{"nobody to the peer port", m.PeerURL, nil, false},
				{"another cluster's client", m.ClientURL, &identity{other.client, pki.Leaf{Name: pki.EtcdClientName(), Usage: pki.Client}, time.Now()}, false},
				{"another cluster's peer", m.PeerURL, &identity{other.peer, pki.Leaf{Name: f.peerCN, Usage: pki.Peer}, time.Now()}, false},
				{"an expired client", m.ClientURL, &identity{f.client, pki.Leaf{Name: pki.EtcdClientName(), Usage: pki.Client}, f.since}, false},
				{"a client as a peer", m.PeerURL, &identity{f.client, pki.Leaf{Name: f.peerCN, Usage: pki.Peer}, time.Now()}, false},
				{"a peer as a client", m.ClientURL, peer, false},
				{"a peer with another name", m.PeerURL, &identity{f.peer, pki.Leaf{Name: pki.PeerName("other"), Usage: pki.Peer}, time.Now()}, false},
				{"a server as a client (F132)", m.ClientURL, &identity{f.client, pki.Leaf{Name: pki.ServerName("m0"), Usage: pki.Server}, time.Now()}, false},
			} {
				if err := visit(t, knock.url, f.tls(t, knock.show)); (err == nil) != knock.welcome {
					t.Errorf("%s: welcome %t, got %v", knock.name, knock.welcome, err)
				}
			}
			checkTLSVersions(t, f, m, peer)
			checkLog(t, version, m)
		})
	}
}

// checkTLSVersions: both ports speak TLS 1.2 and not 1.1. The 1.2 counts as
// the proof that it is the version that 1.1 is refused for.
func checkTLSVersions(t *testing.T, f *fleet, m Member, peer *identity) {
	t.Helper()
	for url, show := range map[string]*identity{m.ClientURL: f.controller(), m.PeerURL: peer} {
		for of, welcome := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true} {
			config := f.tls(t, show)
			config.MinVersion, config.MaxVersion = of, of
			if err := visit(t, url, config); (err == nil) != welcome {
				t.Errorf("%s with %s: welcome %t, got %v", url, tls.VersionName(of), welcome, err)
			}
		}
	}
}

// checkLog: etcd logged to its file, and understood what its flags mean.
func checkLog(t *testing.T, version string, m Member) {
	t.Helper()
	raw, err := os.ReadFile(m.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{`"pre-vote":true`, `"snapshot-count":10000`, `"quota-backend-bytes":1073741824`, `"listen-metrics-urls":[]`, `"auto-compaction-retention":"0s"`}
	if version == "3.5.35" {
		wants = append(wants, `"initial-corrupt-check":true`, `"compact-check-time-enabled":true`)
	} else {
		wants = append(wants, `"feature-gates":"CompactHashCheck=true,InitialCorruptCheck=true,StopGRPCServiceOnDefrag=true"`)
	}
	for _, want := range wants {
		if !strings.Contains(string(raw), want) {
			t.Errorf("etcd did not log %s", want)
		}
	}
}

// TestEtcdFormsAClusterAndTakesALearner: members of each minor find each other
// over mutual TLS, and one that joins becomes a learner.
func TestEtcdFormsAClusterAndTakesALearner(t *testing.T) {
	for _, version := range tested {
		t.Run(version, func(t *testing.T) {
			f := newFleet(t)
			members := []Member{f.member(t, "m0"), f.member(t, "m1"), f.member(t, "m2")}
			var entries []string
			for _, m := range members {
				entries = append(entries, m.Name+"="+m.PeerURL)
			}
			for i := range members {
				members[i].InitialCluster = strings.Join(entries, ",")
				start(t, version, members[i])
			}
			client := connect(t, f.tls(t, f.controller()), members...)
			await(t, client)
			joiner := f.member(t, "m3")
			addLearner(t, client, joiner)
			joiner.Found, joiner.InitialCluster = false, strings.Join(append(entries, "m3="+joiner.PeerURL), ",")
			start(t, version, joiner)
			awaitLearner(t, connect(t, f.tls(t, f.controller()), joiner), joiner)
		})
	}
}

// addLearner tries again while connections are younger than etcd wants (F004).
func addLearner(t *testing.T, client *clientv3.Client, m Member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, err := client.MemberAddAsLearner(ctx, []string{m.PeerURL})
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "unhealthy cluster") {
			t.Fatal(err)
		}
		pause(t, ctx)
	}
}

func awaitLearner(t *testing.T, client *clientv3.Client, m Member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, 5*time.Second)
		status, err := client.Status(try, m.ClientURL)
		done()
		if err == nil && status.IsLearner && status.Leader != 0 && status.RaftAppliedIndex > 0 {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(fmt.Errorf("%s is no learner that applies: %v, %w", m.Name, status, err))
		}
		pause(t, ctx)
	}
}

// pause keeps a loop that waits for a condition from asking all the time.
func pause(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	case <-time.After(100 * time.Millisecond):
	}
}

// TestEtcdTakesEveryExtraArgument: what CheckArgs lets through, etcd starts
// with, so that a typing error never reaches a running cluster.
func TestEtcdTakesEveryExtraArgument(t *testing.T) {
	for _, version := range tested {
		t.Run(version, func(t *testing.T) {
			f := newFleet(t)
			m := f.member(t, "m0")
			extra := map[string]string{
				"auth-token": "simple", "cipher-suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "cors": "*",
				"enable-grpc-gateway": "true", "grpc-keepalive-min-time": "1s", "host-whitelist": "*", "log-level": "warn",
				"max-concurrent-streams": "1000", "max-request-bytes": "2097152", "max-txn-ops": "0x100", "metrics": "extensive",
				"backend-batch-interval": "10ms", "backend-bbolt-freelist-type": "array", "snapshot-count": "500",
				"socket-reuse-address": "true", "tls-min-version": "TLS1.2", "tls-max-version": "TLS1.3",
			}
			if version != "3.5.35" {
				extra["feature-gates"] = "LeaseCheckpoint=true,TxnModeWriteWithSharedBuffer=false"
				extra["snapshot-catchup-entries"] = "500"
			} else {
				extra["experimental-warning-apply-duration"] = "1s"
			}
			if version == "3.6.16" {
				extra["experimental-watch-progress-notify-interval"] = "9s"
			}
			m.Settings.ExtraArgs = extra
			m.Settings.HeartbeatMilliseconds, m.Settings.ElectionMilliseconds = 200, 2000
			m.Settings.AutoCompactionRetention = "1h30m"
			m.WALDir = m.DataDir + "-wal"
			start(t, version, m)
			await(t, connect(t, f.tls(t, f.controller()), m))
		})
	}
}
