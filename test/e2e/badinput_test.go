package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// describe is what `kubectl describe` shows a user of a cluster.
func describe(t *testing.T, f *rig.Fleet, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, rig.Kubectl(t), "describe", "etcdcluster", "-n", f.Namespace, name)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.API.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl describe: %v\n%s", err, out)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

// saysWhy waits until a condition is False with exactly this message, and
// asserts that a user sees it.
func saysWhy(t *testing.T, f *rig.Fleet, name, kind, want string) {
	t.Helper()
	rig.Eventually(t, rig.Patience, fmt.Sprintf("%s of %s to be False: %s", kind, name, want), func(ctx context.Context) error {
		cluster, err := f.Get(ctx, name)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(cluster.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionFalse || c.Message != want {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	if shown := describe(t, f, name); !strings.Contains(shown, want) {
		t.Errorf("kubectl describe does not show %q:\n%s", want, shown)
	}
}

// membersSay waits until every member has a message that contains a text, and
// asserts that a user sees it.
func membersSay(t *testing.T, f *rig.Fleet, name, want string) {
	t.Helper()
	rig.Eventually(t, rig.Patience, "each member of "+name+" to say: "+want, func(ctx context.Context) error {
		cluster, err := f.Get(ctx, name)
		if err != nil {
			return err
		}
		if len(cluster.Status.Members) != int(cluster.Spec.Replicas) {
			return fmt.Errorf("%d members", len(cluster.Status.Members))
		}
		for _, m := range cluster.Status.Members {
			if !strings.Contains(m.Message, want) {
				return fmt.Errorf("%s says %q", m.Name, m.Message)
			}
		}
		return nil
	})
	if shown := describe(t, f, name); !strings.Contains(shown, want) {
		t.Errorf("kubectl describe does not show %q:\n%s", want, shown)
	}
}

// TestSpecThatCannotBe applies specs that the API server cannot tell are
// wrong. Each is answered with one message, and no machine is made for it.
func TestSpecThatCannotBe(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	version := func(v string) func(*v1alpha1.EtcdCluster) {
		return func(c *v1alpha1.EtcdCluster) { single(c); c.Spec.Version = v }
	}
	arg := func(name, value string) func(*v1alpha1.EtcdCluster) {
		return func(c *v1alpha1.EtcdCluster) { single(c); c.Spec.Etcd.ExtraArgs = map[string]string{name: value} }
	}
	cases := []struct {
		name   string
		change func(*v1alpha1.EtcdCluster)
		want   string
		final  bool // a version cannot be corrected: the cluster is made anew
	}{
		{"unborn", version("3.9.0"), "etcd 3.9.0 is not known here; known are 3.5 (from 3.5.33), 3.6 (from 3.6.14), 3.7 (from 3.7.2)", true},
		{"old", version("3.5.2"), "etcd 3.5.2 is refused: members promoted from learners come back as learners in 3.6, which then doesn't start (F041); take 3.5.33 or newer", true},
		{"foreign", arg("enable-v2", "true"), "extra argument enable-v2 is refused: the second version of the API is gone from 3.6 on (F052)", false},
		{"unknown", arg("no-such-flag", "1"), "extra argument no-such-flag: etcd 3.7 has no such flag", false},
		{"managed", arg("data-dir", "/tmp/x"), "extra argument data-dir is set by the manager", false},
		{"word", arg("snapshot-count", "many"), `extra argument snapshot-count: "many" is not a whole number`, false},
	}
	for _, c := range cases {
		f.Apply(c.name, c.change)
	}
	for _, c := range cases {
		saysWhy(t, f, c.name, "SpecAccepted", c.want)
		machines, err := f.List(t.Context(), c.name)
		if err != nil {
			t.Fatal(err)
		}
		if len(machines) > 0 {
			t.Errorf("%d machines were made for %s", len(machines), c.name)
		}
	}
	if made, err := f.Machines.List(t.Context()); err != nil || len(made) > 0 {
		t.Errorf("machines were made: %v, %v", made, err)
	}

	for _, c := range cases {
		if !c.final {
			patch(t, f, c.name, func(c *v1alpha1.EtcdCluster) { c.Spec.Etcd.ExtraArgs = nil })
			continue
		}
		cluster, err := f.Get(t.Context(), c.name)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.API.Delete(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		waitGone(t, f, c.name)
		f.Apply(c.name, single)
	}
	for _, c := range cases {
		f.WaitReady(c.name)
	}
	editThatCannotBe(t, f, "managed")
}

// editThatCannotBe changes nothing about a cluster that runs.
func editThatCannotBe(t *testing.T, f *rig.Fleet, name string) {
	t.Helper()
	machine := f.WaitReady(name).Status.Members[0].Machine
	agent, etcd := f.Processes(f.Machine(machine))
	patch(t, f, name, func(c *v1alpha1.EtcdCluster) { c.Spec.Etcd.ExtraArgs = map[string]string{"unsafe-no-fsync": "true"} })
	saysWhy(t, f, name, "SpecAccepted", "extra argument unsafe-no-fsync is refused: it loses data (F123)")
	if a, e := f.Processes(f.Machine(machine)); a != agent || e != etcd {
		t.Errorf("after an edit that cannot be, agent and etcd are processes %d and %d, and were %d and %d", a, e, agent, etcd)
	}
	if _, err := f.Etcd(f.WaitReady(name)).Put(t.Context(), "k", "v"); err != nil {
		t.Errorf("write after an edit that cannot be: %v", err)
	}
	patch(t, f, name, func(c *v1alpha1.EtcdCluster) { c.Spec.Etcd.ExtraArgs = nil })
	waitCondition(t, f, name, "SpecAccepted", "True")
}

// TestReleaseThatCannotBeHad names mirrors that are not there and a checksum
// that is not the archive's. No etcd is started, and it is once that is mended.
func TestReleaseThatCannotBeHad(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	archive := fmt.Sprintf("v%s/etcd-v%[1]s-linux-%s.tar.gz", rig.Version, runtime.GOARCH)
	wrong := strings.Repeat("0", 64)
	cases := []struct {
		name   string
		source v1alpha1.ReleaseSource
		want   string
	}{
		{"silent", v1alpha1.ReleaseSource{Mirror: "http://127.0.0.1:1"}, "connection refused"},
		{"nowhere", v1alpha1.ReleaseSource{Mirror: "file:///nowhere"}, "the mirror has no file:///nowhere/v" + rig.Version + "/SHA256SUMS"},
		{"forged", v1alpha1.ReleaseSource{SHA256: map[string]string{runtime.GOARCH: wrong}}, "and should have " + wrong + ": the checksum is wrong"},
	}
	for _, c := range cases {
		f.Apply(c.name, single, func(cluster *v1alpha1.EtcdCluster) { cluster.Spec.Release = c.source })
	}
	for _, c := range cases {
		membersSay(t, f, c.name, "etcd "+rig.Version+" is not on this machine: fetch etcd "+rig.Version+": ")
		membersSay(t, f, c.name, c.want)
		if _, etcd := f.Processes(f.Machine(c.name + "-0")); etcd != 0 {
			t.Errorf("etcd of %s runs as process %d", c.name, etcd)
		}
	}
	sums, err := os.ReadFile(filepath.Join(strings.TrimPrefix(f.Mirror, "file://"), "v"+rig.Version, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	var right string
	for line := range strings.Lines(string(sums)) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && name == filepath.Base(archive) {
			right = sum
		}
	}
	patch(t, f, "silent", func(c *v1alpha1.EtcdCluster) { c.Spec.Release.Mirror = f.Mirror })
	patch(t, f, "nowhere", func(c *v1alpha1.EtcdCluster) { c.Spec.Release.Mirror = "" })
	patch(t, f, "forged", func(c *v1alpha1.EtcdCluster) { c.Spec.Release.SHA256[runtime.GOARCH] = right })
	for _, c := range cases {
		cluster := f.WaitReady(c.name)
		if message := cluster.Status.Members[0].Message; message != "" {
			t.Errorf("%s is Ready and its member says %q", c.name, message)
		}
	}
}

// TestBlocked has what the controller needs on the management API be in the
// way or unreadable: a user is told, and it goes on once that is mended.
func TestBlocked(t *testing.T) {
	f := rig.NewFleet(t)
	f.StartController()
	taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "blocked-etcd-peer-ca"}}
	if err := f.API.Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	f.Apply("blocked", single)
	saysWhy(t, f, "blocked", "Progressing", `the Secret blocked-etcd-peer-ca belongs to another cluster (UID "")`)
	if err := f.API.Delete(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	member := f.WaitReady("blocked").Status.Members[0].ID

	cluster, err := f.Get(t.Context(), "blocked")
	if err != nil {
		t.Fatal(err)
	}
	kept := cluster.Annotations[v1alpha1.AnnotationRecord]
	annotate := func(record string) {
		patch(t, f, "blocked", func(c *v1alpha1.EtcdCluster) { c.Annotations[v1alpha1.AnnotationRecord] = record })
	}
	annotate("{")
	saysWhy(t, f, "blocked", "Progressing", "the annotation etcdmanager.io/record cannot be read; restore it or delete it: unexpected end of JSON input")
	annotate(kept)
	rig.Eventually(t, rig.Patience, "the cluster to be looked at again", func(ctx context.Context) error {
		cluster, err := f.Get(ctx, "blocked")
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(cluster.Status.Conditions, "Progressing"); c.Reason == "Blocked" {
			return fmt.Errorf("it says: %s", c.Message)
		}
		return nil
	})
	if id := f.WaitReady("blocked").Status.Members[0].ID; id != member {
		t.Errorf("the member is %s, and was %s", id, member)
	}
}

// TestNameTooLong is refused by kubectl apply itself.
func TestNameTooLong(t *testing.T) {
	f := rig.NewFleet(t)
	name := strings.Repeat("n", 41)
	cmd := exec.CommandContext(t.Context(), rig.Kubectl(t), "apply", "-n", f.Namespace, "-f", "-")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.API.Kubeconfig())
	cmd.Stdin = strings.NewReader("apiVersion: etcdmanager.io/v1alpha1\nkind: EtcdCluster\nmetadata: {name: " + name + "}\nspec: {version: " + rig.Version + "}\n")
	out, err := cmd.CombinedOutput()
	if want := "the name is too long: at most 40 characters"; err == nil || strings.Count(string(out), want) != 1 {
		t.Errorf("apply a name of 41 letters: %v\n%s\nwant %q once", err, out, want)
	}
}

// TestAddressOfAnother has an actuator give an address to all machines of a
// cluster, first another cluster's and then one of their own. Nothing is
// changed by it, and the cluster is founded once the actuator says the truth.
func TestAddressOfAnother(t *testing.T) {
	f, python := rig.NewFleet(t), rig.NewPython(t)
	lie := filepath.Join(t.TempDir(), "address")
	f.StartController("--exec-actuator", "liar="+liar(t, python, lie))
	f.Apply("honest", single)
	honest := f.WaitReady("honest")
	victim := f.Machine(honest.Status.Members[0].Machine)
	agent, etcd := f.Processes(victim)

	write(t, lie, victim.Status.Address)
	f.Apply("twins", func(c *v1alpha1.EtcdCluster) { c.Spec.MachineTemplate.Actuator = "liar" })
	for _, name := range []string{"twins-1", "twins-2"} {
		machineSays(t, f, "twins", name, "its address "+victim.Status.Address+" is that of machine twins-0")
	}
	machineSays(t, f, "twins", "twins-0", "verify the server's certificate")
	if a, e := f.Processes(victim); a != agent || e != etcd {
		t.Errorf("the machine whose address was given has processes %d and %d, and had %d and %d", a, e, agent, etcd)
	}

	var own string
	for _, request := range python.Asked(t) {
		if request.Machine.Name == "twins-1" {
			own = addressOf(t, python, request)
		}
	}
	write(t, lie, own)
	for _, name := range []string{"twins-1", "twins-2"} {
		machineSays(t, f, "twins", name, "its address "+own+" is that of machine twins-0")
	}
	machineSays(t, f, "twins", "twins-0", "where the agent of machine")
	for _, line := range runningIn(t, python.Machines) {
		if strings.Contains(line, "--data-dir") {
			t.Errorf("an etcd was started: %s", line)
		}
	}

	if err := os.Remove(lie); err != nil {
		t.Fatal(err)
	}
	f.WaitReady("twins")
	if id := f.WaitReady("honest").Status.Members[0].ID; id != honest.Status.Members[0].ID {
		t.Errorf("the member of the other cluster is %s, and was %s", id, honest.Status.Members[0].ID)
	}
}

// liar is an actuator that answers one address for all, as long as there is a
// file with it.
func liar(t *testing.T, python *rig.Python, lie string) (script string) {
	t.Helper()
	script = filepath.Join(t.TempDir(), "liar")
	write(t, script, fmt.Sprintf(`#!/bin/sh
set -eu
if [ "$1" = observe ] && address=$(cat '%[1]s' 2>/dev/null); then
  '%[2]s' "$@" | sed -E "s/\"addresses\": *\[[^]]*\]/\"addresses\": [\"$address\"]/"
else
  exec '%[2]s' "$@"
fi
`, lie, python.Script))
	if err := os.Chmod(script, 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return script
}

func addressOf(t *testing.T, python *rig.Python, request rig.PythonRequest) string {
	t.Helper()
	_, after, _ := strings.Cut(python.Do(t, "observe", request), `"addresses": ["`)
	address, _, found := strings.Cut(after, `"`)
	if !found {
		t.Fatalf("the actuator gives no address of %s", request.Machine.Name)
	}
	return address
}

// write replaces a file whole.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func machineSays(t *testing.T, f *rig.Fleet, cluster, machine, want string) {
	t.Helper()
	rig.Eventually(t, rig.Patience, machine+" to say: "+want, func(ctx context.Context) error {
		c, err := f.Get(ctx, cluster)
		if err != nil {
			return err
		}
		for _, m := range c.Status.Members {
			if m.Machine == machine {
				if !strings.Contains(m.Message, want) {
					return fmt.Errorf("it says %q", m.Message)
				}
				return nil
			}
		}
		return fmt.Errorf("it is not there")
	})
	if shown := describe(t, f, cluster); !strings.Contains(shown, want) {
		t.Errorf("kubectl describe does not show %q:\n%s", want, shown)
	}
}
