package exec

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"testing"
)

// The examples that authors of programs copy are requests and answers as the
// code has them.
func TestExamplesInDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/actuators.md")
	if err != nil {
		t.Fatal(err)
	}
	var requests, answers int
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1) {
		example := block[1]
		if !bytes.Contains(example, []byte("apiVersion")) {
			answers++
			if _, err := parse(example); err != nil {
				t.Errorf("%v:\n%s", err, example)
			}
			continue
		}
		requests++
		decoder := json.NewDecoder(bytes.NewReader(example))
		decoder.DisallowUnknownFields()
		var r Request
		if err := decoder.Decode(&r); err != nil || r.APIVersion != APIVersion || r.Machine.UID == "" {
			t.Errorf("not a request: %+v, %v:\n%s", r, err, example)
		}
	}
	if requests < 2 || answers < 7 {
		t.Errorf("%d requests and %d answers were found, want 2 and 7 at least", requests, answers)
	}
}
