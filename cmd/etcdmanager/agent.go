package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent"
)

func agentCommand() *cobra.Command {
	var opts agent.Options
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run one etcd member on this machine, as the controller declares it",
		Long: `Runs on an etcd machine. It serves what it sees, and takes what is wanted, at
port 2378 of its address. Stopping it leaves etcd running; started again on the
same directory it takes the running etcd up.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			opts.Version = cmd.Root().Version
			opts.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return agent.Run(ctx, opts)
		},
	}
	cmd.Flags().StringVar(&opts.Dir, "dir", "/var/lib/etcdmanager", "directory for etcd, its releases and the machine's identity")
	cmd.Flags().StringVar(&opts.Address, "address", "", "the machine's IP address")
	cmd.Flags().StringVar(&opts.Bootstrap, "bootstrap", "", "file with the bootstrap data; deleted when the machine is enrolled")
	_ = cmd.MarkFlagRequired("address")
	return cmd
}
