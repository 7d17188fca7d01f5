package release

const (
	setByManager = "is set by the manager"
	setInSpec    = "is set by the manager, from the settings of the cluster"
	notSafe      = "is refused: "

	provesNothing  = notSafe + "a certificate of its own making proves nothing (F144)"
	foundOtherwise = notSafe + "members are found by the manager"
	noProxy        = notSafe + "members are no proxies"
	secondAPI      = notSafe + "the second version of the API is gone from 3.6 on (F052)"
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

	"auto-tls":                           provesNothing,
	"peer-auto-tls":                      provesNothing,
	"self-signed-cert-validity":          provesNothing,
	"peer-skip-client-san-verification":  notSafe + "it would take away from the verification of peers",
	"force-new-cluster":                  notSafe + "it drops all other members (F040)",
	"unsafe-no-fsync":                    notSafe + "it loses data (F123)",
	"listen-client-http-urls":            notSafe + "it opens one more port to the network (F142)",
	"listen-metrics-urls":                notSafe + "metrics without authentication would be open to the network (F142)",
	"enable-pprof":                       notSafe + "profiles would be open to every client",
	"discovery":                          foundOtherwise,
	"discovery-cacert":                   foundOtherwise,
	"discovery-cert":                     foundOtherwise,
	"discovery-dial-timeout":             foundOtherwise,
	"discovery-endpoints":                foundOtherwise,
	"discovery-fallback":                 foundOtherwise,
	"discovery-insecure-skip-tls-verify": foundOtherwise,
	"discovery-insecure-transport":       foundOtherwise,
	"discovery-keepalive-time":           foundOtherwise,
	"discovery-keepalive-timeout":        foundOtherwise,
	"discovery-key":                      foundOtherwise,
	"discovery-password":                 foundOtherwise,
	"discovery-proxy":                    foundOtherwise,
	"discovery-request-timeout":          foundOtherwise,
	"discovery-srv":                      foundOtherwise,
	"discovery-srv-name":                 foundOtherwise,
	"discovery-token":                    foundOtherwise,
	"discovery-user":                     foundOtherwise,
	"enable-v2":                          secondAPI,
	"enable-v2v3":                        secondAPI,
	"proxy":                              noProxy,
	"proxy-dial-timeout":                 noProxy,
	"proxy-failure-wait":                 noProxy,
	"proxy-read-timeout":                 noProxy,
	"proxy-refresh-interval":             noProxy,
	"proxy-write-timeout":                noProxy,
}
