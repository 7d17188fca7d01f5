package management

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const binDir = "../../bin/testbin"

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, dir string) *API {
	t.Helper()
	api, err := Start(testContext(t), Options{Dir: dir, BinDir: binDir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func stop(t *testing.T, api *API) {
	t.Helper()
	if err := api.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// fromKubeconfig makes a client the way kubectl does.
func fromKubeconfig(t *testing.T, path string) client.Client {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAPIComesBackAsItWas(t *testing.T) {
	ctx, dir := testContext(t), t.TempDir()
	api := start(t, dir)
	c := fromKubeconfig(t, api.Kubeconfig())
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	if err := c.Create(ctx, kept); err != nil {
		t.Fatal(err)
	}

	// Both processes die without a word and are back under the same address.
	before := api.PIDs()
	for name, pid := range before {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("kill %s: %v", name, err)
		}
	}
	eventually(t, "the object is read again from new processes", func() error {
		for name, pid := range api.PIDs() {
			if pid == 0 || pid == before[name] {
				return fmt.Errorf("%s is process %d", name, pid)
			}
		}
		return c.Get(ctx, client.ObjectKeyFromObject(kept), kept)
	})
	stop(t, api)
	for name, pid := range api.PIDs() {
		if pid != 0 {
			t.Errorf("%s is still process %d after Stop", name, pid)
		}
	}

	// A kubeconfig from before is good for the next run.
	api = start(t, dir)
	defer stop(t, api)
	if err := c.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Fatalf("read with the client of the first run: %v", err)
	}
}

func TestOneDirHasOneAPI(t *testing.T) {
	dir := t.TempDir()
	lock, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(testContext(t), Options{Dir: dir, BinDir: binDir})
	var used *InUseError
	if !errors.As(err, &used) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Fatalf("second start: %v, want an InUseError naming this process", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Acquire(dir)
	if err != nil {
		t.Fatalf("acquire after release: %v", err)
	}
	if err := again.Remove(); err != nil {
		t.Fatal(err)
	}
}

func TestMissingBinariesNameTheRemedy(t *testing.T) {
	_, err := Start(testContext(t), Options{Dir: t.TempDir(), BinDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "make testbin") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("start without binaries: %v, want one line naming make testbin", err)
	}
}

func TestFailedStartTellsTheEndOfTheLog(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "kube-apiserver")
	script := "#!/bin/sh\necho flag is not known >&2\nexit 1\n"
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := StartAPIServer(testContext(t), APIServerOptions{Dir: filepath.Join(dir, "api"), Binary: binary})
	var failed *StartError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "flag is not known") {
		t.Fatalf("start: %v, want a StartError with the log's end", err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	api := start(t, dir)
	defer stop(t, api)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLeftoverEndsOnlyIfItIsTheSameProcess(t *testing.T) {
	sleeper := exec.Command("sleep", "3600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }()

	file := filepath.Join(t.TempDir(), "pid")
	stranger, err := identify(sleeper.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	stranger.Start += "1" // the number was reused
	if err := stranger.end(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Fatalf("a stranger was ended: %v", err)
	default:
	}
	if err := remember(file, sleeper.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := endLeftover(t.Context(), file, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the leftover ended by itself")
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the pid file is still there: %v", err)
	}
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := poll(testContext(t), func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}
