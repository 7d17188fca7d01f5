package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/etcdmanager/etcdmanager/etcdmanager/controllers"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

func controllerCommand() *cobra.Command {
	var o controllers.Options
	var execActuators []string
	var local string
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the controller in a management cluster",
		Long: `Runs the controller against the management API that the kubeconfig or, in a pod,
the service account gives. Two may run at once: one leads, the other waits. It
exits when it loses its lease, and is to be started again by whatever runs it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Actuators = map[string]machine.Actuator{}
			if err := addExecActuators(o.Actuators, execActuators); err != nil {
				return err
			}
			if local != "" {
				machines, err := newLocal(local)
				if err != nil {
					return err
				}
				o.Actuators[localName] = machines
			}
			if len(o.Actuators) == 0 {
				return usagef("controller needs an actuator: --exec-actuator or --local-dir")
			}
			cfg, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("find the management API: %w", err)
			}
			o.Log = slog.Default()
			return controllers.Run(cmd.Context(), cfg, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.ReleaseMirror, "release-mirror", "https://github.com/etcd-io/etcd/releases/download", "base URL of etcd's releases, http(s):// or file://")
	flags.StringArrayVar(&execActuators, "exec-actuator", nil, "an actuator, as name=program; may be repeated")
	flags.StringVar(&local, "local-dir", "", "folder of machines on this host; without it there is no actuator named local")
	flags.StringSliceVar(&o.Namespaces, "namespace", nil, "namespace to look after; may be repeated (default: all)")
	flags.IntVar(&o.Concurrent, "concurrent", 16, "clusters looked at side by side")
	flags.StringVar(&o.MetricsAddress, "metrics-address", "127.0.0.1:8080", `address of the metrics, "0" for none`)
	flags.StringVar(&o.HealthAddress, "health-address", ":8081", `address of /healthz and /readyz, "0" for none`)
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease (default: the pod's)")
	flags.BoolVar(&o.NoLeaderElection, "no-leader-election", false, "run without a lease; only where it is certain to be the only one")
	return cmd
}
