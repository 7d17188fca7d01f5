package stories

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/bootstrap/agent/protocol"
)

// roundTripper does one request with what is below it.
type roundTripper struct {
	http.RoundTripper
	do func(below http.RoundTripper, request *http.Request) (*http.Response, error)
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.do(r.RoundTripper, request)
}

// CloseIdleConnections is what http.Client looks for.
func (r roundTripper) CloseIdleConnections() {
	if c, ok := r.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// tap does a request and, if it changed something, says what.
func (e *effects) tap(below http.RoundTripper, request *http.Request, what func(body []byte) string) (*http.Response, error) {
	if request.Method == http.MethodGet || request.Body == nil && request.Method != http.MethodDelete {
		return below.RoundTrip(request)
	}
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	answer, err := below.RoundTrip(request)
	if err != nil || answer.StatusCode >= http.StatusBadRequest {
		return answer, err
	}
	if effect := what(body); effect != "" {
		if err := e.had(effect); err != nil {
			_ = answer.Body.Close()
			return nil, err
		}
	}
	return answer, nil
}

// agents taps what goes to agents.
func (e *effects) agents(below http.RoundTripper) http.RoundTripper {
	return roundTripper{below, func(below http.RoundTripper, request *http.Request) (*http.Response, error) {
		return e.tap(below, request, func(body []byte) string {
			effect := "agent at " + request.URL.Hostname() + ": put " + path.Base(request.URL.Path)
			var wanted protocol.Wanted
			if path.Base(request.URL.Path) == "member" && json.Unmarshal(body, &wanted) == nil {
				effect += fmt.Sprintf(", run %t, fenced %t, peers %v", wanted.Run, wanted.Fenced, wanted.InitialCluster)
			}
			return effect
		})
	}}
}

// etcd taps calls that change etcd's membership or leader, or its log.
func (e *effects) etcd(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	name := path.Base(method)
	if !slices.Contains([]string{"MemberAdd", "MemberPromote", "MemberRemove", "MoveLeader", "Alarm"}, name) {
		return invoke(ctx, method, request, answer, conn, options...)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := invoke(ctx, method, request, answer, conn, options...); err != nil {
		return err
	}
	return e.had("etcd: " + name + " " + strings.TrimSpace(fmt.Sprint(request)))
}

// apiTap taps what goes to the management API. Events are left out: they are
// sent by the side and nothing depends on them.
type apiTap struct {
	effects *effects
	mu      sync.Mutex
	record  *v1alpha1.ClusterRecord // as this controller wrote it last
}

func (a *apiTap) wrap(below http.RoundTripper) http.RoundTripper {
	return roundTripper{below, func(below http.RoundTripper, request *http.Request) (*http.Response, error) {
		if strings.Contains(request.URL.Path, "/events") {
			return below.RoundTrip(request)
		}
		return a.effects.tap(below, request, func(body []byte) string { return a.what(request, body) })
	}}
}

func (a *apiTap) what(request *http.Request, body []byte) string {
	_, object, _ := strings.Cut(request.URL.Path, "/namespaces/")
	_, object, _ = strings.Cut(object, "/")
	effect := "API: " + request.Method + " " + object
	switch {
	case strings.HasPrefix(object, "etcdclusters/") && strings.HasSuffix(object, "/status"):
		return effect + ", " + clusterStatus(body)
	case strings.HasPrefix(object, "etcdmachines/") && strings.HasSuffix(object, "/status"):
		return effect + ", " + machineStatus(body)
	case strings.HasPrefix(object, "etcdclusters/"):
		return effect + ", " + a.recorded(body)
	case request.Method == http.MethodPost:
		var made struct{ Metadata struct{ Name string } }
		_ = json.Unmarshal(body, &made) // else without a name
		return effect + " " + made.Metadata.Name
	}
	return effect
}

// recorded says what a write of the record was for. The first of each life
// raises the epoch.
func (a *apiTap) recorded(body []byte) string {
	var patch v1alpha1.EtcdCluster
	var record v1alpha1.ClusterRecord
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.record
	if json.Unmarshal(body, &patch) != nil || json.Unmarshal([]byte(patch.Annotations[v1alpha1.AnnotationRecord]), &record) != nil {
		return "lock again" // with the record as it was
	}
	a.record = &record
	switch now := operation(&record); {
	case before == nil:
		return "take charge during " + now
	case now == operation(before):
		return "take charge again during " + now
	case record.Operation == nil:
		return "end " + operation(before)
	default:
		return "record " + now
	}
}

func operation(r *v1alpha1.ClusterRecord) string {
	if r.Operation == nil {
		return "no operation"
	}
	return fmt.Sprintf("%s of %s, member %q", r.Operation.Kind, r.Operation.Machine, r.Operation.MemberID)
}

// clusterStatus leaves messages out: they count and measure.
func clusterStatus(body []byte) string {
	var c v1alpha1.EtcdCluster
	_ = json.Unmarshal(body, &c) // else an empty one
	text := fmt.Sprintf("%s %s, %d endpoints", c.Status.Phase, c.Status.Ready, len(c.Status.Endpoints))
	for _, condition := range c.Status.Conditions {
		if condition.Type == "Healthy" || condition.Type == "Progressing" {
			text += fmt.Sprintf(", %s=%s %s", condition.Type, condition.Status, condition.Reason)
		}
	}
	return text
}

func machineStatus(body []byte) string {
	var m v1alpha1.EtcdMachine
	_ = json.Unmarshal(body, &m) // else an empty one
	return fmt.Sprintf("%s, asked for %t, enrolled %t, member %q", m.Status.Phase, m.Status.Requested != nil, m.Status.Enrolled != "", m.Status.MemberID)
}
