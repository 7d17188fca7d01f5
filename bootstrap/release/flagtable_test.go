package release

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the flag tables anew from the binaries in bin/testbin")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tested is the patch of each minor that bin/testbin holds.
var tested = []string{"3.5.35", "3.6.16", "3.7.3"}

// etcdBinary is a real etcd, or the end of the test.
func etcdBinary(t testing.TB, version string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", "testbin", "etcd-v"+version, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("this test needs etcd %s (%v): run `make testbin`", version, err)
	}
	return path
}

// TestFlagTables asks the real binaries which flags they have and of which
// kind (F050), and compares with what is checked in.
func TestFlagTables(t *testing.T) {
	for _, version := range tested {
		t.Run(version, func(t *testing.T) {
			etcd := etcdBinary(t, version)
			help := string(run(t, etcd, "--help"))
			flags, gates := map[string]kind{}, gatesIn(help)
			for _, name := range flagsIn(help) {
				if of, defined := probeKind(t, etcd, name); defined {
					flags[name] = of
				}
			}
			v, err := ParseVersion(version)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				writeTable(t, v, flags, gates)
				return
			}
			m, err := lookup(version)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(flags, m.flags); diff != "" {
				t.Errorf("flags: etcd's own (-) and the table (+) differ, run with -update:\n%s", diff)
			}
			if diff := cmp.Diff(gates, m.gates); diff != "" {
				t.Errorf("feature gates: etcd's own (-) and the table (+) differ, run with -update:\n%s", diff)
			}
		})
	}
}

func flagsIn(help string) []string {
	seen := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^  --([a-z0-9-]+)`).FindAllStringSubmatch(help, -1) {
		seen[match[1]] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func gatesIn(help string) []string {
	var gates []string
	for _, match := range regexp.MustCompile(`(?m)^    ([A-Za-z0-9]+)=true\|false `).FindAllStringSubmatch(help, -1) {
		gates = append(gates, match[1])
	}
	return gates
}

// probeKind tells a flag's kind by which values etcd cannot parse. etcd parses
// from left to right, so that a last flag it doesn't have keeps it from ever
// starting.
func probeKind(t *testing.T, etcd, name string) (kind, bool) {
	t.Helper()
	answer := func(value string) string {
		return string(run(t, etcd, "--"+name+"="+value, "--not-a-flag"))
	}
	parses := func(value string) bool { return strings.Contains(answer(value), "not defined: -not-a-flag") }
	switch said := answer("@"); {
	case strings.Contains(said, "not defined: -"+name+"\n"):
		return "", false
	case strings.Contains(said, "invalid boolean value"):
		return boolean, true
	case !strings.Contains(said, "parse error") && !strings.Contains(said, "strconv."):
		return text, true
	case parses("1s"):
		return duration, true
	case parses("-1"):
		return integer, true
	case parses("1"):
		return unsigned, true
	default:
		t.Fatalf("flag %s takes neither text nor a number nor a duration: %s", name, said)
		return "", false
	}
}

func run(t *testing.T, etcd string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, etcd, args...)
	command.Dir, command.Env = t.TempDir(), []string{} // etcd takes flags from the environment too
	out, err := command.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out
}

func writeTable(t *testing.T, v Version, flags map[string]kind, gates []string) {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated from etcd %s by go generate; DO NOT EDIT.\n\npackage release\n\n", v)
	fmt.Fprintf(&b, "var flags%d_%d = map[string]kind{\n", v.Major, v.Minor)
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		fmt.Fprintf(&b, "%q: %s,\n", name, flags[name])
	}
	fmt.Fprintf(&b, "}\n\nvar gates%d_%d = %#v\n", v.Major, v.Minor, gates)
	source, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("flagtable_v%d_%d.go", v.Major, v.Minor)
	if err := os.WriteFile(name, source, 0o644); err != nil {
		t.Fatal(err)
	}
}
