// Package release knows etcd's releases: which versions may be run and which
// never, which flags each minor has, the command line of a member, and how an
// archive is fetched from a mirror, verified and unpacked.
//
// It starts no process and asks etcd nothing. It may import the agent's
// protocol, and must never import Kubernetes or the deciding side.
package release
