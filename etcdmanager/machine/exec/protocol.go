package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
)

// APIVersion of the documents. A program refuses one it does not know.
const APIVersion = "actuator.etcdmanager.io/v1alpha1"

// Verbs, the program's last argument.
const (
	verbCreate  = "create"
	verbObserve = "observe"
	verbUpdate  = "update"
	verbDelete  = "delete"
)

// Request is what the program reads.
type Request struct {
	APIVersion string          `json:"apiVersion"`
	Machine    machine.Machine `json:"machine"`
	// Bootstrap is there for create only; it holds a private key.
	Bootstrap string `json:"bootstrap,omitempty"`
}

// Answer is what the program writes. One without an error means success.
type Answer struct {
	Instance *machine.Instance `json:"instance,omitempty"`
	Error    *Error            `json:"error,omitempty"`
}

// Error says what is wrong and whether to ask again.
type Error struct {
	Code    string `json:"code"` // one of the Code… constants
	Message string `json:"message"`
}

// Codes of an Error.
const (
	CodeNotFound = "NotFound" // the machine is certainly not there
	CodeRetry    = "Retry"    // it may work later
	CodeInvalid  = "Invalid"  // it can never work as it is asked for
)

// parse takes one whole, valid answer and nothing else. Its errors never
// repeat the output, which may hold anything.
func parse(output []byte) (Answer, error) {
	if len(bytes.TrimSpace(output)) == 0 {
		return Answer{}, errors.New("no answer on standard output")
	}
	decoder := json.NewDecoder(bytes.NewReader(output))
	decoder.DisallowUnknownFields()
	var answer *Answer
	if err := decoder.Decode(&answer); err != nil || answer == nil {
		return Answer{}, fmt.Errorf("%d bytes on standard output are not an answer in JSON", len(output))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Answer{}, errors.New("standard output goes on after the answer")
	}
	return *answer, answer.check()
}

func (a Answer) check() error {
	if a.Error != nil {
		switch {
		case a.Instance != nil:
			return errors.New("the answer has both an instance and an error")
		case a.Error.Code != CodeNotFound && a.Error.Code != CodeRetry && a.Error.Code != CodeInvalid:
			return fmt.Errorf("the answer's error has a code other than %s, %s, %s", CodeNotFound, CodeRetry, CodeInvalid)
		}
	}
	if a.Instance == nil {
		return nil
	}
	switch a.Instance.State {
	case machine.Pending, machine.Running, machine.Stopped:
	default:
		return fmt.Errorf("the answer's state is not %s, %s or %s", machine.Pending, machine.Running, machine.Stopped)
	}
	for _, address := range a.Instance.Addresses {
		if ip, err := netip.ParseAddr(address); err != nil || ip.IsUnspecified() || ip.IsMulticast() || ip.Zone() != "" {
			return errors.New("the answer has an address that is not a machine's IP address")
		}
	}
	return nil
}

// err is the error of an answer as the contract has it.
func (e *Error) err(clean func(string) string) error {
	message := clean(e.Message)
	switch e.Code {
	case CodeNotFound:
		return fmt.Errorf("%s: %w", message, machine.ErrNotFound)
	case CodeInvalid:
		return fmt.Errorf("%s: %w", message, machine.ErrInvalid)
	default:
		return errors.New(message)
	}
}
