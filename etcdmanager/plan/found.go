package plan

import "fmt"

// found brings a cluster into being: names and token are recorded, machines
// made and enrolled, and all of them told at once to found it together. That
// it has answered is recorded once and for ever (F027, F159).
func (d *decision) found() {
	if len(d.Record.Founders) == 0 && d.Record.NextMachine == 0 && len(d.Machines) > 0 {
		d.adopt()
		return
	}
	if len(d.Record.Founders) == 0 {
		d.do(Step{Kind: RecordFounding, Founders: d.founders(), Reason: "a new cluster"})
		return
	}
	for _, m := range d.Machines {
		if m.Serving && m.Status.Known && m.Status.ClusterID != "" && m.Agent.Declared {
			d.do(Step{Kind: RecordFounded, ClusterID: m.Status.ClusterID, Reason: m.Name + " answers"})
			return
		}
	}
	if reason, lost := d.foundingLost(); lost {
		d.do(Step{Kind: ResetFounding, Reason: reason})
		return
	}
	if d.releaseStrangers() {
		d.waitFor("machines of a founding that came to nothing to go")
		return
	}
	ready, declared := 0, 0
	var peers []Peer
	for i, name := range d.Record.Founders {
		m, ok := d.machine(name)
		if !ok {
			d.do(Step{Kind: CreateMachine, Machine: name, FailureDomain: d.foundingDomain(i), Reason: "founder"})
			continue
		}
		d.upkeep(m)
		if m.Agent.Reachable && m.Agent.Enrolled && m.PeerURL != "" && !m.Deleting {
			ready++
			peers = append(peers, Peer{Name: m.Name, URL: m.PeerURL})
		}
		if m.Agent.Declared {
			declared++
		}
	}
	switch {
	case ready == len(d.Record.Founders):
		d.declareFounders(peers)
		d.waitFor("the founders to elect a leader")
	case declared > 0:
		d.waitFor("a founder that was lost on the way")
	default:
		d.waitFor(fmt.Sprintf("machines: %d of %d are enrolled", ready, len(d.Record.Founders)))
	}
}

func (d *decision) declareFounders(peers []Peer) {
	for _, name := range d.Record.Founders {
		m, _ := d.machine(name)
		if !m.Agent.Declared || m.Agent.Outdated || m.Agent.DeclaredPeers != PeersKey(peers) && m.Agent.Data == DataEmpty && !m.Agent.Running {
			d.do(Step{Kind: Declare, Machine: name, PeerURL: m.PeerURL, Found: true, InitialCluster: peers, Reason: "found the cluster together"})
		}
	}
}

// adopt takes over machines of which there is no record: no machine is ever
// made before a name is recorded for it, so the record was lost. A cluster
// that answers is adopted; nothing is founded, nothing is let go (F159).
func (d *decision) adopt() {
	names := make([]string, 0, len(d.Machines))
	var id string
	for _, m := range d.Machines {
		names = append(names, m.Name)
		if m.Serving && m.Status.Known && id == "" {
			id = m.Status.ClusterID
		}
	}
	if id == "" {
		for _, m := range d.Machines {
			if m.Instance == InstanceStopped {
				d.upkeep(m)
			}
		}
		d.waitFor("a machine to answer: there are machines, but the record of the cluster is lost")
		return
	}
	d.do(Step{Kind: RecordFounding, Founders: names, ClusterID: id, Reason: "the record was lost; the cluster that answers is adopted"})
}

// foundingLost says that a founding can't come to an end: a founder that had
// been told to start is lost, and the rest have not answered for a while.
// Nobody has been given endpoints yet, so nothing is lost by starting over.
func (d *decision) foundingLost() (string, bool) {
	started := false
	var lost string
	for _, name := range d.Record.Founders {
		m, ok := d.machine(name)
		// One that can't be asked may have been told.
		started = started || m.Agent.Declared || ok && m.PeerURL != "" && !m.Agent.Reachable && !d.gone(m)
		if !ok || m.Deleting {
			lost = name
			continue
		}
		if _, gone := d.lost(m); gone {
			lost = name
		}
	}
	if lost == "" {
		return "", false
	}
	if m, ok := d.machine(lost); ok && d.gone(m) && !started {
		return lost + " was lost before it started", true
	}
	if !started || d.FleetSilent {
		return "", false // unless started, it is made again under its name
	}
	for _, m := range d.Machines {
		if !m.SilentSince.IsZero() && d.Now.Sub(m.SilentSince) < foundingPatience {
			d.lookAgainAt(m.SilentSince.Add(foundingPatience))
			return "", false
		}
	}
	return lost + " was lost while the cluster was founded", true
}

func (d *decision) founders() []string {
	names := make([]string, 0, d.Spec.Replicas)
	for i := range d.Spec.Replicas {
		names = append(names, MachineName(d.Spec.Name, d.Record.NextMachine+int64(i)))
	}
	return names
}

func (d *decision) foundingDomain(i int) string {
	if len(d.Spec.FailureDomains) == 0 {
		return ""
	}
	return d.Spec.FailureDomains[i%len(d.Spec.FailureDomains)]
}

// releaseStrangers lets machines go that are no founders, left by a founding
// that was reset. It says whether the end of one was not asked for before: then
// none is made meanwhile.
func (d *decision) releaseStrangers() (asked bool) {
	for _, m := range d.Machines {
		founder := false
		for _, name := range d.Record.Founders {
			founder = founder || name == m.Name
		}
		if !founder || m.Deleting {
			asked = asked || !m.Deleting
			d.letGo(m, "not a founder")
		}
	}
	return asked
}
