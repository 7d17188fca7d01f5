// Package management runs the API that etcdmanager's objects live in, where
// there is no cluster to keep them: a kube-apiserver on an etcd of its own, as
// child processes on loopback. It is what `etcdmanager up`, the demo and the
// tests stand on; StartAPIServer also runs a kube-apiserver on any other etcd,
// as a consumer would.
//
// It knows the kinds only by their CRDs. It must never import the deciding side
// (plan, observe, act, controllers) or a driver of machines.
package management
