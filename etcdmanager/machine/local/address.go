package local

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"

	"github.com/etcdmanager/etcdmanager/bootstrap"
)

// addressTries is how many addresses are looked at before giving up. When that
// many are busy, the reason is another: a process on all addresses.
const addressTries = 64

// candidates yields loopback addresses without end, the same ones for the same
// machine in the same directory. It leaves out 127.0 and 127.1, where resolvers
// and people's own servers live.
func candidates(dir, uid string) func() string {
	seed := sha256.Sum256([]byte(dir + "\x00" + uid))
	random := rand.New(rand.NewPCG( //nolint:gosec // spreads addresses, hides nothing
		binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:16])))
	return func() string {
		return fmt.Sprintf("127.%d.%d.%d", 2+random.IntN(253), random.IntN(256), 1+random.IntN(254))
	}
}

// chooseAddress returns one that no machine of the store has, running or not,
// and that nobody on the host listens on.
func (a *Actuator) chooseAddress(ctx context.Context, s *store, uid string) (string, error) {
	uids, err := s.uids()
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, other := range uids {
		made, err := s.exists(filepath.Join(other, recordFile))
		if err != nil {
			return "", fmt.Errorf("choose an address: %w", err)
		}
		if !made {
			continue // half made or half removed: it has no address
		}
		r, err := s.readRecord(other)
		if err != nil {
			return "", fmt.Errorf("choose an address: %w", err)
		}
		taken[r.Address] = true
	}
	next := candidates(a.machines, uid)
	var busy error
	for range addressTries {
		address := next()
		if taken[address] {
			continue
		}
		if busy = free(ctx, address, bootstrap.PortAgent, bootstrap.PortClient, bootstrap.PortPeer); busy == nil {
			return address, nil
		}
	}
	return "", fmt.Errorf("choose an address: %d loopback addresses are in use: %w", addressTries, busy)
}

// free returns nil if the ports of an address can be listened on.
func free(ctx context.Context, address string, ports ...int) error {
	var all error
	for _, port := range ports {
		var config net.ListenConfig
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		all = errors.Join(all, l.Close())
	}
	return all
}
