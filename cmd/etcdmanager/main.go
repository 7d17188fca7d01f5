// Command etcdmanager is the one binary: the controller, the agent on each
// etcd machine, and what people run by hand. Each subcommand has a small file
// that turns flags into a call; what it does is in the packages.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends the process at once.
	defer context.AfterFunc(ctx, stop)()
	return execute(ctx, rootCommand(), os.Stderr)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "etcdmanager",
		Short: "Highly available etcd for Kubernetes clusters, on machines of its own",
		Long: `etcdmanager provisions highly available etcd machines for Kubernetes clusters and
looks after their members, certificates and repair.

Exit status: 0 if all went well, 1 for a failure, 2 for wrong use.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cobra.EnableTraverseRunHooks = true
	addLogFlags(root)
	root.AddCommand(
		upCommand(),
		downCommand(),
		agentCommand(),
		controllerCommand(),
		demoCommand(),
		clientEnvCommand(),
		versionCommand(),
	)
	return root
}
