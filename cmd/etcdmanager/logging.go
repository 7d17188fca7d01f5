package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// addLogFlags sets the default logger of every command up from flags. Logs go
// to stderr: stdout is for answers.
func addLogFlags(root *cobra.Command) {
	var format, level string
	root.PersistentFlags().StringVar(&format, "log-format", "text", "format of the log: text or json")
	root.PersistentFlags().StringVar(&level, "log-level", "info", "least level to log: debug, info, warn or error")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		log, err := newLogger(cmd.ErrOrStderr(), format, level)
		if err != nil {
			return err
		}
		slog.SetDefault(log)
		klog.SetSlogLogger(log)
		return nil
	}
}

func newLogger(out io.Writer, format, level string) (*slog.Logger, error) {
	options := &slog.HandlerOptions{}
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level is debug, info, warn or error, not %q", level)
	}
	options.Level = least
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	}
	return nil, fmt.Errorf("--log-format is text or json, not %q", format)
}
