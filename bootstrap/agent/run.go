// Package agent runs on an etcd machine. It carries out the one member that it
// was told to run, reports what it really sees, and keeps etcd running while
// the controller, the management cluster or the network is gone. An agent that
// stops, crashes or is replaced never touches a running etcd.
//
// It must import neither client-go nor controller-runtime nor the deciding side
// under etcdmanager/, and holds no credential of the management cluster.
package agent

import "context"

// Run is the agent's whole life: it serves until ctx ends, and leaves etcd
// running then.
func Run(ctx context.Context, opts Options) error {
	_, err := opts.withDefaults()
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
