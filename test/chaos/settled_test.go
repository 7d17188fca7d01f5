package chaos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/observe"
)

// askTimeout bounds one question to one member.
const askTimeout = 5 * time.Second

// settled says whether the cluster is as wanted and none of the machines named
// is left. A status may be old, so everything is asked for itself too.
func (h *hurt) settled(ctx context.Context, config *tls.Config, replicas int, without []string) (*v1alpha1.EtcdCluster, error) {
	cluster, err := h.fleet.Get(ctx, h.cluster)
	if err != nil {
		return nil, err
	}
	if !meta.IsStatusConditionTrue(cluster.Status.Conditions, "Ready") || cluster.Status.ObservedGeneration != cluster.Generation {
		return nil, fmt.Errorf("phase %s, %+v", cluster.Status.Phase, meta.FindStatusCondition(cluster.Status.Conditions, "Ready"))
	}
	list, err := h.fleet.List(ctx, h.cluster)
	if err != nil {
		return nil, err
	}
	var names, peers []string
	for _, m := range list {
		if !m.DeletionTimestamp.IsZero() || slices.Contains(without, m.Name) {
			return nil, fmt.Errorf("machine %s is still there", m.Name)
		}
		names = append(names, m.Name)
		peers = append(peers, "https://"+m.Status.Address+":2380")
	}
	if len(list) != replicas || len(cluster.Status.Endpoints) != replicas {
		return nil, fmt.Errorf("machines %v and %d endpoints for %d members wanted", names, len(cluster.Status.Endpoints), replicas)
	}
	slices.Sort(peers)
	for _, endpoint := range cluster.Status.Endpoints {
		if err := askMember(ctx, config, endpoint, peers); err != nil {
			return nil, fmt.Errorf("%s: %w", endpoint, err)
		}
	}
	return cluster, h.runsOnly(ctx, list)
}

// askMember asks one member for its members: voters at those URLs, and no other.
func askMember(ctx context.Context, config *tls.Config, endpoint string, peers []string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: config, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // only read from
	answer, err := conn.MemberList(ctx)
	if err != nil {
		return err
	}
	var urls []string
	for _, m := range answer.Members {
		if m.IsLearner {
			return fmt.Errorf("member %s is a learner", m.Name)
		}
		urls = append(urls, m.PeerURLs...)
	}
	slices.Sort(urls)
	if !slices.Equal(urls, peers) {
		return fmt.Errorf("its members are at %v, the machines at %v", urls, peers)
	}
	return nil
}

// runsOnly says whether each machine has an agent and an etcd, and nothing
// runs of machines that were removed.
func (h *hurt) runsOnly(ctx context.Context, list []v1alpha1.EtcdMachine) error {
	var all error
	uids := map[string]bool{}
	for i := range list {
		uids[string(list[i].UID)] = true
		agents, others, err := h.fleet.Machines.Processes(ctx, observe.MachineFor(nil, &list[i]))
		if err == nil && (len(agents) != 1 || len(others) != 1) {
			err = fmt.Errorf("%s runs agents %v and etcds %v", list[i].Name, agents, others)
		}
		all = errors.Join(all, err)
	}
	made, err := h.fleet.Machines.List(ctx)
	for _, m := range made {
		if !uids[m.UID] {
			err = errors.Join(err, fmt.Errorf("machine %s (%s) is left", m.Name, m.UID))
		}
	}
	strangers, failed := h.strangers(uids)
	for _, s := range strangers {
		err = errors.Join(err, fmt.Errorf("of a removed machine runs: %s", s))
	}
	return errors.Join(all, err, failed)
}

// strangers are processes with files of machines other than these.
func (h *hurt) strangers(uids map[string]bool) ([]string, error) {
	dir, err := filepath.EvalSymlinks(h.fleet.Dir)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		line := strings.ReplaceAll(string(raw), "\x00", " ")
		_, rest, found := strings.Cut(line, filepath.Join(dir, "machines")+"/")
		if uid, _, _ := strings.Cut(rest, "/"); found && !uids[uid] {
			all = append(all, file+": "+line)
		}
	}
	return all, nil
}
