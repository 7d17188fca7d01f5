package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// version is set when the binary is linked.
var version = "dev"

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "etcdmanager %s %s/%s\n", version, runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
