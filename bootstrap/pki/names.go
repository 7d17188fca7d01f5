package pki

// Names say who holds a certificate, and UIDs in them say of which cluster or
// machine: names of clusters get reused, UIDs don't (F163). All fit the 64
// characters that a common name may have.

// BootstrapName is the first-contact identity of a machine.
func BootstrapName(machineUID string) string { return "etcdmanager:bootstrap:" + machineUID }

// AgentName is a machine's agent as a server.
func AgentName(machineUID string) string { return "etcdmanager:agent:" + machineUID }

// ControllerName is the controller towards the agents of one cluster.
func ControllerName(clusterUID string) string { return "etcdmanager:controller:" + clusterUID }

// PeerName is every peer of one cluster, for etcd's --peer-cert-allowed-cn.
func PeerName(clusterUID string) string { return "etcdmanager:peer:" + clusterUID }

// ServerName is a machine's etcd towards clients.
func ServerName(machineUID string) string { return "etcdmanager:server:" + machineUID }

// ProbeName is a machine's agent as a client of etcd.
func ProbeName(machineUID string) string { return "etcdmanager:probe:" + machineUID }

// EtcdClientName is the controller as a client of etcd.
func EtcdClientName() string { return "etcdmanager-controller" }

// ConsumerName is the kube-apiserver that is served, as a client of etcd.
func ConsumerName() string { return "kube-apiserver-etcd-client" }
