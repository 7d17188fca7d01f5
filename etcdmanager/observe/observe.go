// Package observe looks at the world: it asks actuators, agents and etcd, each
// with a deadline and all machines at once, and builds what plan decides on.
// It changes nothing.
package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
	"github.com/etcdmanager/etcdmanager/etcdmanager/credentials"
	"github.com/etcdmanager/etcdmanager/etcdmanager/machine"
	"github.com/etcdmanager/etcdmanager/etcdmanager/plan"
)

// deadline of each question to one machine. One that nobody heard of for as
// long as it takes to be given up, or that is to end, gets less: all else waits
// for it.
const (
	deadline      = 2 * time.Second
	deadlineGiven = 300 * time.Millisecond
)

// Observer looks at clusters. Its zero value is not usable; see New.
type Observer struct {
	Actuators map[string]machine.Actuator
	// Mirror is where releases come from when a cluster doesn't say.
	Mirror string
	Now    func() time.Time

	contacts contacts
	memory   memory
}

// New makes an Observer.
func New(actuators map[string]machine.Actuator, mirror string, now func() time.Time) *Observer {
	return &Observer{
		Actuators: actuators, Mirror: mirror, Now: now,
		contacts: contacts{by: map[string]*Contact{}}, memory: memory{by: map[string]*trace{}},
	}
}

// Tap sets the taps. It must be called before the first look.
func (o *Observer) Tap(taps Taps) { o.contacts.taps = taps }

// Close ends all connections.
func (o *Observer) Close() { o.contacts.forget(func(string, string) bool { return true }) }

// Forget drops what is remembered of a cluster's machines but for those that
// are still there.
func (o *Observer) Forget(clusterUID string, there []v1alpha1.EtcdMachine) {
	drop := func(cluster, machine string) bool {
		return cluster == clusterUID && !slices.ContainsFunc(there, func(m v1alpha1.EtcdMachine) bool { return string(m.UID) == machine })
	}
	o.contacts.forget(drop)
	o.memory.forget(drop)
}

// View is one observation: the World to decide on and what steps need to be
// carried out.
type View struct {
	World    plan.World
	Machines map[string]*Machine // by name
	// ClusterID and Members are from the linearizable list, if it was had.
	ClusterID string
}

// Machine is one machine as it was just seen.
type Machine struct {
	Object   *v1alpha1.EtcdMachine
	Instance machine.Instance
	Address  string
	Contact  *Contact       // nil without address
	Seen     *protocol.Seen // nil if its agent did not answer, or only with its bootstrap identity
	AgentErr error
	Etcd     plan.Status
	EtcdErr  error
	Revision int64
	DBSize   int64
	serving  bool
	reached  bool // the agent answered, with whatever identity
}

// Observe looks at a cluster and its machines.
func (o *Observer) Observe(ctx context.Context, cluster *v1alpha1.EtcdCluster, record v1alpha1.ClusterRecord, machines []v1alpha1.EtcdMachine, a credentials.Authorities) *View {
	view := &View{Machines: map[string]*Machine{}}
	each := func(do func(m *Machine)) {
		var wg sync.WaitGroup
		for _, m := range view.Machines {
			wg.Go(func() { do(m) })
		}
		wg.Wait()
	}
	for i := range machines {
		view.Machines[machines[i].Name] = &Machine{Object: &machines[i]}
	}
	each(func(m *Machine) { o.askActuator(ctx, cluster, m) })
	view.refuseDuplicates()
	each(func(m *Machine) { o.contact(ctx, cluster, m, a) })
	now := o.Now()
	view.World = plan.World{Now: now, Spec: specOf(cluster), Record: recordOf(record)}
	for _, name := range slices.SortedFunc(mapKeys(view.Machines), byNumber) {
		view.World.Machines = append(view.World.Machines, o.planMachine(view, view.Machines[name], record, Template(cluster, o.Mirror), now))
	}
	o.members(ctx, view)
	return view
}

// refuseDuplicates leaves the older of two machines at one address alone and
// talks to the younger no more: whatever answers there, it is not both.
func (v *View) refuseDuplicates() {
	at := map[string]*Machine{}
	for _, name := range slices.SortedFunc(mapKeys(v.Machines), byNumber) {
		m := v.Machines[name]
		if m.Address == "" || m.Instance.State == machine.State(plan.InstanceGone) {
			continue
		}
		if other, taken := at[m.Address]; taken {
			m.AgentErr = fmt.Errorf("its address %s is that of machine %s", m.Address, other.Object.Name)
			m.Address = ""
			continue
		}
		at[m.Address] = m
	}
}

// contact talks to one machine's agent and etcd.
func (o *Observer) contact(ctx context.Context, cluster *v1alpha1.EtcdCluster, m *Machine, a credentials.Authorities) {
	if m.Address == "" || m.Instance.State == machine.State(plan.InstanceGone) {
		return
	}
	contact, err := o.contacts.get(string(cluster.UID), string(m.Object.UID), m.Address, a, o.Now())
	if err != nil {
		m.AgentErr = err
		return
	}
	m.Contact = contact
	// An etcd that its agent knows not to run need not be waited for.
	ctx, noEtcd := context.WithTimeout(ctx, o.patience(cluster, m))
	defer noEtcd()
	var wg sync.WaitGroup
	wg.Go(func() { m.askEtcd(ctx) })
	m.askAgent(ctx)
	if m.reached && (m.Seen == nil || !m.Seen.Process.Running) {
		noEtcd()
	}
	wg.Wait()
}

// patience is how long a machine is waited for in one look.
func (o *Observer) patience(cluster *v1alpha1.EtcdCluster, m *Machine) time.Duration {
	since := o.memory.muteSince(string(m.Object.UID))
	longAgo := o.Now().Sub(since) >= cluster.Spec.Repair.DeadAfter.Duration
	if !since.IsZero() && (longAgo || !m.Object.DeletionTimestamp.IsZero()) {
		return deadlineGiven
	}
	return 2 * deadline // each question has its own deadline
}

// askActuator asks what there is of a machine, and where.
func (o *Observer) askActuator(ctx context.Context, cluster *v1alpha1.EtcdCluster, m *Machine) {
	m.Address = m.Object.Status.Address
	if m.Object.Status.Requested == nil {
		return
	}
	actuator, ok := o.Actuators[m.Object.Spec.Actuator]
	if !ok {
		m.Instance.Message = fmt.Sprintf("no actuator is named %q", m.Object.Spec.Actuator)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 3*deadline)
	defer cancel()
	instance, err := actuator.Observe(ctx, MachineFor(cluster, m.Object))
	switch {
	case errors.Is(err, machine.ErrNotFound):
		m.Instance = machine.Instance{State: machine.State(plan.InstanceGone)}
	case err != nil:
		m.Instance = machine.Instance{Message: err.Error()}
	default:
		m.Instance = instance
		if len(instance.Addresses) > 0 {
			m.Address = instance.Addresses[0]
		}
	}
}

func (m *Machine) askAgent(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	seen, err := m.Contact.Agent.Seen(ctx, false)
	if err != nil {
		m.AgentErr = err
		return
	}
	m.reached = true
	if seen.MachineUID != string(m.Object.UID) {
		m.AgentErr = fmt.Errorf("the agent is of machine %s", seen.MachineUID)
		return
	}
	// Whoever holds the bootstrap identity may ask to be enrolled and is
	// believed nothing else.
	if !m.Contact.firstContact.Load() {
		m.Seen = &seen
	}
}

// mapKeys and byNumber give machines an order: by their number, which is
// their age.
func mapKeys(m map[string]*Machine) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// MachineFor is what an actuator is told of a machine.
func MachineFor(cluster *v1alpha1.EtcdCluster, m *v1alpha1.EtcdMachine) machine.Machine {
	var config json.RawMessage
	if cluster != nil && cluster.Spec.MachineTemplate.Config != nil {
		config = cluster.Spec.MachineTemplate.Config.Raw
	}
	return machine.Machine{
		UID: string(m.UID), Name: m.Name, Namespace: m.Namespace,
		Cluster: m.Spec.Cluster, ClusterUID: m.Spec.ClusterUID, FailureDomain: m.Spec.FailureDomain,
		Tags: map[string]string{
			v1alpha1.LabelCluster: m.Spec.Cluster, v1alpha1.LabelClusterUID: m.Spec.ClusterUID,
			"etcdmanager.io/machine-uid": string(m.UID),
		},
		Config: config,
	}
}

// ObserveObjects is a view of objects alone, for a cluster that can't be
// talked to any more and is being deleted.
func (o *Observer) ObserveObjects(cluster *v1alpha1.EtcdCluster, record v1alpha1.ClusterRecord, machines []v1alpha1.EtcdMachine) *View {
	view := &View{Machines: map[string]*Machine{}}
	now := o.Now()
	view.World = plan.World{Now: now, Spec: specOf(cluster), Record: recordOf(record)}
	for i := range machines {
		m := &Machine{Object: &machines[i]}
		view.Machines[m.Object.Name] = m
		view.World.Machines = append(view.World.Machines, o.planMachine(view, m, record, Template(cluster, o.Mirror), now))
	}
	return view
}
