// Package admission tests what the API server itself says to our kinds: on a
// real kube-apiserver with our CRDs, and no controller.
package admission

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/etcdmanager/etcdmanager/api/v1alpha1"
	"github.com/etcdmanager/etcdmanager/test/rig"
)

// logged is what controllers and the client library log.
var logged lockedBuffer

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(&logged, nil)))
	os.Exit(rig.Main(m))
}

// lockedBuffer is written by loggers and read by tests.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// strict is a client as kubectl is: unknown fields are mistakes.
func strict(t *testing.T) (client.Client, string) {
	t.Helper()
	api := rig.Management(t)
	return client.WithFieldValidation(api.Client, metav1.FieldValidationStrict), rig.Namespace(t, api.Client)
}

// manifest is an EtcdCluster that is good but for the given lines of its spec.
func manifest(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	if !strings.Contains(spec, "version:") {
		spec = "version: 3.7.3\n" + spec
	}
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       "EtcdCluster",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"spec":       object,
	}}
}

// unchecked is what the server adds to a wrong type or a missing field: that it
// stopped there. It belongs to the message before it.
const unchecked = "some validation rules were not checked because the object was invalid"

// said is everything that the server said against a request, each message
// with its field.
func said(t *testing.T, err error) []string {
	t.Helper()
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("got %v, want a refusal by the API server", err)
	}
	if status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		return []string{status.ErrStatus.Message}
	}
	var messages []string
	for _, cause := range status.ErrStatus.Details.Causes {
		if strings.Contains(cause.Message, unchecked) {
			continue
		}
		messages = append(messages, fmt.Sprintf("%s: %s", cause.Field, cause.Message))
	}
	return messages
}

// expectOne fails unless the server said one thing, that ends with want.
func expectOne(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatal("the server accepted it")
	}
	got := said(t, err)
	if len(got) != 1 || !strings.HasSuffix(got[0], want) {
		t.Fatalf("the server said\n  %s\nwant one message that ends with\n  %s", strings.Join(got, "\n  "), want)
	}
}
