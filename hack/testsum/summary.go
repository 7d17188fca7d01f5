package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// slowestShown is how many tests the list of slow ones has.
const slowestShown = 10

// actionExited is our own action, sent by hack/test.sh when go test exited with an error;
// Package then names the command. It counts when nothing else explains the error.
const actionExited = "exited"

// event is a line of `go test -json`; see `go doc test2json` and `go help buildjson`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string
}

// testID names a test; test is "" for what belongs to the package as a whole.
type testID struct{ pkg, test string }

type timing struct {
	id      testID
	elapsed float64
}

// summary holds what has been read so far.
type summary struct {
	out io.Writer

	output  map[testID]*strings.Builder // of what has not finished yet
	builds  map[string]*strings.Builder // compile errors by import path
	running map[string]map[string]bool  // by package: tests that have started and not finished
	failing map[string]int              // by package: failed tests

	passed, failed, skipped int
	failures                []testID
	timings                 []timing
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out:     out,
		output:  map[testID]*strings.Builder{},
		builds:  map[string]*strings.Builder{},
		running: map[string]map[string]bool{},
		failing: map[string]int{},
	}
}

// read takes in a stream of events. Lines that are not events (go's own complaints) are
// passed on as they are.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading test events: %w", err)
		}
	}
}

func (s *summary) line(line []byte) {
	var e event
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprintf(s.out, "%s\n", bytes.TrimRight(line, "\n"))
		return
	}
	id := testID{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		buffer(s.builds, e.ImportPath).WriteString(e.Output)
	case e.Action == "output":
		buffer(s.output, id).WriteString(e.Output)
	case e.Test != "":
		s.test(id, e)
	default:
		s.packageDone(id, e)
	}
}

// test takes in the start or the end of one test.
func (s *summary) test(id testID, e event) {
	switch e.Action {
	case "run":
		if s.running[id.pkg] == nil {
			s.running[id.pkg] = map[string]bool{}
		}
		s.running[id.pkg][id.test] = true
		return
	case "pass":
		s.passed++
	case "skip":
		s.skipped++
		fmt.Fprintf(s.out, "skip  %s\n%s", id, indent(reason(s.take(id))))
	case "fail":
		s.fail(id)
	default:
		return
	}
	delete(s.running[id.pkg], id.test)
	delete(s.output, id)
	s.timings = append(s.timings, timing{id, e.Elapsed})
}

// packageDone takes in the end of a package.
func (s *summary) packageDone(id testID, e event) {
	elapsed := seconds(e.Elapsed)
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.out, "ok    %s %s\n", id.pkg, elapsed)
	case "skip":
		fmt.Fprintf(s.out, "none  %s\n", id.pkg)
	case "fail":
		s.interrupted(id.pkg)
		if s.failing[id.pkg] == 0 {
			s.fail(id)
		} else {
			fmt.Fprint(s.out, indent(s.take(id)))
		}
		fmt.Fprint(s.out, indent(s.takeBuild(e.FailedBuild)))
		fmt.Fprintf(s.out, "FAIL  %s %s\n", id.pkg, elapsed)
	case actionExited:
		if s.failed == 0 {
			s.fail(id)
		}
	default:
		return
	}
	delete(s.output, id)
}

// interrupted counts the tests that were still running when their package ended, by a
// timeout or a panic, as failed.
func (s *summary) interrupted(pkg string) {
	for _, test := range slices.Sorted(maps.Keys(s.running[pkg])) {
		s.fail(testID{pkg, test})
	}
	delete(s.running, pkg)
}

// fail counts and shows one failure, with everything it printed.
func (s *summary) fail(id testID) {
	s.failed++
	s.failing[id.pkg]++
	s.failures = append(s.failures, id)
	fmt.Fprintf(s.out, "FAIL  %s\n%s", id, indent(s.take(id)))
}

// finish prints what is left to say and reports whether all is well.
func (s *summary) finish() bool {
	for _, pkg := range slices.Sorted(maps.Keys(s.running)) {
		s.interrupted(pkg) // the stream was cut
	}
	s.printSlowest()
	if len(s.failures) > 0 {
		fmt.Fprintln(s.out, "\nfailed:")
		for _, id := range s.failures {
			fmt.Fprintf(s.out, "  %s\n", id)
		}
	}
	if s.passed == 0 && s.failed == 0 {
		fmt.Fprintln(s.out, "\nno test ran")
	}
	fmt.Fprintf(s.out, "\n%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	return s.failed == 0 && s.passed > 0
}

func (s *summary) printSlowest() {
	slices.SortStableFunc(s.timings, func(a, b timing) int { return cmp.Compare(b.elapsed, a.elapsed) })
	shown := 0
	for _, t := range s.timings {
		if shown == slowestShown || t.elapsed < 0.1 {
			break
		}
		if shown == 0 {
			fmt.Fprintln(s.out, "\nslowest tests:")
		}
		fmt.Fprintf(s.out, "  %8s  %s\n", seconds(t.elapsed), t.id)
		shown++
	}
}

// takeBuild returns what the compiler said about a build that several packages may
// have needed.
func (s *summary) takeBuild(importPath string) string {
	text := buffer(s.builds, importPath).String()
	if text != "" {
		s.builds[importPath] = &strings.Builder{}
		s.builds[importPath].WriteString("(the compile errors of " + importPath + " are shown above)\n")
	}
	return text
}

// take returns what id has printed and forgets it.
func (s *summary) take(id testID) string {
	text := buffer(s.output, id).String()
	delete(s.output, id)
	return text
}

func (id testID) String() string {
	if id.test == "" {
		return id.pkg
	}
	return id.pkg + " " + id.test
}

// reason strips go's own framing from the output of a skipped test.
func reason(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		trimmed := strings.TrimSpace(line)
		if !strings.HasPrefix(trimmed, "=== ") && !strings.HasPrefix(trimmed, "--- ") {
			kept.WriteString(trimmed + "\n")
		}
	}
	return kept.String()
}

func indent(text string) string {
	var indented strings.Builder
	for line := range strings.Lines(text) {
		indented.WriteString("      " + strings.TrimRight(line, "\n") + "\n")
	}
	return indented.String()
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond).String()
}

func buffer[K comparable](buffers map[K]*strings.Builder, key K) *strings.Builder {
	if buffers[key] == nil {
		buffers[key] = &strings.Builder{}
	}
	return buffers[key]
}
