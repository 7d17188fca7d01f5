package main

import (
	"fmt"
	"strings"
	"testing"
)

// condense runs a stream of events through a summary.
func condense(t *testing.T, stream ...string) (output string, ok bool) {
	t.Helper()
	var out strings.Builder
	s := newSummary(&out)
	if err := s.read(strings.NewReader(strings.Join(stream, "\n"))); err != nil {
		t.Fatal(err)
	}
	ok = s.finish()
	return out.String(), ok
}

func done(action, pkg, test string) string {
	return fmt.Sprintf(`{"Action":%q,"Package":%q,"Test":%q,"Elapsed":0.5}`, action, pkg, test)
}

func printed(pkg, test, text string) string {
	return fmt.Sprintf(`{"Action":"output","Package":%q,"Test":%q,"Output":%q}`, pkg, test, text+"\n")
}

func TestCondense(t *testing.T) {
	tests := []struct {
		name    string
		stream  []string
		ok      bool
		last    string
		says    []string
		saysNot []string
	}{
		{
			name: "a pass is a line for the package and hides what the test printed",
			stream: []string{
				done("run", "p", "TestA"), printed("p", "TestA", "chatter"), done("pass", "p", "TestA"),
				printed("p", "", "PASS"), done("pass", "p", ""),
			},
			ok:      true,
			last:    "1 passed, 0 failed, 0 skipped",
			says:    []string{"ok    p 500ms\n", "slowest tests:\n     500ms  p TestA\n"},
			saysNot: []string{"chatter", "PASS"},
		},
		{
			name: "a failure shows everything the test printed",
			stream: []string{
				done("run", "p", "TestA"), printed("p", "TestA", "a_test.go:3: bad thing"),
				done("run", "p", "TestB"), printed("p", "TestB", "chatter"), done("pass", "p", "TestB"),
				done("fail", "p", "TestA"), done("fail", "p", ""),
			},
			last:    "1 passed, 1 failed, 0 skipped",
			says:    []string{"FAIL  p TestA\n      a_test.go:3: bad thing\n", "failed:\n  p TestA\n"},
			saysNot: []string{"chatter"},
		},
		{
			name: "a skip says why",
			stream: []string{
				done("run", "p", "TestA"), done("pass", "p", "TestA"),
				done("run", "p", "TestRoot"), printed("p", "TestRoot", "=== RUN   TestRoot"),
				printed("p", "TestRoot", "    a_test.go:4: needs root"), printed("p", "TestRoot", "--- SKIP: TestRoot (0.00s)"),
				done("skip", "p", "TestRoot"), done("pass", "p", ""),
			},
			ok:      true,
			last:    "1 passed, 0 failed, 1 skipped",
			says:    []string{"skip  p TestRoot\n      a_test.go:4: needs root\n"},
			saysNot: []string{"=== RUN", "--- SKIP"},
		},
		{
			name: "tests that a timeout interrupted have failed",
			stream: []string{
				done("run", "p", "TestA"), done("run", "p", "TestA/sub"),
				printed("p", "TestA/sub", "panic: test timed out after 2s"), done("fail", "p", ""),
			},
			last: "0 passed, 2 failed, 0 skipped",
			says: []string{"FAIL  p TestA\n", "FAIL  p TestA/sub\n      panic: test timed out"},
		},
		{
			name: "a package that does not compile has failed, and its errors are shown once",
			stream: []string{
				`{"Action":"build-output","ImportPath":"q","Output":"q.go:1:1: no such thing\n"}`,
				`{"Action":"build-fail","ImportPath":"q"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"q"}`,
				`{"Action":"fail","Package":"q","FailedBuild":"q"}`,
			},
			last: "0 passed, 2 failed, 0 skipped",
			says: []string{
				"FAIL  p\n      q.go:1:1: no such thing\n",
				"FAIL  q\n      (the compile errors of q are shown above)\n",
			},
		},
		{
			name: "a package that fails though its tests pass has failed",
			stream: []string{
				done("run", "p", "TestA"), done("pass", "p", "TestA"),
				printed("p", "", "leaked goroutines"), done("fail", "p", ""),
			},
			last: "1 passed, 1 failed, 0 skipped",
			says: []string{"FAIL  p\n      leaked goroutines\n"},
		},
		{
			name:   "a stream that is cut leaves its running tests failed",
			stream: []string{done("run", "p", "TestA")},
			last:   "0 passed, 1 failed, 0 skipped",
		},
		{
			name:   "nothing run is not a success",
			stream: []string{done("skip", "p", "")},
			last:   "0 passed, 0 failed, 0 skipped",
			says:   []string{"no test ran"},
		},
		{
			name: "only skips is not a success",
			stream: []string{
				done("run", "p", "TestA"), done("skip", "p", "TestA"), done("pass", "p", ""),
			},
			last: "0 passed, 0 failed, 1 skipped",
		},
		{
			name: "go's own complaint is passed on and its exit counted",
			stream: []string{
				"go: bad flag", done("run", "p", "TestA"), done("pass", "p", "TestA"), done("pass", "p", ""),
				`{"Action":"exited","Package":"go test ./test/..."}`,
			},
			last: "1 passed, 1 failed, 0 skipped",
			says: []string{"go: bad flag\n", "FAIL  go test ./test/...\n"},
		},
		{
			name: "go's exit after a failed test is that failure",
			stream: []string{
				done("run", "p", "TestA"), done("fail", "p", "TestA"), done("fail", "p", ""),
				`{"Action":"exited","Package":"go test ./..."}`,
			},
			last: "0 passed, 1 failed, 0 skipped",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			output, ok := condense(t, test.stream...)
			if ok != test.ok {
				t.Errorf("success is %v, want %v", ok, test.ok)
			}
			if !strings.HasSuffix(output, "\n"+test.last+"\n") {
				t.Errorf("the last line is not %q", test.last)
			}
			for _, text := range test.says {
				if !strings.Contains(output, text) {
					t.Errorf("does not say %q", text)
				}
			}
			for _, text := range test.saysNot {
				if strings.Contains(output, text) {
					t.Errorf("says %q", text)
				}
			}
			if t.Failed() {
				t.Logf("output:\n%s", output)
			}
		})
	}
}

func TestSlowestIsBounded(t *testing.T) {
	var stream []string
	for i := range 2 * slowestShown {
		name := fmt.Sprintf("Test%02d", i)
		stream = append(stream, done("run", "p", name),
			fmt.Sprintf(`{"Action":"pass","Package":"p","Test":%q,"Elapsed":%d}`, name, i+1))
	}
	output, _ := condense(t, stream...)
	if got := strings.Count(output, "p Test"); got != slowestShown {
		t.Errorf("%d tests listed, want %d:\n%s", got, slowestShown, output)
	}
	if !strings.Contains(output, "slowest tests:\n       20s  p Test19\n") {
		t.Errorf("the slowest is not first:\n%s", output)
	}
}
