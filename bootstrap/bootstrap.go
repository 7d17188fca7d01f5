// Package bootstrap holds what a machine is given when it is made, and below
// it everything that runs on the machine: the agent, its certificates and its
// releases of etcd. It knows nothing of Kubernetes and may import neither
// client-go nor controller-runtime nor the deciding side under etcdmanager/.
package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Ports that every machine listens on, on an address of its own.
const (
	PortAgent  = 2378
	PortClient = 2379
	PortPeer   = 2380
)

// Data is what an actuator hands to a new machine. It holds no long-lived
// secret: the identity in it is good for the first contact only, for this one
// machine, and expires soon. The controller signs the machine's own keys over
// that contact and never again for other keys.
type Data struct {
	Cluster     string `json:"cluster"`
	ClusterUID  string `json:"clusterUID"`
	Machine     string `json:"machine"`
	MachineUID  string `json:"machineUID"`
	AgentCA     string `json:"agentCA"`     // PEM; whom the agent believes
	Certificate string `json:"certificate"` // PEM; the first-contact identity
	Key         string `json:"key"`         // PEM
}

// Parse reads bootstrap data strictly enough to refuse what cannot work. Its
// errors never contain the data itself, which holds a key.
func Parse(raw []byte) (Data, error) {
	var d Data
	if err := json.Unmarshal(raw, &d); err != nil {
		return Data{}, errors.New("bootstrap data is not the JSON document that the controller writes")
	}
	for _, field := range []struct{ name, value string }{
		{"cluster", d.Cluster},
		{"clusterUID", d.ClusterUID},
		{"machine", d.Machine},
		{"machineUID", d.MachineUID},
		{"agentCA", d.AgentCA},
		{"certificate", d.Certificate},
		{"key", d.Key},
	} {
		if field.value == "" {
			return Data{}, fmt.Errorf("bootstrap data has no %s", field.name)
		}
	}
	return d, nil
}
