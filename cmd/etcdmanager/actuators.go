package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/exec"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/local"
)

// localName of the built-in actuator, in spec.machineTemplate.actuator.
const localName = "local"

// localDir holds the local machines of `up`, below its --dir.
func localDir(dir string) string { return filepath.Join(dir, localName) }

// newLocal opens the machines on this host.
func newLocal(dir string) (*local.Actuator, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which is the agent of local machines: %w", err)
	}
	return local.New(local.Options{Dir: dir, Executable: self, Log: slog.Default()})
}

// addExecActuators adds one actuator for each NAME=PROGRAM.
func addExecActuators(actuators map[string]machine.Actuator, given []string) error {
	for _, pair := range given {
		name, program, ok := strings.Cut(pair, "=")
		if !ok || program == "" {
			return usagef("--exec-actuator is name=program, not %q", pair)
		}
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
			return usagef("--exec-actuator %q: the name may hold lower-case letters, digits and dashes only", pair)
		}
		if _, taken := actuators[name]; taken {
			return usagef("--exec-actuator %q: there is an actuator %s already", pair, name)
		}
		actuator, err := exec.New(exec.Options{Name: name, Command: []string{program}, Log: slog.Default()})
		if err != nil {
			return usagef("--exec-actuator %q: %w", pair, err)
		}
		actuators[name] = actuator
	}
	return nil
}
