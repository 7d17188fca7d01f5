package rig

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"testing"
)

// FreeLoopback is an address on loopback where nobody listens at the ports of
// a machine. The process takes part in the choice, so that packages whose
// tests run at the same time do not meet.
func FreeLoopback(t testing.TB) string {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), rand.Uint64()))
	for range 100 {
		address := fmt.Sprintf("127.%d.%d.%d", 1+random.IntN(254), random.IntN(256), 1+random.IntN(254))
		if free(address, 2378, 2379, 2380) {
			return address
		}
	}
	t.Fatal("found no free loopback address in 100 attempts")
	return ""
}

func free(address string, ports ...int) bool {
	for _, port := range ports {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
		if err != nil {
			return false
		}
		if listener.Close() != nil {
			return false
		}
	}
	return true
}
