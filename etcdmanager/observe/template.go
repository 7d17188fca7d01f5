package observe

import (
	"maps"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// Template is the part of what agents are told that comes from the cluster's
// spec and is the same for all its members. The mirror is the default one.
func Template(cluster *v1alpha1.EtcdCluster, mirror string) protocol.Wanted {
	spec := cluster.Spec
	if spec.Release.Mirror != "" {
		mirror = spec.Release.Mirror
	}
	w := protocol.Wanted{
		Version: spec.Version, Mirror: mirror, SHA256: spec.Release.SHA256,
		Settings: protocol.Settings{QuotaBackendBytes: spec.Etcd.QuotaBackendBytes.Value(), ExtraArgs: spec.Etcd.ExtraArgs},
	}
	if d := spec.Etcd.HeartbeatInterval; d != nil {
		w.Settings.HeartbeatMilliseconds = d.Milliseconds()
	}
	if d := spec.Etcd.ElectionTimeout; d != nil {
		w.Settings.ElectionMilliseconds = d.Milliseconds()
	}
	if d := spec.Etcd.AutoCompactionRetention; d != nil {
		w.Settings.AutoCompactionRetention = d.Duration.String()
	}
	return w
}

// outdated says that an agent was told something else than the spec says now.
func outdated(told, template protocol.Wanted) bool {
	return told.Version != template.Version || told.Mirror != template.Mirror || !maps.Equal(told.SHA256, template.SHA256) ||
		told.Settings.QuotaBackendBytes != template.Settings.QuotaBackendBytes ||
		told.Settings.HeartbeatMilliseconds != template.Settings.HeartbeatMilliseconds ||
		told.Settings.ElectionMilliseconds != template.Settings.ElectionMilliseconds ||
		told.Settings.AutoCompactionRetention != template.Settings.AutoCompactionRetention ||
		!maps.Equal(told.Settings.ExtraArgs, template.Settings.ExtraArgs)
}
