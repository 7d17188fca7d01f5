// Package demo does the product's main job in front of somebody's eyes, on
// real parts: a management API, the controller, machines, an etcd that forms,
// a kube-apiserver on it, and a machine that is destroyed and replaced while a
// writer keeps writing.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/etcdmanager/controllers"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
	"github.com/etcdmanager/etcdmanager/etcdmanager/management"
)

// Options of a demo.
type Options struct {
	BinDir     string // kube-apiserver, etcd and the mirror, made by `make testbin`
	Executable string // this program, which is the agent of the machines
	Version    string // of etcd
	Out        io.Writer
	// Keep leaves everything in Dir for a look; Dir is a new temporary
	// folder if empty.
	Keep bool
	Dir  string
}

const (
	namespace = "default"
	name      = "demo"
	// patience with every single thing that is waited for.
	patience = 3 * time.Minute
)

// Run runs the demo and takes everything away again, also when it fails or is
// interrupted.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o, started: time.Now()}
	if d.Dir == "" {
		if d.Dir, err = os.MkdirTemp("", "etcdmanager-demo-"); err != nil {
			return fmt.Errorf("make a folder for the demo: %w", err)
		}
	}
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	if d.BinDir, err = filepath.Abs(o.BinDir); err != nil {
		return fmt.Errorf("find the binaries: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(d.Dir, "demo.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make the demo's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	d.log = slog.New(slog.NewTextHandler(log, nil))
	defer func() { err = d.clean(context.WithoutCancel(ctx), err) }()
	return d.run(ctx)
}

// demo is one run.
type demo struct {
	Options
	started    time.Time
	log        *slog.Logger
	api        *management.API
	client     client.Client
	machines   *local.Actuator
	controller chan error
	stop       context.CancelFunc
	served     *management.APIServer
	summary    []string
}

func (d *demo) run(ctx context.Context) error {
	for _, act := range []struct {
		say string
		do  func(context.Context) error
	}{
		{"Starting the management API: a real kube-apiserver on an etcd of its own.", d.startManagement},
		{"Starting the controller.", d.startController},
		{"Applying an EtcdCluster with three members.", d.apply},
		{"Starting a second kube-apiserver on the new etcd.", d.serve},
		{"Destroying a machine, with its disk, while a writer keeps writing.", d.destroy},
		{"Deleting the EtcdCluster.", d.delete},
	} {
		d.say("%s", act.say)
		if err := act.do(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(d.Out)
	for _, line := range d.summary {
		fmt.Fprintln(d.Out, line)
	}
	return nil
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.Out, "%6.1fs  %s\n", time.Since(d.started).Seconds(), fmt.Sprintf(format, args...))
}

func (d *demo) sum(what, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	d.say("        %s: %s", what, line)
	d.summary = append(d.summary, fmt.Sprintf("  %-28s %s", what, line))
}

func (d *demo) startManagement(ctx context.Context) error {
	var err error
	d.api, err = management.Start(ctx, management.Options{Dir: filepath.Join(d.Dir, "up"), BinDir: d.BinDir, Log: d.log})
	if err != nil {
		return err
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	if d.client, err = client.New(d.api.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client of the management API: %w", err)
	}
	d.machines, err = local.New(local.Options{Dir: filepath.Join(d.Dir, "up", "local"), Executable: d.Executable, Log: d.log})
	return err
}

func (d *demo) startController(ctx context.Context) error {
	ctx, d.stop = context.WithCancel(ctx)
	d.controller = make(chan error, 1)
	go func() {
		d.controller <- controllers.Run(ctx, d.api.Config(), controllers.Options{
			Actuators:      map[string]machine.Actuator{"local": d.machines},
			ReleaseMirror:  "file://" + filepath.Join(d.BinDir, "mirror"),
			MetricsAddress: "0", HealthAddress: "0", NoLeaderElection: true, Log: d.log,
		})
	}()
	return nil
}

// clean stops and removes everything. What went wrong is told with where to
// look.
func (d *demo) clean(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if d.served != nil {
		d.served.Stop(ctx)
	}
	if d.stop != nil {
		d.stop()
		if stopped := <-d.controller; stopped != nil && !errors.Is(stopped, context.Canceled) {
			err = errors.Join(err, fmt.Errorf("the controller ended: %w", stopped))
		}
	}
	if d.Keep {
		d.say("Left as it is: %s. Machines are serving.", d.Dir)
	} else if d.machines != nil {
		err = errors.Join(err, d.removeMachines(ctx))
	}
	if d.api != nil {
		err = errors.Join(err, d.api.Stop(ctx))
	}
	if err != nil {
		d.say("The logs are in %s.", d.Dir)
		return err
	}
	if !d.Keep {
		if err := os.RemoveAll(d.Dir); err != nil {
			return fmt.Errorf("remove the demo's folder: %w", err)
		}
		d.say("Everything is stopped and removed.")
	}
	return nil
}

func (d *demo) removeMachines(ctx context.Context) error {
	left, err := d.machines.List(ctx)
	for _, m := range left {
		err = errors.Join(err, d.machines.Delete(ctx, m))
	}
	return err
}

func (d *demo) cluster(ctx context.Context) (*v1alpha1.EtcdCluster, error) {
	cluster := &v1alpha1.EtcdCluster{}
	err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cluster)
	return cluster, err
}
