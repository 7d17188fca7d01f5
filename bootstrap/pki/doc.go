// Package pki makes the authorities, keys and certificates of one etcd cluster
// and the TLS settings of the traffic between controller and agents.
//
// Each cluster has three authorities of its own: one for etcd's clients and
// servers, one for its peers, so that a client certificate can never join as a
// peer, and one for the agents. Private keys of leaves are made where they are
// used; an authority only ever sees requests.
//
// The package keeps nothing on disk and logs nothing. It may import the
// standard library only, and must never import Kubernetes, the agent or the
// deciding side.
package pki
