package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/exec"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine/machinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var demo = machine.Machine{
	UID: "11112222-3333", Name: "demo-0", Namespace: "default", Cluster: "demo", ClusterUID: "c",
	Tags: map[string]string{"team": "storage"}, Config: json.RawMessage(`{"size":"large"}`),
}

const (
	running  = `{"instance":{"providerID":"x://1","state":"Running","addresses":["127.7.7.7"]}}`
	notFound = `{"error":{"code":"NotFound","message":"none such"}}`
)

// shell makes an actuator of a script, which has the verb as $1.
func shell(t *testing.T, script string, change ...func(*exec.Options)) *exec.Actuator {
	t.Helper()
	o := exec.Options{
		Name: "test", Command: []string{"/bin/sh", "-c", script, "sh"}, Dir: t.TempDir(),
		Timeout: machinetest.Deadline,
	}
	for _, c := range change {
		c(&o)
	}
	a, err := exec.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func say(answer string) string { return "cat >/dev/null; printf %s '" + answer + "'" }

func TestRequest(t *testing.T) {
	dir := t.TempDir()
	a := shell(t, `cat >"$1.json"; printf '%s\n' "$*" >"$1.args"; echo '`+running+`'`, func(o *exec.Options) { o.Dir = dir })
	bootstrap := `{"key":"private"}`
	if err := a.Create(t.Context(), demo, []byte(bootstrap)); err != nil {
		t.Fatal(err)
	}
	if i, err := a.Observe(t.Context(), demo); err != nil || i.Addresses[0] != "127.7.7.7" || i.State != machine.Running {
		t.Errorf("observe: %+v, %v", i, err)
	}
	if err := a.Update(t.Context(), demo); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(t.Context(), demo); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"create", "observe", "update", "delete"} {
		want := exec.Request{APIVersion: exec.APIVersion, Machine: demo}
		if verb == "create" {
			want.Bootstrap = bootstrap
		}
		raw, err := os.ReadFile(filepath.Join(dir, verb+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var got exec.Request
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", verb, diff)
		}
		if args, err := os.ReadFile(filepath.Join(dir, verb+".args")); err != nil || string(args) != verb+"\n" {
			t.Errorf("%s: arguments %q, %v; want the verb alone", verb, args, err)
		}
	}
}

// Only an answer that is whole and says so means that there is no machine (F162).
func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   error  // the typed error, nil for another
		part   string // of its text
	}{
		"not found":                {say(notFound), machine.ErrNotFound, "none such"},
		"not found with status 1":  {say(notFound) + "; exit 1", machine.ErrNotFound, "none such"},
		"invalid":                  {say(`{"error":{"code":"Invalid","message":"no such size"}}`), machine.ErrInvalid, "no such size"},
		"retry":                    {say(`{"error":{"code":"Retry","message":"quota"}}`), nil, "quota"},
		"nothing":                  {say(""), nil, "no answer"},
		"status without answer":    {"exit 3", nil, "exit status 3"},
		"status with success":      {say(running) + "; exit 3", nil, "exit status 3"},
		"killed after an answer":   {say(notFound) + "; kill -9 $$", nil, "ended"},
		"text":                     {say("not found"), nil, "not an answer"},
		"torn":                     {say(notFound[:20]), nil, "not an answer"},
		"null":                     {say("null"), nil, "not an answer"},
		"list":                     {say("[]"), nil, "not an answer"},
		"two answers":              {say(notFound + running), nil, "goes on"},
		"answer, then text":        {say(notFound + "\ndone"), nil, "goes on"},
		"unknown field":            {say(`{"machine":{}}`), nil, "not an answer"},
		"no instance":              {say(`{}`), nil, "without an instance"},
		"instance and error":       {say(running[:len(running)-1] + "," + notFound[1:]), nil, "both"},
		"unknown code":             {say(`{"error":{"code":"Gone","message":"x"}}`), nil, "code"},
		"error without code":       {say(`{"error":{}}`), nil, "code"},
		"unknown state":            {say(`{"instance":{"providerID":"x","state":"running"}}`), nil, "state"},
		"no state":                 {say(`{"instance":{"providerID":"x"}}`), nil, "state"},
		"name for an address":      {say(`{"instance":{"state":"Running","addresses":["host-1"]}}`), nil, "IP address"},
		"unspecified address":      {say(`{"instance":{"state":"Running","addresses":["0.0.0.0"]}}`), nil, "IP address"},
		"too much":                 {"cat /dev/zero", nil, "bytes on standard output"},
		"too much, ignoring EPIPE": {"trap '' PIPE; while :; do cat /dev/zero 2>/dev/null; done", nil, "bytes on standard output"},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := shell(t, test.script).Observe(t.Context(), demo)
			if err == nil {
				t.Fatalf("observe: %+v, want an error", i)
			}
			if !errors.Is(err, test.want) && test.want != nil {
				t.Errorf("observe: %v, want %v", err, test.want)
			}
			if test.want == nil && (errors.Is(err, machine.ErrNotFound) || errors.Is(err, machine.ErrInvalid)) {
				t.Errorf("observe: %v is typed, want an error to retry", err)
			}
			if !strings.Contains(err.Error(), test.part) || !strings.Contains(err.Error(), "actuator test") {
				t.Errorf("observe: %v, want it to name the actuator and say %q", err, test.part)
			}
		})
	}
}

func TestNotFoundByVerb(t *testing.T) {
	a := shell(t, say(notFound))
	if err := a.Create(t.Context(), demo, []byte("{}")); err == nil || errors.Is(err, machine.ErrNotFound) {
		t.Errorf("create: %v, want an error other than ErrNotFound", err)
	}
	if err := a.Update(t.Context(), demo); !errors.Is(err, machine.ErrNotFound) {
		t.Errorf("update: %v, want ErrNotFound", err)
	}
	if err := a.Delete(t.Context(), demo); err != nil {
		t.Errorf("delete: %v, want it to be done", err)
	}
}

// A program that hangs is killed with all it started.
func TestTimeoutKillsGrandchildren(t *testing.T) {
	dir := t.TempDir()
	script := `sh -c 'echo $$ >grandchild; mv grandchild started; sleep 1000' & sleep 1000`
	for name, test := range map[string]struct {
		timeout time.Duration
		cancel  bool
		want    string
	}{
		"timeout": {timeout: 2 * time.Second, want: "no answer within 2s"},
		"cancel":  {timeout: machinetest.Deadline, cancel: true, want: "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a := shell(t, script, func(o *exec.Options) { o.Dir, o.Timeout = dir, test.timeout })
			ended := make(chan error, 1)
			go func() {
				_, err := a.Observe(ctx, demo)
				ended <- err
			}()
			if test.cancel {
				awaitFile(t, filepath.Join(dir, "started"))
				cancel()
			}
			err := <-ended
			if err == nil || errors.Is(err, machine.ErrNotFound) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("observe: %v, want %q", err, test.want)
			}
			raw, err := os.ReadFile(filepath.Join(dir, "started"))
			if os.IsNotExist(err) {
				return // killed before it came to that
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
			if err != nil {
				t.Fatal(err)
			}
			awaitEnd(t, pid)
			if err := os.Remove(filepath.Join(dir, "started")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), machinetest.Deadline)
	defer cancel()
	machinetest.Eventually(t, ctx, path, func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), machinetest.Deadline)
	defer cancel()
	machinetest.Eventually(t, ctx, "the grandchild is killed", func() bool { return !machinetest.Alive(pid) })
}

// What a program starts without cutting it loose neither blocks the call nor
// passes for success.
func TestOutputHeldOpen(t *testing.T) {
	dir := t.TempDir()
	a := shell(t, say(running)+`; sh -c 'echo $$ >new; mv new pid; sleep 1000' 0</dev/null &`, func(o *exec.Options) { o.Dir = dir })
	_, err := a.Observe(t.Context(), demo)
	if err == nil || !strings.Contains(err.Error(), "holds its output") {
		t.Errorf("observe: %v, want that its output is held", err)
	}
	awaitFile(t, filepath.Join(dir, "pid"))
	raw, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	machinetest.Kill(t, pid)
}

func TestProgramThatDoesNotRead(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 1<<20) // more than a pipe holds
	if err := shell(t, "echo '{}'").Create(t.Context(), demo, large); err != nil {
		t.Errorf("create: %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("KUBECONFIG", "/management/kubeconfig")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "private")
	t.Setenv("LANG", "C.UTF-8")
	dir := t.TempDir()
	a := shell(t, `exec env >env; `, func(o *exec.Options) { o.Dir, o.Env = dir, []string{"REGION=here"} })
	_, _ = a.Observe(t.Context(), demo)
	raw, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "PATH", "HOME", "LANG", "REGION", "PWD", "OLDPWD", "SHLVL", "_": // the last four are the shell's
		default:
			t.Errorf("the program sees %s", name)
		}
	}
	if !strings.Contains(string(raw), "REGION=here") || !strings.Contains(string(raw), "LANG=C.UTF-8") {
		t.Errorf("environment %q lacks what it should have", raw)
	}
}

func TestLimit(t *testing.T) {
	dir := t.TempDir()
	// Each call notes how many there are besides it, and waits to be let go.
	script := `mkdir "$$.in"; ls -d *.in | wc -l >"$$.seen"; while ! [ -e go ]; do sleep 0.05; done; rmdir "$$.in"; ` + say(running)
	a := shell(t, script, func(o *exec.Options) { o.Dir, o.Limit = dir, 2 })
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() {
			if _, err := a.Observe(t.Context(), demo); err != nil {
				t.Errorf("observe: %v", err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), machinetest.Deadline)
	defer cancel()
	machinetest.Eventually(t, ctx, "two calls run", func() bool {
		seen, _ := filepath.Glob(filepath.Join(dir, "*.seen"))
		return len(seen) == 2
	})
	waiting, give := context.WithCancel(t.Context())
	give()
	if _, err := a.Observe(waiting, demo); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that waits and is cancelled: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	seen, _ := filepath.Glob(filepath.Join(dir, "*.seen"))
	if len(seen) != 5 {
		t.Errorf("%d calls, want 5", len(seen))
	}
	for _, file := range seen {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(raw))); err != nil || n > 2 {
			t.Errorf("%d calls at a time, %v; want 2 at most", n, err)
		}
	}
}

func TestStandardErrorGoesToTheLog(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   []string
		not    []string
	}{
		"lines": {
			script: `echo 'first line' >&2; printf 'second ' >&2; echo line >&2; printf 'the end' >&2`,
			want:   []string{`line="first line"`, `line="second line"`, `line="the end"`, "actuator=test", "verb=create", "machine=demo-0"},
		},
		"long line": {
			script: `head -c 100000 /dev/zero | tr '\0' y >&2; echo ' tail' >&2; echo next >&2`,
			want:   []string{"yyyy", "line=next"}, not: []string{"tail"},
		},
		"flood": {
			script: `i=0; while [ $i -lt 3000 ]; do echo "line $i of a flood that goes on and on" >&2; i=$((i+1)); done`,
			want:   []string{"line 0 of", "more than is logged"}, not: []string{"line 2999"},
		},
		"the request": {
			script: `cat >&2`,
			want:   []string{"withheld"}, not: []string{strings.Repeat("Zm9v", 16)},
		},
		"the key": {
			script: `grep -o '[A-Za-z0-9]*Zm9v[A-Za-z0-9]*' >&2`,
			want:   []string{"withheld"}, not: []string{strings.Repeat("Zm9v", 16)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			a := shell(t, test.script+`; echo '{}'`, func(o *exec.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			if err := a.Create(t.Context(), demo, bootstrap(t)); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log lacks %q:\n%.2000s", want, &log)
				}
			}
			for _, not := range test.not {
				if strings.Contains(log.String(), not) {
					t.Errorf("the log has %q:\n%.2000s", not, &log)
				}
			}
			if log.Len() > 256<<10 {
				t.Errorf("%d bytes were logged", log.Len())
			}
		})
	}
}

func TestErrorsDoNotRepeatBootstrapData(t *testing.T) {
	for name, script := range map[string]string{
		"garbage": `cat`,
		"message": `key=$(grep -o '[A-Za-z0-9]*Zm9v[A-Za-z0-9]*'); echo "{\"error\":{\"code\":\"Retry\",\"message\":\"bad $key\"}}"`,
	} {
		t.Run(name, func(t *testing.T) {
			err := shell(t, script).Create(t.Context(), demo, bootstrap(t))
			if err == nil || strings.Contains(err.Error(), "Zm9vZm9v") {
				t.Errorf("create: %v, want an error without the key", err)
			}
			if name == "message" && !strings.Contains(err.Error(), "withheld") {
				t.Errorf("create: %v: the key did not come through, the test proves nothing", err)
			}
		})
	}
}

func bootstrap(t *testing.T) []byte {
	t.Helper()
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("Zm9v", 16) + "\n" + strings.Repeat("YmFy", 16) + "\n-----END PRIVATE KEY-----\n"
	raw, err := json.Marshal(map[string]string{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestNewRefuses(t *testing.T) {
	ok := exec.Options{Name: "test", Command: []string{"/bin/sh"}}
	if _, err := exec.New(ok); err != nil {
		t.Fatalf("good options: %v", err)
	}
	for name, change := range map[string]func(*exec.Options){
		"no name":           func(o *exec.Options) { o.Name = "" },
		"no command":        func(o *exec.Options) { o.Command = nil },
		"no such program":   func(o *exec.Options) { o.Command = []string{"/nonexistent/program"} },
		"not a program":     func(o *exec.Options) { o.Command = []string{"exec_test.go"} },
		"setting of no =":   func(o *exec.Options) { o.Env = []string{"REGION"} },
		"negative timeout":  func(o *exec.Options) { o.Timeout = -1 },
		"negative limit":    func(o *exec.Options) { o.Limit = -1 },
		"setting of no key": func(o *exec.Options) { o.Env = []string{"=x"} },
	} {
		o := ok
		change(&o)
		if _, err := exec.New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
