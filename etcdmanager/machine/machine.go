// Package machine is the contract between the controller and whatever makes
// machines. Drivers live in folders of their own, know nothing of each other,
// and all pass the suite in machinetest.
package machine

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrNotFound says that a machine is certainly not there: never asked for, or
// gone for good. A driver that cannot tell returns another error (F162).
var ErrNotFound = errors.New("machine not found")

// ErrInvalid says that what is asked for can never be done as it is asked, for
// example with a config that the driver does not understand. Every other error
// is worth another try.
var ErrInvalid = errors.New("invalid machine")

// Actuator creates and deletes the machines etcd runs on. Every method is
// idempotent; the machine's UID identifies it across retries and restarts of
// the controller (F160). Names may repeat, UIDs don't.
type Actuator interface {
	// Create asks for the machine and need not wait for it. For a machine
	// that exists and is stopped it starts it again, with what it has.
	Create(ctx context.Context, m Machine, bootstrap []byte) error
	// Observe says what is there. It changes nothing.
	Observe(ctx context.Context, m Machine) (Instance, error)
	// Update brings tags and what else can change in place up to date.
	Update(ctx context.Context, m Machine) error
	// Delete asks for the end of the machine with all its data. It is done
	// when Observe says ErrNotFound; to delete what never was is no error.
	Delete(ctx context.Context, m Machine) error
}

// Machine is what a driver is told of one machine.
type Machine struct {
	UID           string            `json:"uid"` // of the EtcdMachine: the idempotency key
	Name          string            `json:"name"`
	Namespace     string            `json:"namespace"`
	Cluster       string            `json:"cluster"`
	ClusterUID    string            `json:"clusterUID"`
	FailureDomain string            `json:"failureDomain,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
	// Config is spec.machineTemplate.config, for the driver to read.
	Config json.RawMessage `json:"config,omitempty"`
}

// Instance is a machine as its driver sees it.
type Instance struct {
	ProviderID string `json:"providerID"`
	State      State  `json:"state"`
	// Addresses are IP addresses, the one to reach the agent and etcd at
	// first. Empty until it is known.
	Addresses []string `json:"addresses,omitempty"`
	Message   string   `json:"message,omitempty"`
}

// State of an Instance.
type State string

// States.
const (
	Pending State = "Pending" // asked for, not up yet
	Running State = "Running"
	Stopped State = "Stopped" // exists with its disk, does not run; Create starts it
)
