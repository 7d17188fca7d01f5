package exec

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
)

// Limits, in bytes, on what a program may say in one call.
const (
	outputLimit  = 1 << 20
	stderrLimit  = 64 << 10
	lineLimit    = 4 << 10
	lineCost     = 64 // of a line besides its text
	messageLimit = 1 << 10
)

// bounded keeps output up to outputLimit and says once that there is more.
type bounded struct {
	content bytes.Buffer
	full    func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.content.Len()+len(p) > outputLimit {
		b.full()
		return 0, errTooMuch
	}
	return b.content.Write(p)
}

// lines logs standard error line by line, and reads on without logging when
// it is too much: a full pipe must not block the program.
type lines struct {
	log    *slog.Logger
	secret secret
	rest   []byte
	skip   bool // to the end of a line that is too long
	logged int
	muted  bool
}

func (l *lines) Write(p []byte) (int, error) {
	for piece := range bytes.Lines(p) {
		if !l.skip {
			l.rest = append(l.rest, piece...)
		}
		ended := bytes.HasSuffix(piece, []byte("\n"))
		// Twice the limit, so that what is shown is never cut within a secret.
		if ended || len(l.rest) > 2*lineLimit {
			l.flush()
			l.skip = !ended
		}
	}
	return len(p), nil
}

func (l *lines) flush() {
	line := strings.TrimRight(string(l.rest), "\r\n")
	l.rest = l.rest[:0]
	switch {
	case line == "" || l.muted:
	case l.logged+len(line)+lineCost > stderrLimit:
		l.muted = true
		l.log.Warn("the actuator says more than is logged", "limit", stderrLimit)
	default:
		l.logged += len(line) + lineCost
		l.log.Info("actuator says", "line", l.secret.cleanTo(line, lineLimit))
	}
}

// secret knows bootstrap data again where a program repeats it, for example in
// the trace of an error.
type secret []string

// pemLine is long enough not to be a name or UID.
var pemLine = regexp.MustCompile(`[A-Za-z0-9+/=]{40,}`)

func newSecret(bootstrap string) secret {
	// In JSON the lines of a PEM block are parted by \n in two letters, the
	// second of which would count as the next line's first.
	return pemLine.FindAllString(strings.ReplaceAll(bootstrap, `\n`, "\n"), -1)
}

func (s secret) clean(text string) string { return s.cleanTo(text, messageLimit) }

func (s secret) cleanTo(text string, limit int) string {
	for _, part := range s {
		if strings.Contains(text, part) {
			return "(withheld: it repeats bootstrap data)"
		}
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > limit {
		text = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:limit], ""), len(text))
	}
	return text
}
