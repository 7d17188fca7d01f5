package release

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckArgs(t *testing.T) {
	for _, test := range []struct {
		name, version string
		args          map[string]string
		want          string // empty: taken
	}{
		{"none", "3.7.3", nil, ""},
		{"many good ones", "3.7.3", map[string]string{
			"snapshot-count": "50000", "max-request-bytes": "0x200000", "log-level": "warn", "grpc-keepalive-min-time": "1s",
			"socket-reuse-port": "true", "feature-gates": "LeaseCheckpoint=true,InitialCorruptCheck=true", "auth-token": "jwt,pub-key=/k,sign-method=ES256",
			"tls-min-version": "TLS1.3", "enable-grpc-gateway": "true",
		}, ""},
		{"a flag of 3.5 on 3.5", "3.5.35", map[string]string{"experimental-warning-apply-duration": "1s"}, ""},
		{"the same on 3.7 (F050)", "3.7.3", map[string]string{"experimental-warning-apply-duration": "1s"}, "extra argument experimental-warning-apply-duration: etcd 3.7 has no such flag"},
		{"a flag of 3.6 on 3.5", "3.5.35", map[string]string{"memory-mlock": "true"}, "extra argument memory-mlock: etcd 3.5 has no such flag"},
		{"a typing error", "3.7.3", map[string]string{"snapshot-cuont": "5"}, "extra argument snapshot-cuont: etcd 3.7 has no such flag"},
		{"dashes", "3.7.3", map[string]string{"--snapshot-count": "5"}, `extra argument "--snapshot-count": write it without leading dashes`},
		{"a second flag in the name", "3.7.3", map[string]string{"log-level=info --unsafe-no-fsync": ""}, "extra argument log-level=info --unsafe-no-fsync: etcd 3.7 has no such flag"},
		{"the manager's own", "3.7.3", map[string]string{"data-dir": "/x"}, "extra argument data-dir is set by the manager"},
		{"never off (F001)", "3.7.3", map[string]string{"strict-reconfig-check": "false"}, "extra argument strict-reconfig-check is set by the manager"},
		{"the manager's own by its older name (F069)", "3.5.35", map[string]string{"experimental-initial-corrupt-check": "false"}, "extra argument experimental-initial-corrupt-check is set by the manager"},
		{"another field of the spec", "3.7.3", map[string]string{"quota-backend-bytes": "1"}, "extra argument quota-backend-bytes is set by the manager, from the settings of the cluster"},
		{"dangerous (F123)", "3.6.16", map[string]string{"unsafe-no-fsync": "true"}, "extra argument unsafe-no-fsync is refused: it loses data (F123)"},
		{"open to the network (F142)", "3.6.16", map[string]string{"listen-metrics-urls": "http://0.0.0.0:1"}, "extra argument listen-metrics-urls is refused: metrics without authentication would be open to the network (F142)"},
		{"not a boolean", "3.7.3", map[string]string{"socket-reuse-port": "yes"}, `extra argument socket-reuse-port: "yes" is neither true nor false`},
		{"not a number", "3.7.3", map[string]string{"snapshot-count": "10k"}, `extra argument snapshot-count: "10k" is not a whole number`},
		{"negative where etcd parses it", "3.7.3", map[string]string{"backend-batch-limit": "-1"}, "extra argument backend-batch-limit: -1 is negative"},
		{"negative where it doesn't", "3.7.3", map[string]string{"snapshot-count": "-1"}, `extra argument snapshot-count: "-1" is not a whole number`},
		{"not a duration", "3.7.3", map[string]string{"grpc-keepalive-min-time": "5"}, `extra argument grpc-keepalive-min-time: "5" is not a duration like 500ms or 1h30m`},
		{"negative duration", "3.7.3", map[string]string{"grpc-keepalive-min-time": "-5s"}, "extra argument grpc-keepalive-min-time: -5s is negative"},
		{"no such choice", "3.7.3", map[string]string{"log-level": "loud"}, `extra argument log-level: "loud" is none of debug, info, warn, error, panic, fatal`},
		{"TLS too old", "3.7.3", map[string]string{"tls-min-version": "TLS1.1"}, `extra argument tls-min-version: "TLS1.1" is none of TLS1.2, TLS1.3`},
		{"a line break", "3.7.3", map[string]string{"cipher-suites": "A\nB"}, "extra argument cipher-suites: there is a control character in it"},
		{"no such gate", "3.6.16", map[string]string{"feature-gates": "FastLeaseKeepAlive=true"}, "extra argument feature-gates: etcd 3.6 has no feature gate FastLeaseKeepAlive"},
		{"gate without a value", "3.7.3", map[string]string{"feature-gates": "LeaseCheckpoint"}, `extra argument feature-gates: "LeaseCheckpoint" is not GATE=true or GATE=false`},
		{"the manager's gate", "3.7.3", map[string]string{"feature-gates": "InitialCorruptCheck=false"}, "extra argument feature-gates: feature gate InitialCorruptCheck is set by the manager"},
		{"gates on 3.5", "3.5.35", map[string]string{"feature-gates": "LeaseCheckpoint=true"}, "extra argument feature-gates: etcd 3.5 has no such flag"},
		{"the first bad one by name", "3.7.3", map[string]string{"zzz": "", "aaa": "", "name": "x"}, "extra argument aaa: etcd 3.7 has no such flag"},
		{"an unknown version", "3.8.0", nil, "etcd 3.8.0 is not known here; known are 3.5 (from 3.5.33), 3.6 (from 3.6.14), 3.7 (from 3.7.2)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := CheckArgs(test.version, test.args); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestEveryFlagIsDecidedOn: testdata/allowed-3.x.txt lists the flags that are
// left to the user. A new one of a new patch shows up here, for someone to
// decide on; -update writes the lists anew.
func TestEveryFlagIsDecidedOn(t *testing.T) {
	for _, m := range minors {
		var allowed strings.Builder
		for _, name := range slices.Sorted(maps.Keys(m.flags)) {
			if _, is := refused[strings.TrimPrefix(name, "experimental-")]; !is {
				fmt.Fprintln(&allowed, name)
			}
		}
		path := filepath.Join("testdata", "allowed-"+m.String()+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(allowed.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		decided, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(decided), allowed.String()); diff != "" {
			t.Errorf("%s: decided on (-) and left to the user (+):\n%s", m, diff)
		}
	}
}

// TestRefusedFlagsExist: a typing error in the list would refuse nothing.
func TestRefusedFlagsExist(t *testing.T) {
	lists := []map[string]string{refused}
	for choice := range choicesOf {
		lists = append(lists, map[string]string{choice: ""})
	}
	for _, list := range lists {
		for name := range list {
			if name == "config-file" { // in the help's usage, not among its flags
				continue
			}
			if !slices.ContainsFunc(minors, func(m minor) bool {
				_, plain := m.flags[name]
				_, older := m.flags["experimental-"+name]
				return plain || older
			}) {
				t.Errorf("no etcd has a flag %s", name)
			}
		}
	}
}

// TestKindsAgreeWithEtcd: the values that a kind takes are taken by the real
// etcd, and what cannot be parsed is refused here.
func TestKindsAgreeWithEtcd(t *testing.T) {
	samples := []string{"", "@", "true", "T", "yes", "1", "010", "0b11", "1_000", "0xff", "1.5", "9223372036854775808", "1s", "1h30m", "5 s"}
	for _, version := range tested {
		etcd := etcdBinary(t, version)
		for _, name := range []string{"socket-reuse-port", "max-txn-ops", "quota-backend-bytes", "backend-batch-interval"} {
			m, err := lookup(version)
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range samples {
				said := string(run(t, etcd, "--"+name+"="+value, "--not-a-flag"))
				parses := strings.Contains(said, "not defined: -not-a-flag")
				if err := m.flags[name].check(value); (err == nil) != parses {
					t.Errorf("etcd %s --%s=%q: etcd parses it: %t; checked here: %v", version, name, value, parses, err)
				}
			}
		}
	}
}
