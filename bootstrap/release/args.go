package release

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

//go:generate go test -run ^TestFlagTables$ -update .

// kind is what a flag's value is.
type kind string

const (
	boolean  kind = "boolean"
	integer  kind = "integer"
	unsigned kind = "unsigned"
	duration kind = "duration"
	text     kind = "text"
)

// CheckArgs says whether a version of etcd takes the extra arguments, named
// without leading dashes, and whether the manager leaves them to the user. The
// error is about the first bad one by name.
func CheckArgs(version string, args map[string]string) error {
	m, err := lookup(version)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if err := m.checkArg(name, args[name]); err != nil {
			return err
		}
	}
	return nil
}

func (m minor) checkArg(name, value string) error {
	if trimmed := strings.TrimLeft(name, "-"); trimmed != name {
		return fmt.Errorf("extra argument %q: write it without leading dashes", name)
	}
	if why, is := refused[strings.TrimPrefix(name, "experimental-")]; is {
		return fmt.Errorf("extra argument %s %s", name, why)
	}
	of, is := m.flags[name]
	if !is {
		return fmt.Errorf("extra argument %s: etcd %s has no such flag", name, m)
	}
	if err := of.check(value); err != nil {
		return fmt.Errorf("extra argument %s: %w", name, err)
	}
	if choices, limited := choicesOf[name]; limited && !slices.Contains(choices, value) {
		return fmt.Errorf("extra argument %s: %q is none of %s", name, value, strings.Join(choices, ", "))
	}
	if name == "feature-gates" {
		if _, err := m.mergeGates(value); err != nil {
			return fmt.Errorf("extra argument %s: %w", name, err)
		}
	}
	return nil
}

// check refuses what etcd could not parse, and negative numbers, which none of
// its flags means anything by. Numbers may have the prefixes that Go's have.
func (k kind) check(value string) error {
	var number int64
	var err error
	switch k {
	case boolean:
		if _, err := strconv.ParseBool(value); err != nil {
			return fmt.Errorf("%q is neither true nor false", value)
		}
	case integer:
		number, err = strconv.ParseInt(value, 0, 64)
	case unsigned:
		_, err = strconv.ParseUint(value, 0, 64)
	case duration:
		var d time.Duration
		if d, err = time.ParseDuration(value); err != nil {
			return fmt.Errorf("%q is not a duration like 500ms or 1h30m", value)
		}
		number = int64(d)
	case text:
		if strings.ContainsFunc(value, unicode.IsControl) {
			return fmt.Errorf("there is a control character in it")
		}
	}
	if err != nil {
		return fmt.Errorf("%q is not a whole number", value)
	}
	if number < 0 {
		return fmt.Errorf("%s is negative", value)
	}
	return nil
}

// choicesOf are the texts that etcd would refuse to start without.
var choicesOf = map[string][]string{
	"backend-bbolt-freelist-type": {"array", "map"},
	"log-format":                  {"json", "console"},
	"log-level":                   {"debug", "info", "warn", "error", "panic", "fatal"},
	"metrics":                     {"basic", "extensive"},
	"tls-max-version":             {"TLS1.2", "TLS1.3"},
	"tls-min-version":             {"TLS1.2", "TLS1.3"},
}
