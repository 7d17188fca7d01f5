package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLastTelling(t *testing.T) {
	mark := `{"level":"info","msg":"` + startMark + `"}`
	for name, c := range map[string]struct{ log, want string }{
		"empty":             {"", ""},
		"nothing telling":   {`{"level":"info","msg":"ready"}`, ""},
		"fatal":             {`{"level":"fatal","msg":"discovery failed","error":"member count is unequal"}` + "\n" + `{"level":"info","msg":"bye"}`, "discovery failed: member count is unequal"},
		"panic":             {"panic: tocommit(7) is out of range\n\ngoroutine 1 [running]:\nmain.main()", "panic: tocommit(7) is out of range"},
		"flag":              {"flag provided but not defined: -enable-v2", "flag provided but not defined: -enable-v2"},
		"of an earlier run": {`{"level":"fatal","msg":"old"}` + "\n" + mark + "\n" + `{"level":"info","msg":"new"}`, ""},
		"of the last run":   {`{"level":"fatal","msg":"old"}` + "\n" + mark + "\n" + `{"level":"error","msg":"new"}`, "new"},
		"very long":         {`{"level":"error","msg":"` + strings.Repeat("x", 10_000) + `"}`, strings.Repeat("x", tellingLength)},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "etcd.log")
			if err := os.WriteFile(path, []byte(c.log+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := lastTelling(path); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestAlarmsFromStatus(t *testing.T) {
	got := alarms([]string{"etcdserver: no leader", `memberID:10276657743932975437  alarm:NOSPACE`, `memberID:1 alarm:CORRUPT`})
	if strings.Join(got, " ") != "CORRUPT NOSPACE" {
		t.Errorf("alarms %v", got)
	}
}
