package chaos

import (
	"context"
)

// kind is a way in which things go wrong.
type kind struct {
	name    string
	part    string // what it is about: a round has one fault of each part at most
	members int    // how many it is about; everyone for all
	leader  bool   // it is about the leader
	losses  int    // disks that are lost
	lasts   bool   // it stops or keeps something down for a while
	inTurn  bool   // a disk is lost some time after another
	scales  bool
	goes    bool // its machines must be gone in the end, disks apart
	// touches says that members may stop to serve for a while with their
	// disks as they are, or that the membership changes.
	touches bool
	// do carries it out and returns when it is over; its consequences may not be.
	do func(ctx context.Context, h *hurt, f fault, members []member) error
}

const everyone = -1

func (k kind) count(replicas int) int {
	if k.members == everyone {
		return replicas
	}
	return min(k.members, replicas)
}

// cost is how many members may be lost with their data at once.
func (k kind) cost(replicas int) int {
	if k.scales && replicas == 5 {
		return 1
	}
	return k.losses
}

// gentle says that etcd must not notice.
func (k kind) gentle() bool { return k.losses == 0 && !k.touches }

// network are the kinds that need a network of their own.
var network = []kind{
	{name: "cut the way to the leader's peer port", part: "network", leader: true, lasts: true, touches: true, do: cutTo(peerPort)},
	{name: "cut the way to a peer port", part: "network", members: 1, lasts: true, touches: true, do: cutTo(peerPort)},
	{name: "cut the way to two peer ports", part: "network", members: 2, lasts: true, touches: true, do: cutTo(peerPort)},
	{name: "cut the way from the leader's peer port", part: "network", leader: true, lasts: true, touches: true, do: cutFrom(peerPort)},
	{name: "cut the way from a peer port", part: "network", members: 1, lasts: true, touches: true, do: cutFrom(peerPort)},
	{name: "cut the way to a machine", part: "network", members: 1, lasts: true, touches: true, do: cutTo(allPorts)},
	{name: "cut the way from a machine", part: "network", members: 1, lasts: true, touches: true, do: cutFrom(allPorts)},
}

var kinds = []kind{
	{name: "kill the leader's etcd", part: "etcd", leader: true, touches: true, do: kill(etcds)},
	{name: "kill an etcd", part: "etcd", members: 1, touches: true, do: kill(etcds)},
	{name: "kill two etcds", part: "etcd", members: 2, touches: true, do: kill(etcds)},
	{name: "kill all etcds", part: "etcd", members: everyone, touches: true, do: kill(etcds)},
	{name: "stop the leader's etcd", part: "etcd", leader: true, lasts: true, touches: true, do: stop(etcds)},
	{name: "stop an etcd", part: "etcd", members: 1, lasts: true, touches: true, do: stop(etcds)},
	{name: "stop two etcds", part: "etcd", members: 2, lasts: true, touches: true, do: stop(etcds)},
	{name: "stop all etcds", part: "etcd", members: everyone, lasts: true, touches: true, do: stop(etcds)},

	{name: "kill an agent", part: "agents", members: 1, do: kill(agents)},
	{name: "kill all agents", part: "agents", members: everyone, do: kill(agents)},
	{name: "stop an agent", part: "agents", members: 1, lasts: true, do: stop(agents)},
	{name: "stop all agents", part: "agents", members: everyone, lasts: true, do: stop(agents)},

	{name: "kill the controller", part: "controller", lasts: true, do: killController},
	{name: "stop the controller", part: "controller", lasts: true, do: stop(controller)},

	{name: "kill the kube-apiserver", part: "management", do: kill(management("kube-apiserver"))},
	{name: "kill the management etcd", part: "management", do: kill(management("etcd"))},
	{name: "kill the management API", part: "management", do: kill(management("kube-apiserver", "etcd"))},
	{name: "stop the kube-apiserver", part: "management", lasts: true, do: stop(management("kube-apiserver"))},
	{name: "stop the management etcd", part: "management", lasts: true, do: stop(management("etcd"))},

	{name: "crash a machine", part: "machines", members: 1, touches: true, do: kill(machines)},
	{name: "crash all machines", part: "machines", members: everyone, touches: true, do: kill(machines)},
	{name: "remove a release", part: "machines", members: 1, touches: true, do: removeRelease},

	{name: "destroy a machine", part: "disks", losses: 1, do: destroy},
	{name: "destroy two machines", part: "disks", losses: 2, do: destroy},
	{name: "destroy a machine, another while it is replaced", part: "disks", losses: 2, inTurn: true, do: destroyInTurn},
	{name: "wipe the disk of a running etcd", part: "disks", losses: 1, do: wipe},
	{name: "wipe the disk of a crashed machine", part: "disks", losses: 1, do: wipeCrashed},

	{name: "scale", part: "spec", scales: true, touches: true, do: scale},
	{name: "ask for a replacement", part: "spec", members: 1, goes: true, touches: true, do: askReplacement},
	{name: "delete an EtcdMachine", part: "spec", members: 1, goes: true, touches: true, do: deleteObject},
}
