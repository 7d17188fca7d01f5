package admission

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	oddReplicas  = "replicas must be 1, 3, 5 or 7: an even number of members tolerates no more failures than one less"
	fullVersion  = "version must be a full version of etcd without v, like 3.7.3"
	fiveTimes    = "electionTimeout must be at least five times heartbeatInterval"
	likeDuration = " must be a duration like 500ms, 30s or 1h30m"
)

// TestBadClusters has one mistake in each case; the answer has one message.
func TestBadClusters(t *testing.T) {
	cases := []struct{ name, spec, want string }{
		{"even replicas", "replicas: 4", ": 4: " + oddReplicas},
		{"no replicas", "replicas: 0", ": 0: " + oddReplicas},
		{"too many replicas", "replicas: 9", ": 9: " + oddReplicas},
		{"negative replicas", "replicas: -1", "spec.replicas: Invalid value: -1: should be a non-negative integer"},
		{"no version", "version: ", "spec.version: Required value"},
		{"version with v", "version: v3.7.3", fullVersion},
		{"version without patch", "version: '3.7'", fullVersion},
		{"version latest", "version: latest", fullVersion},
		{"mirror by ftp", "release: {mirror: 'ftp://mirror.example/etcd'}", "mirror must be an http://, https:// or file:// URL"},
		{"mirror without scheme", "release: {mirror: mirror.example}", "mirror must be an http://, https:// or file:// URL"},
		{"digest of no architecture", "release: {sha256: {sparc: " + strings.Repeat("a", 64) + "}}", "sha256 is by architecture: amd64 or arm64"},
		{"short digest", "release: {sha256: {amd64: abc}}", "sha256 must be 64 hexadecimal digits in lower case"},
		{"same failure domain twice", "machineTemplate: {failureDomains: [a, b, a]}", `spec.machineTemplate.failureDomains[2]: Duplicate value: "a"`},
		{"nameless failure domain", "machineTemplate: {failureDomains: ['']}", "should be at least 1 chars long"},
		{"actuator with upper case", "machineTemplate: {actuator: EC2}", "actuator is a name of lower-case letters, digits and dashes"},
		{"config that is no object", "machineTemplate: {config: small}", `spec.machineTemplate.config in body must be of type object: "string"`},
		{"short election timeout", "etcd: {electionTimeout: 300ms}", fiveTimes},
		{"slow heartbeat", "etcd: {electionTimeout: 2s, heartbeatInterval: 500ms}", fiveTimes},
		{"long election timeout", "etcd: {electionTimeout: 1m}", "electionTimeout must be at most 50s"},
		{"short heartbeat", "etcd: {heartbeatInterval: 1ms}", "heartbeatInterval must be at least 10ms"},
		{"heartbeat without unit", "etcd: {heartbeatInterval: '100'}", "heartbeatInterval" + likeDuration},
		{"election timeout in words", "etcd: {electionTimeout: 1 second}", "electionTimeout" + likeDuration},
		{"compaction in days", "etcd: {autoCompactionRetention: 1d}", "autoCompactionRetention" + likeDuration},
		{"negative compaction", "etcd: {autoCompactionRetention: -1h}", "autoCompactionRetention" + likeDuration},
		{"hectic compaction", "etcd: {autoCompactionRetention: 10ms}", "autoCompactionRetention must be at least 1s; leave it out to turn compaction off"},
		{"small quota", "etcd: {quotaBackendBytes: 1Mi}", "quotaBackendBytes must be at least 16Mi"},
		{"negative quota", "etcd: {quotaBackendBytes: -1}", "quotaBackendBytes must be at least 16Mi"},
		{"quota in words", "etcd: {quotaBackendBytes: much}", `(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'`},
		{"extra argument with dashes", "etcd: {extraArgs: {--max-txn-ops: '256'}}", "extraArgs are named like etcd's flags, without leading dashes"},
		{"extra argument that is a number", "etcd: {extraArgs: {max-txn-ops: 256}}", `spec.etcd.extraArgs.max-txn-ops in body must be of type string: "integer"`},
		{"dead too soon", "repair: {deadAfter: 1s}", "deadAfter must be at least 10s: an election takes seconds, and a restart is no death"},
		{"dead after a word", "repair: {deadAfter: soon}", "deadAfter" + likeDuration},
		{"unknown field", "replica: 3", `strict decoding error: unknown field "spec.replica"`},
		{"unknown field below", "etcd: {quota: 8Gi}", `strict decoding error: unknown field "spec.etcd.quota"`},
	}
	c, namespace := strict(t)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			cluster := manifest(t, namespace, "bad", test.spec)
			expectOne(t, c.Create(t.Context(), cluster), test.want)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); !apierrors.IsNotFound(err) {
				t.Errorf("after the refusal: %v, want not found", err)
			}
		})
	}
}

func TestBadNames(t *testing.T) {
	cases := []struct{ name, want string }{
		{strings.Repeat("n", 41), "the name is too long: at most 40 characters, because machines and Secrets are named after it"},
		{"with.dot", "the name may hold lower-case letters, digits and dashes only: machines and Secrets are named after it"},
	}
	c, namespace := strict(t)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			expectOne(t, c.Create(t.Context(), manifest(t, namespace, test.name, "")), test.want)
		})
	}
	if err := c.Create(t.Context(), manifest(t, namespace, strings.Repeat("n", 40), "")); err != nil {
		t.Errorf("a name of 40 characters: %v", err)
	}
}
