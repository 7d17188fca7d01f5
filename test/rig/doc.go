// Package rig is what tests on real processes stand on: the binaries that
// `make testbin` builds, a management API, a kube-apiserver on any etcd,
// addresses on loopback, and waiting for conditions with generous deadlines.
//
// Only tests may import it.
package rig
