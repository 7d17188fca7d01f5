package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Python is the actuator of examples/actuator-python, as its README has it
// set up: behind a script that gives it its settings. The script also keeps
// each request to create a machine, with what it was given to boot.
type Python struct {
	Script   string
	Machines string // its directory of machines
	asked    string
}

// NewPython sets one up. All its machines are removed at the end.
func NewPython(t testing.TB) *Python {
	t.Helper()
	dir := t.TempDir()
	p := &Python{Script: filepath.Join(dir, "python-actuator"), Machines: filepath.Join(dir, "machines"), asked: filepath.Join(dir, "asked")}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the example actuator needs Python 3.9 or newer: %v", err)
	}
	script := fmt.Sprintf(`#!/bin/sh
set -eu
umask 077
export ETCDMANAGER_BINARY='%s' ETCDMANAGER_MACHINES='%s'
actuator='%s -B %s'
if [ "$1" = create ]; then
  cat > '%[5]s'/new.$$
  $actuator create < '%[5]s'/new.$$
  mv '%[5]s'/new.$$ '%[5]s'/$$.json
else
  exec $actuator "$@"
fi
`, Program(t), p.Machines, python, filepath.Join(root(t), "examples", "actuator-python", "actuator.py"), p.asked)
	if err := os.Mkdir(p.asked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.Script, []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), p.Script, "init").CombinedOutput(); err != nil {
		t.Fatalf("set up the actuator: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if t.Failed() {
			p.explain(t)
		}
		for _, request := range p.Asked(t) {
			p.Do(t, "delete", request)
		}
	})
	return p
}

func (p *Python) explain(t testing.TB) {
	logs, _ := filepath.Glob(filepath.Join(p.Machines, "*", "*.log"))
	for _, log := range logs {
		t.Logf("%s:\n%s", log, Tail(log))
	}
}

// PythonRequest is what the actuator was asked to create.
type PythonRequest struct {
	Raw       []byte
	Bootstrap string // what the machine was given
	Machine   struct{ UID, Name, Cluster string }
}

// Asked are the requests to create machines so far, also repeated ones.
func (p *Python) Asked(t testing.TB) []PythonRequest {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.asked, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []PythonRequest
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // renamed meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		request := PythonRequest{Raw: raw}
		if json.Unmarshal(raw, &request) == nil { // else it is half written
			all = append(all, request)
		}
	}
	return all
}

// Do runs the actuator once, as the controller does.
func (p *Python) Do(t testing.TB, verb string, request PythonRequest) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Script, verb)
	cmd.Stdin = strings.NewReader(string(request.Raw))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s machine %s: %v\n%s", verb, request.Machine.Name, err, out)
	}
	return string(out)
}
