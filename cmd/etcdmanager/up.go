package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/etcdmanager/etcdmanager/etcdmanager/controllers"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/management"
)

type upOptions struct {
	dir, binDir, mirror string
	execActuators       []string
}

func upCommand() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Run a management API, the controller and local machines",
		Long: `Runs a management API and the controller in the foreground; machines are
processes of this host. Ctrl-C stops the API and the controller and leaves the
machines serving. Started again on the same DIR it takes everything up where it
was; 'etcdmanager down --dir DIR' removes it all.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := up(cmd.Context(), cmd.OutOrStdout(), o)
			if errors.Is(err, context.Canceled) && cmd.Context().Err() != nil {
				return nil // asked for
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.dir, "dir", "", "folder for everything that is made; a new or empty one, or one of up's")
	flags.StringVar(&o.binDir, "bin-dir", "bin/testbin", "folder with kube-apiserver and etcd, made by 'make testbin'")
	flags.StringVar(&o.mirror, "release-mirror", "", "base URL of etcd's releases, http(s):// or file:// (default: the folder mirror in --bin-dir)")
	flags.StringArrayVar(&o.execActuators, "exec-actuator", nil, "one more actuator, as name=program; may be repeated")
	return cmd
}

func up(ctx context.Context, out io.Writer, o upOptions) error {
	if o.dir == "" {
		return usagef("up needs --dir, a folder for everything that it makes")
	}
	if _, err := management.FindBinaries(o.binDir); err != nil {
		return err
	}
	actuators := map[string]machine.Actuator{localName: nil}
	if err := addExecActuators(actuators, o.execActuators); err != nil {
		return err
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return fmt.Errorf("find --dir: %w", err)
	}
	names := slices.DeleteFunc(slices.Collect(maps.Keys(actuators)), func(name string) bool { return name == localName })
	if err := management.Claim(dir, names); err != nil {
		return err
	}
	fmt.Fprintln(out, "Starting the management API, a kube-apiserver on an etcd of its own.")
	api, err := management.Start(ctx, management.Options{Dir: dir, BinDir: o.binDir, Log: slog.Default()})
	if err != nil {
		return err
	}
	err = serve(ctx, out, dir, api, actuators, o)
	fmt.Fprintln(out, "Stopping the management API and the controller; machines keep serving.")
	return errors.Join(err, api.Stop(context.WithoutCancel(ctx)))
}

// serve runs the controller until the context ends.
func serve(ctx context.Context, out io.Writer, dir string, api *management.API, actuators map[string]machine.Actuator, o upOptions) error {
	machines, err := newLocal(localDir(dir))
	if err != nil {
		return err
	}
	actuators[localName] = machines
	if o.mirror == "" {
		binDir, err := filepath.Abs(o.binDir)
		if err != nil {
			return fmt.Errorf("find --bin-dir: %w", err)
		}
		o.mirror = "file://" + filepath.Join(binDir, "mirror")
	}
	printWelcome(out, api.Kubeconfig(), o.binDir)
	return controllers.Run(ctx, api.Config(), controllers.Options{
		Actuators:      actuators,
		ReleaseMirror:  o.mirror,
		MetricsAddress: "0",
		HealthAddress:  "0",
		// The lock of the folder makes it certain to be alone.
		NoLeaderElection: true,
		Log:              slog.Default(),
	})
}

const welcome = `
The management API is up and the controller runs. Its kubeconfig:

  %[1]s

Try, in another shell:

export PATH=%[2]s:%[2]s/etcd-v3.7.3:$PATH KUBECONFIG=%[1]s
kubectl apply -f - <<EOF
apiVersion: etcdmanager.io/v1alpha1
kind: EtcdCluster
metadata:
  name: demo
spec:
  replicas: 3
  version: 3.7.3
EOF
kubectl get etcdcluster demo -w    # until it is Ready, then Ctrl-C
eval "$(%[3]s client-env demo)"; etcdctl endpoint health

Ctrl-C here stops the API and the controller and leaves machines serving.
`

func printWelcome(out io.Writer, kubeconfig, binDir string) {
	if abs, err := filepath.Abs(binDir); err == nil {
		binDir = abs
	}
	self, err := os.Executable()
	if err != nil {
		self = "etcdmanager"
	}
	fmt.Fprintf(out, welcome, kubeconfig, binDir, self)
}
