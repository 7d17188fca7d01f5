package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/etcdmanager/etcdmanager/etcdmanager/demo"
	"github.com/etcdmanager/etcdmanager/etcdmanager/management"
)

func demoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show it all: found a cluster, lose a machine, have it replaced",
		Long: `Starts a management API and the controller, applies an EtcdCluster with three
members, runs a kube-apiserver on the etcd that comes of it, destroys a machine
while a writer keeps writing, prints what was measured, and removes everything.
Nothing but loopback addresses is used.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := management.FindBinaries(o.BinDir); err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program, which is the agent of local machines: %w", err)
			}
			o.Executable, o.Out = self, cmd.OutOrStdout()
			return demo.Run(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.BinDir, "bin-dir", "bin/testbin", "folder with kube-apiserver and etcd, made by 'make testbin'")
	flags.StringVar(&o.Version, "etcd-version", "3.7.3", "version of etcd to run")
	flags.StringVar(&o.Dir, "dir", "", "folder for everything that is made (default: a new temporary one)")
	flags.BoolVar(&o.Keep, "keep", false, "leave machines and files there at the end")
	return cmd
}
