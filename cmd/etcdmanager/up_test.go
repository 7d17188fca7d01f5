package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/test/rig"
)

// running is an `up` in a process of its own.
type running struct {
	cmd *exec.Cmd
	out *output
}

// startUp runs up on dir and waits until it says that it is up.
func startUp(t *testing.T, dir string) *running {
	t.Helper()
	r := &running{cmd: command(t, "up", "--dir", dir, "--bin-dir", rig.BinDir(t)), out: &output{}}
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.out
	// The end of the test's context is to be like Ctrl-C, so that no child
	// of it is left in any case.
	r.cmd.Cancel = func() error { return r.cmd.Process.Signal(os.Interrupt) }
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Signal(os.Interrupt)
			_ = r.cmd.Wait()
		}
	})
	rig.Eventually(t, rig.Timeout, "up says that it is up", func(context.Context) error {
		if text := r.out.String(); !strings.Contains(text, "The management API is up") {
			return fmt.Errorf("it said: %s", text)
		}
		return nil
	})
	return r
}

// end signals it and answers its status; -1 when it died of the signal.
func (r *running) end(t *testing.T, signal os.Signal) int {
	t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	return r.wait(t)
}

// wait answers the status that it ends with.
func (r *running) wait(t *testing.T) int {
	t.Helper()
	var exited *exec.ExitError
	if err := r.cmd.Wait(); err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	return r.cmd.ProcessState.ExitCode()
}

// children are the processes whose command line names dir.
func children(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), dir+"/") {
			found = append(found, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	return found
}

func noChildren(t *testing.T, dir string) {
	t.Helper()
	rig.Eventually(t, rig.Timeout, "no process is left", func(context.Context) error {
		if left := children(t, dir); len(left) > 0 {
			return fmt.Errorf("left: %s", strings.Join(left, "; "))
		}
		return nil
	})
}

// TestUpComesBackAndGoes is the life of a DIR: made, refused to a second,
// ended by Ctrl-C, taken up, killed, taken up again and removed.
func TestUpComesBackAndGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	first := startUp(t, dir)
	if mode := fileMode(t, filepath.Join(dir, "kubeconfig")); mode != 0o600 {
		t.Errorf("the kubeconfig has mode %o, want 600", mode)
	}
	c := clientFrom(t, filepath.Join(dir, "kubeconfig"))
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	if err := c.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}

	status, _, stderr := outcome(t, "up", "--dir", dir, "--bin-dir", rig.BinDir(t))
	want := fmt.Sprintf("etcdmanager: %s is in use by another etcdmanager (process %d): stop that one first, or name another folder\n", dir, first.cmd.Process.Pid)
	if status != exitFailure || stderr != want {
		t.Errorf("a second up: status %d, %q, want 1, %q", status, stderr, want)
	}
	if status := first.end(t, os.Interrupt); status != 0 {
		t.Errorf("up ended by Ctrl-C has status %d:\n%s", status, first.out)
	}
	noChildren(t, dir)

	second := startUp(t, dir)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Errorf("with the kubeconfig of the first run: %v", err)
	}
	second.end(t, syscall.SIGKILL)
	noChildren(t, dir) // the kernel tells them

	third := startUp(t, dir)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Errorf("after up was killed: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := outcome(t, "down", "--dir", dir)
	if status != 0 || !strings.Contains(stdout, "Removing "+filepath.Join(dir, "management")) {
		t.Errorf("down: status %d, %s%s", status, stdout, stderr)
	}
	if status := third.wait(t); status != 0 {
		t.Errorf("up ended by down has status %d:\n%s", status, third.out)
	}
	noChildren(t, dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "notes.txt" {
		t.Errorf("down left %v (%v), want only the file that up did not make", left, err)
	}
}

func fileMode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func clientFrom(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: rig.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
