// Command testsum condenses the output of `go test -json` read from standard input.
//
// It prints a line for each package as it finishes, the whole output of each test that
// fails, the reason of each skipped test, compile errors, the slowest tests, and as the
// last line
//
//	N passed, N failed, N skipped
//
// which counts tests, subtests included. A package that fails without a failing test (it
// does not compile, or exits early) counts as one failure, and tests that a panic or a
// timeout interrupted count as failed.
//
// The exit code is 1 when anything failed or no test passed, and 2 when the input is not
// readable.
package main

import (
	"fmt"
	"os"
)

func main() {
	s := newSummary(os.Stdout)
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(2)
	}
	if !s.finish() {
		os.Exit(1)
	}
}
