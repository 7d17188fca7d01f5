package security

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/etcdmanager/etcdmanager/bootstrap"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// secret is one private key and whose it is.
type secret struct {
	of    string
	path  string // on a machine, if it is one's
	lines [][]byte
}

// keys are all private keys there are: in Secrets, on machines, and in what
// machines were given to boot with.
func (f *fleet) keys(t *testing.T, disk []file) []secret {
	t.Helper()
	var all []secret
	var secrets corev1.SecretList
	if err := f.API.List(t.Context(), &secrets, client.InNamespace(f.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		if key := s.Data[corev1.TLSPrivateKeyKey]; len(key) > 0 {
			all = append(all, secret{of: "Secret " + s.Name, lines: lines(key)})
		}
	}
	if len(all) != 8 {
		t.Fatalf("the Secrets of two clusters hold %d keys, want three authorities' and a consumer's each", len(all))
	}
	for _, each := range disk {
		if strings.HasSuffix(each.path, ".key") {
			all = append(all, secret{of: each.path, path: each.path, lines: lines(each.content)})
		}
	}
	for _, request := range f.python.Asked(t) {
		all = append(all, secret{of: "the bootstrap data of " + request.Machine.Name, lines: lines([]byte(bootstrapOf(t, request).Key))})
	}
	return all
}

// lines are those of a PEM text that are long enough to be its alone.
func lines(text []byte) [][]byte {
	var all [][]byte
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) >= 20 && !bytes.HasPrefix(line, []byte("-----")) {
			all = append(all, line)
		}
	}
	return all
}

// middle is a line in the midst of a PEM text.
func middle(t *testing.T, text []byte) []byte {
	t.Helper()
	all := lines(text)
	if len(all) < 3 {
		t.Fatalf("a PEM text has %d lines only", len(all))
	}
	return all[len(all)/2]
}

func fingerprint(spki []byte) string {
	sum := sha256.Sum256(spki)
	return hex.EncodeToString(sum[:])
}

func bootstrapOf(t *testing.T, request rig.PythonRequest) bootstrap.Data {
	t.Helper()
	data, err := bootstrap.Parse([]byte(request.Bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// keysStay: a machine's key is in its own file and nowhere else, no log among
// them; the keys that are no machine's are on none.
func keysStay(t *testing.T, disk []file, keys []secret) {
	for _, each := range disk {
		if isRelease(each) {
			continue
		}
		if strings.HasSuffix(each.path, ".log") && bytes.Contains(each.content, []byte("PRIVATE KEY")) {
			t.Errorf("there is a private key in the log %s", each.path)
		}
		for _, key := range keys {
			if !key.mayBeIn(each) && key.in(each.content) {
				t.Errorf("%s holds the key of %s", each.path, key.of)
			}
		}
	}
}

// mayBeIn: a machine keeps its key in each generation of its identity.
func (s secret) mayBeIn(f file) bool {
	return s.path != "" && filepath.Base(s.path) == filepath.Base(f.path) && strings.HasPrefix(s.path, f.machine+"/")
}

func (s secret) in(text []byte) bool {
	return slices.ContainsFunc(s.lines, func(line []byte) bool { return bytes.Contains(text, line) })
}

// processes: a command line and an environment can be read by others, or end
// up in a report. Those of machines do not lead to the management API either.
func processes(t *testing.T, f *fleet, keys []secret) {
	looked := 0
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		command, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		environment, err := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		if err != nil {
			continue
		}
		onMachine := bytes.Contains(command, []byte(f.Dir+"/machines/")) || bytes.Contains(command, []byte(f.python.Machines+"/"))
		isController := filepath.Base(filepath.Dir(path)) == fmt.Sprint(f.controller.PID)
		if !onMachine && !isController {
			continue
		}
		looked++
		words := strings.ReplaceAll(string(command), "\x00", " ")
		for _, key := range keys {
			if key.in(command) || key.in(environment) {
				t.Errorf("the key of %s is on the command line or in the environment of: %s", key.of, words)
			}
		}
		if onMachine && (bytes.Contains(environment, []byte("KUBE")) || bytes.Contains(environment, []byte(f.API.Kubeconfig()))) {
			t.Errorf("the environment leads to the management API: %s", words)
		}
	}
	if want := 1 + 2*4; looked < want {
		t.Errorf("%d processes were looked at, want %d: the controller, and an agent and an etcd on each machine", looked, want)
	}
}

// controllerLog holds no key, at the most talkative level.
func controllerLog(t *testing.T, f *fleet, keys []secret) {
	log, err := os.ReadFile(f.controller.Log)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(log, []byte("level=DEBUG")) {
		t.Error("the log is not at the level debug")
	}
	if bytes.Contains(log, []byte("PRIVATE KEY")) {
		t.Error("there is a private key in the controller's log")
	}
	for _, key := range keys {
		if key.in(log) {
			t.Errorf("the key of %s is in the controller's log", key.of)
		}
	}
}
