package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses, a contract with scripts.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a mistake in how the command was called.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes a usageError.
func usagef(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

// execute runs the command line and answers the exit status. What goes wrong
// is said in one line. All that cobra refuses before a command begins is wrong
// use; once it has begun only a usageError is.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) int {
	began := false
	markBegin(root, &began)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "etcdmanager: %s\n", oneLine(err))
	var wrong *usageError
	if began && !errors.As(err, &wrong) {
		return exitFailure
	}
	fmt.Fprintf(stderr, "See '%s --help'.\n", command.CommandPath())
	return exitUsage
}

// markBegin notes when a command's own work begins.
func markBegin(command *cobra.Command, began *bool) {
	if work := command.RunE; work != nil {
		command.RunE = func(cmd *cobra.Command, args []string) error {
			*began = true
			return work(cmd, args)
		}
	}
	for _, child := range command.Commands() {
		markBegin(child, began)
	}
}

func oneLine(err error) string {
	var said []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}
