package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/etcdmanager/etcdmanager/bootstrap/agent/internal/durable"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// facts are what cannot be observed again and is written down before it is
// needed. Everything else is looked up.
type facts struct {
	Cluster    string `json:"cluster"`
	ClusterUID string `json:"clusterUID"`
	Machine    string `json:"machine"`
	MachineUID string `json:"machineUID"`
	Enrolled   bool   `json:"enrolled,omitempty"`

	Epoch  int64            `json:"epoch"`  // the newest seen
	Wanted *protocol.Wanted `json:"wanted"` // the last accepted

	Begun   *begun   `json:"begun,omitempty"`
	Founded *founded `json:"founded,omitempty"`
	Started *started `json:"started,omitempty"`
	Fenced  bool     `json:"fenced,omitempty"`
	Aside   string   `json:"aside,omitempty"` // where a fenced machine's data is

	// Helped says that etcd was started again to end its joining.
	Helped bool `json:"helped,omitempty"`

	Starts int    `json:"starts,omitempty"`
	Exit   string `json:"exit,omitempty"`
}

// begun is written before etcd is started on an empty data directory.
type begun struct {
	At time.Time `json:"at"`
	// Dir is the inode of the empty directory: while it is the same and no
	// write-ahead log that was used is in it, etcd has not come to vote, so
	// that a start that failed may be repeated. Another one means that it was
	// removed.
	Dir uint64 `json:"dir"`
}

// founded is written before the first start with initial-cluster-state=new,
// which a machine does for one incarnation only (F027).
type founded struct {
	Token string    `json:"token"`
	At    time.Time `json:"at"`
}

// started is written when etcd has used its log. From then on, data that is
// missing is lost data (F026).
type started struct {
	Token     string    `json:"token"`
	MemberID  string    `json:"memberID"`
	ClusterID string    `json:"clusterID"`
	At        time.Time `json:"at"`
}

// state keeps facts in DIR/state.json. A change is on disk before it is seen.
type state struct {
	path string

	mu    sync.Mutex
	facts facts
}

func openState(dir string) (*state, error) {
	s := &state{path: filepath.Join(dir, "state.json")}
	raw, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("reading the agent's state: %w", err)
	}
	if err := json.Unmarshal(raw, &s.facts); err != nil {
		return nil, fmt.Errorf("reading the agent's state %s: %w", s.path, err)
	}
	return s, nil
}

// get answers a copy. What it points to is never changed, only replaced.
func (s *state) get() facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts
}

// update changes facts durably. When it fails nothing has changed.
func (s *state) update(change func(*facts)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.facts
	change(&next)
	raw, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the agent's state: %w", err)
	}
	if err := durable.WriteFile(s.path, append(raw, '\n'), durable.Private); err != nil {
		return fmt.Errorf("writing the agent's state: %w", err)
	}
	s.facts = next
	return nil
}
