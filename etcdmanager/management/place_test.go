package management

import (
	"net"
	"path/filepath"
	"testing"
)

func TestPlaceIsKeptWhileItIsFree(t *testing.T) {
	file := filepath.Join(t.TempDir(), "place")
	first, err := takePlace(file, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if !first.Address.IsLoopback() || first.Ports["a"] == first.Ports["b"] {
		t.Fatalf("took %+v, want two ports on loopback", first)
	}
	again, err := takePlace(file, "a", "b")
	if err != nil || again.url("a") != first.url("a") || again.url("b") != first.url("b") {
		t.Fatalf("took %+v the second time (%v), want %+v", again, err, first)
	}

	listener, err := net.Listen("tcp", first.hostPort("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	moved, err := takePlace(file, "a", "b")
	if err != nil || moved.Ports["a"] == first.Ports["a"] || moved.Ports["b"] != first.Ports["b"] || moved.Address != first.Address {
		t.Fatalf("took %+v with port a taken (%v), want another a alone than %+v", moved, err, first)
	}
}
