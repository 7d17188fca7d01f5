package main

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcdmanager/etcdmanager/etcdmanager/consumer"
)

func clientEnvCommand() *cobra.Command {
	var kubeconfig string
	var o consumer.EnvOptions
	cmd := &cobra.Command{
		Use:   "client-env NAME",
		Short: "Print what etcdctl needs to talk to a cluster",
		Long: `Writes a cluster's client certificate to a private folder and prints lines that
tell etcdctl of it and of the endpoints:

  eval "$(etcdmanager client-env demo)"
  etcdctl endpoint health

It reads the Secrets NAME-etcd and NAME-apiserver-etcd-client.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			rules := clientcmd.NewDefaultClientConfigLoadingRules()
			rules.ExplicitPath = kubeconfig
			o.Name, o.Out = args[0], cmd.OutOrStdout()
			return consumer.Env(cmd.Context(), clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "namespace of the cluster (default: the kubeconfig's)")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the management API (default: KUBECONFIG)")
	flags.StringVar(&o.Dir, "dir", "", "folder for the certificates (default: one of your own per cluster, in the user's cache)")
	return cmd
}
