package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/etcdmanager/etcdmanager/test/rig"
)

// asCommand makes the test binary be the command.
const asCommand = "ETCDMANAGER_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// command is the binary with arguments, as a process of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*rig.Timeout)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// outcome runs the command to its end and answers its status, stdout and stderr.
func outcome(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestExitStatusAndMessage(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(foreign+"/thesis.txt", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	binDir := rig.BinDir(t)
	cases := []struct {
		name   string
		args   []string
		status int
		stderr string // its first line
	}{
		{"no such command", []string{"upp"}, 2, `etcdmanager: unknown command "upp" for "etcdmanager"; Did you mean this?; up`},
		{"no such flag", []string{"version", "--short"}, 2, "etcdmanager: unknown flag: --short"},
		{"argument too many", []string{"up", "here"}, 2, `etcdmanager: unknown command "here" for "etcdmanager up"`},
		{"log level", []string{"version", "--log-level", "loud"}, 2, `etcdmanager: --log-level is debug, info, warn or error, not "loud"`},
		{"log format", []string{"version", "--log-format", "xml"}, 2, `etcdmanager: --log-format is text or json, not "xml"`},
		{"up without dir", []string{"up"}, 2, "etcdmanager: up needs --dir, a folder for everything that it makes"},
		{"down without dir", []string{"down"}, 2, "etcdmanager: down needs --dir, the folder given to up"},
		{
			"actuator without program",
			[]string{"up", "--dir", foreign, "--bin-dir", binDir, "--exec-actuator", "site"},
			2, `etcdmanager: --exec-actuator is name=program, not "site"`,
		},
		{
			"actuator twice",
			[]string{"up", "--dir", foreign, "--bin-dir", binDir, "--exec-actuator", "local=/bin/true"},
			2, `etcdmanager: --exec-actuator "local=/bin/true": there is an actuator local already`,
		},
		{
			"up without binaries",
			[]string{"up", "--dir", foreign, "--bin-dir", foreign},
			1, "etcdmanager: the management API needs " + foreign + "/etcd-v3.7.3/etcd, but it is not there: run `make testbin`, or name the right folder",
		},
		{
			"up on a folder of somebody's",
			[]string{"up", "--dir", foreign, "--bin-dir", binDir},
			1, "etcdmanager: " + foreign + " was not made by etcdmanager up (it has no .etcdmanager): it is left alone: name an empty folder or a new one",
		},
		{
			"down on a folder of somebody's",
			[]string{"down", "--dir", foreign},
			1, "etcdmanager: " + foreign + " was not made by etcdmanager up (it has no .etcdmanager): it is left alone",
		},
		{"down on nothing", []string{"down", "--dir", foreign + "/none"}, 0, ""},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			status, _, stderr := outcome(t, test.args...)
			first, rest, _ := strings.Cut(stderr, "\n")
			if status != test.status || first != test.stderr {
				t.Errorf("status %d, stderr\n  %s\nwant status %d,\n  %s", status, stderr, test.status, test.stderr)
			}
			if status == exitFailure && rest != "" {
				t.Errorf("a failure says more than one line: %s", rest)
			}
		})
	}
	left, err := os.ReadDir(foreign)
	if err != nil || len(left) != 1 {
		t.Errorf("the folder of somebody's holds %d entries afterwards (%v), want 1", len(left), err)
	}
}

func TestVersionIsAnAnswer(t *testing.T) {
	status, stdout, stderr := outcome(t, "version", "--log-format", "json")
	if status != 0 || !strings.HasPrefix(stdout, "etcdmanager "+version+" ") || stderr != "" {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

// output of a process that runs, for a test that watches it.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}
