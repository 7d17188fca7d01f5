package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/management"
)

// goneTimeout is how long one local machine may take to be gone.
const goneTimeout = 2 * time.Minute

func downCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop and remove everything that up made",
		Long: `Stops the management API, the controller and the local machines of a DIR, and
removes them with all their data. It says what it removes, touches nothing that
up did not make, and can be repeated when it was interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usagef("down needs --dir, the folder given to up")
			}
			return down(cmd.Context(), cmd.OutOrStdout(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder given to up")
	return cmd
}

func down(ctx context.Context, out io.Writer, given string) error {
	dir, err := filepath.Abs(given)
	if err != nil {
		return fmt.Errorf("find --dir: %w", err)
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(out, "There is no %s: nothing to remove.\n", dir)
		return nil
	}
	marker, err := management.Claimed(dir)
	if err != nil {
		return err
	}
	lock, err := management.TakeOver(ctx, dir, func(pid int) {
		fmt.Fprintf(out, "Stopping the etcdmanager that runs on it (process %d).\n", pid)
	})
	if err != nil {
		return err
	}
	err = management.EndLeftovers(ctx, dir)
	if err == nil {
		err = removeMachines(ctx, out, localDir(dir))
	}
	if err != nil {
		return errors.Join(err, lock.Release())
	}
	for _, name := range marker.ExecActuators {
		fmt.Fprintf(out, "Machines that the actuator %s made, if any, are not below %s and stay.\n", name, dir)
	}
	return management.Clear(dir, lock, []string{localName}, func(path string) {
		fmt.Fprintln(out, "Removing", path)
	})
}

// removeMachines deletes every local machine and waits until each is gone.
func removeMachines(ctx context.Context, out io.Writer, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	machines, err := newLocal(dir)
	if err != nil {
		return err
	}
	all, err := machines.List(ctx)
	if err != nil {
		return fmt.Errorf("list the local machines: %w", err)
	}
	for _, m := range all {
		fmt.Fprintf(out, "Removing machine %s of cluster %s/%s\n", m.Name, m.Namespace, m.Cluster)
		if err := removeMachine(ctx, machines, m); err != nil {
			return fmt.Errorf("remove machine %s: %w", m.Name, err)
		}
	}
	return nil
}

func removeMachine(ctx context.Context, machines machine.Actuator, m machine.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		if err := machines.Delete(ctx, m); err != nil {
			return err
		}
		_, err := machines.Observe(ctx, m)
		if errors.Is(err, machine.ErrNotFound) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it is still there: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}
