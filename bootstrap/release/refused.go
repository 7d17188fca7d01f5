package release

const (
	setByManager = "is set by the manager"
	setInSpec    = "is set by the manager, from the settings of the cluster"
	notSafe      = "is refused: "
)

// refused are the flags that are not the user's, and why. Names beginning with
// experimental- are looked up without it.
var refused = map[string]string{
	"advertise-client-urls":       setByManager,
	"cert-file":                   setByManager,
	"client-cert-auth":            setByManager,
	"client-cert-file":            setByManager,
	"client-key-file":             setByManager,
	"config-file":                 setByManager,
	"data-dir":                    setByManager,
	"enable-log-rotation":         setByManager,
	"initial-advertise-peer-urls": setByManager,
	"initial-cluster":             setByManager,
	"initial-cluster-state":       setByManager,
	"initial-cluster-token":       setByManager,
	"key-file":                    setByManager,
	"listen-client-urls":          setByManager,
	"listen-peer-urls":            setByManager,
	"log-outputs":                 setByManager,
	"log-rotation-config-json":    setByManager,
	"logger":                      setByManager,
	"max-learners":                setByManager, // one at a time (F011)
	"name":                        setByManager,
	"peer-cert-allowed-cn":        setByManager,
	"peer-cert-allowed-hostname":  setByManager,
	"peer-cert-file":              setByManager,
	"peer-client-cert-auth":       setByManager,
	"peer-client-cert-file":       setByManager,
	"peer-client-key-file":        setByManager,
	"peer-key-file":               setByManager,
	"peer-trusted-ca-file":        setByManager,
	"pre-vote":                    setByManager,
	"strict-reconfig-check":       setByManager, // without it quorum can be voted away (F001)
	"trusted-ca-file":             setByManager,
	"wal-dir":                     setByManager,

	"compact-hash-check-enabled":    setByManager, // F069
	"initial-corrupt-check":         setByManager, // F069
	"stop-grpc-service-on-defrag":   setByManager, // F114
	"auto-compaction-mode":          setInSpec,
	"auto-compaction-retention":     setInSpec,
	"election-timeout":              setInSpec,
	"heartbeat-interval":            setInSpec,
	"quota-backend-bytes":           setInSpec,
	"initial-election-tick-advance": setByManager,

	"auto-tls":                           notSafe + "a certificate of its own making proves nothing (F144)",
	"peer-auto-tls":                      notSafe + "a certificate of its own making proves nothing (F144)",
	"self-signed-cert-validity":          notSafe + "a certificate of its own making proves nothing (F144)",
	"peer-skip-client-san-verification":  notSafe + "it would take away from the verification of peers",
	"force-new-cluster":                  notSafe + "it drops all other members (F040)",
	"unsafe-no-fsync":                    notSafe + "it loses data (F123)",
	"listen-client-http-urls":            notSafe + "it opens one more port to the network (F142)",
	"listen-metrics-urls":                notSafe + "metrics without authentication would be open to the network (F142)",
	"enable-pprof":                       notSafe + "profiles would be open to every client",
	"discovery":                          notSafe + "members are found by the manager",
	"discovery-cacert":                   notSafe + "members are found by the manager",
	"discovery-cert":                     notSafe + "members are found by the manager",
	"discovery-dial-timeout":             notSafe + "members are found by the manager",
	"discovery-endpoints":                notSafe + "members are found by the manager",
	"discovery-fallback":                 notSafe + "members are found by the manager",
	"discovery-insecure-skip-tls-verify": notSafe + "members are found by the manager",
	"discovery-insecure-transport":       notSafe + "members are found by the manager",
	"discovery-keepalive-time":           notSafe + "members are found by the manager",
	"discovery-keepalive-timeout":        notSafe + "members are found by the manager",
	"discovery-key":                      notSafe + "members are found by the manager",
	"discovery-password":                 notSafe + "members are found by the manager",
	"discovery-proxy":                    notSafe + "members are found by the manager",
	"discovery-request-timeout":          notSafe + "members are found by the manager",
	"discovery-srv":                      notSafe + "members are found by the manager",
	"discovery-srv-name":                 notSafe + "members are found by the manager",
	"discovery-token":                    notSafe + "members are found by the manager",
	"discovery-user":                     notSafe + "members are found by the manager",
	"enable-v2":                          notSafe + "the second version of the API is gone from 3.6 on (F052)",
	"enable-v2v3":                        notSafe + "the second version of the API is gone from 3.6 on (F052)",
	"proxy":                              notSafe + "members are no proxies",
	"proxy-dial-timeout":                 notSafe + "members are no proxies",
	"proxy-failure-wait":                 notSafe + "members are no proxies",
	"proxy-read-timeout":                 notSafe + "members are no proxies",
	"proxy-refresh-interval":             notSafe + "members are no proxies",
	"proxy-write-timeout":                notSafe + "members are no proxies",
}
