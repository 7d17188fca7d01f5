// Package docs holds what is written for people, and tests that it stays true
// where a machine can tell.
package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a Markdown link or image: [text](target).
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows every relative link of every document.
func TestLinks(t *testing.T) {
	seen := 0
	for path, text := range documents(t) {
		headings := anchors(text)
		for _, match := range link.FindAllStringSubmatch(withoutCode(text), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			seen++
			to := headings
			if target != "" {
				file := filepath.Join(filepath.Dir(path), target)
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s links to %s, which is not there", path, match[1])
					continue
				}
				if !strings.HasSuffix(file, ".md") {
					continue
				}
				to = anchors(read(t, file))
			}
			if anchor != "" && !to[anchor] {
				t.Errorf("%s links to %s, which has no such heading", path, match[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no relative link was found in any document")
	}
}

// TestMapOfTheSource holds the map that ends architecture.md against the
// packages that there are, both ways.
func TestMapOfTheSource(t *testing.T) {
	const document = "architecture.md"
	_, section, found := strings.Cut(read(t, document), "\n## Map of the source\n")
	if !found {
		t.Fatalf("%s has no map of the source", document)
	}
	listed := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		if listed[match[1]] {
			t.Errorf("the map lists %s twice", match[1])
		}
		listed[match[1]] = true
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-e", "-f", "{{.Module.Path}} {{.ImportPath}}", "../...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		module, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		name := strings.TrimPrefix(path, module+"/")
		if !listed[name] {
			t.Errorf("the map lacks the package %s", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("the map lists %s, which is no package", name)
	}
}

// documents are the repository's Markdown files, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			all[path] = read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence      = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	heading    = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	notInNames = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// withoutCode drops what only looks like links.
func withoutCode(text string) string {
	return codeSpan.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
}

// anchors are what links to a document's headings end in, as forges make them.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := notInNames.ReplaceAllString(strings.ToLower(match[1]), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}
