package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"
)

// Options say where an agent lives. Durations that are zero take the default
// named with them.
type Options struct {
	// Dir holds everything the agent and its etcd own. One agent per Dir.
	Dir string
	// Address is the machine's IP address. Agent, clients and peers of etcd
	// are served on it, on the ports that package bootstrap names.
	Address string
	// Bootstrap is the path of the bootstrap data. It is read until the
	// machine is enrolled and deleted then; later it may be missing.
	Bootstrap string
	// Version is the agent's own, for reports.
	Version string
	Log     *slog.Logger

	StopDeadline  time.Duration // from SIGTERM to SIGKILL; 20 s
	ProbeInterval time.Duration // 2 s
	DataInterval  time.Duration // between looks at the data of a running etcd; 10 s
	RetryMin      time.Duration // first wait before etcd is started again; 1 s
	RetryMax      time.Duration // longest such wait; 30 s
	LogLimit      int64         // bytes of etcd.log before it is rotated; 64 MiB
}

const logsKept = 3

func (o Options) withDefaults() (Options, error) {
	if net.ParseIP(o.Address) == nil {
		return o, fmt.Errorf("address %q is not an IP address", o.Address)
	}
	if o.Dir == "" {
		return o, errors.New("no directory given")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("directory %q: %w", o.Dir, err)
	}
	o.Dir = dir
	if o.Log == nil {
		o.Log = slog.Default()
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&o.StopDeadline, 20 * time.Second},
		{&o.ProbeInterval, 2 * time.Second},
		{&o.DataInterval, 10 * time.Second},
		{&o.RetryMin, time.Second},
		{&o.RetryMax, 30 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	if o.LogLimit <= 0 {
		o.LogLimit = 64 << 20
	}
	return o, nil
}
