package management

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
)

// place is where a process listens: an address of its own on loopback, and a
// port for each purpose. It is kept, so that a kubeconfig stays good.
type place struct {
	Address netip.Addr     `json:"address"`
	Ports   map[string]int `json:"ports"`
}

// takePlace reads the place in a file or picks one, and replaces ports that
// something else listens on by now. Nothing holds the ports until the process
// listens; on an address picked from millions that is safe enough, and a
// process that finds its port taken is started again.
func takePlace(file string, purposes ...string) (place, error) {
	p, err := readPlace(file)
	if err != nil {
		return place{}, err
	}
	changed := false
	for _, purpose := range purposes {
		port, free := freePort(p.Address, p.Ports[purpose])
		if !free {
			if port, free = freePort(p.Address, 0); !free {
				return place{}, fmt.Errorf("no port is free on %s", p.Address)
			}
		}
		changed = changed || port != p.Ports[purpose]
		p.Ports[purpose] = port
	}
	if !changed {
		return p, nil
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return place{}, fmt.Errorf("write %s: %w", file, err)
	}
	return p, writePrivate(file, raw)
}

func readPlace(file string) (place, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return place{Address: randomLoopback(), Ports: map[string]int{}}, nil
	}
	if err != nil {
		return place{}, fmt.Errorf("read where to listen: %w", err)
	}
	var p place
	if err := json.Unmarshal(raw, &p); err != nil || !p.Address.IsLoopback() || p.Ports == nil {
		return place{}, fmt.Errorf("read where to listen: %s is not what was written there", file)
	}
	return p, nil
}

// randomLoopback stays clear of 127.0.0.0/16, where everybody else listens.
func randomLoopback() netip.Addr {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return netip.AddrFrom4([4]byte{127, b[0]%254 + 1, b[1], b[2]%254 + 1})
}

// freePort says whether a port can be listened on; port 0 means any.
func freePort(address netip.Addr, port int) (int, bool) {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(address, uint16(port)).String())
	if err != nil {
		return 0, false
	}
	defer listener.Close()
	bound, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, false
	}
	return bound.Port, true
}

// url of one of its ports.
func (p place) url(purpose string) string { return "https://" + p.hostPort(purpose) }

func (p place) hostPort(purpose string) string {
	return net.JoinHostPort(p.Address.String(), strconv.Itoa(p.Ports[purpose]))
}

// ips are for certificates.
func (p place) ips() []net.IP { return []net.IP{net.IP(p.Address.AsSlice())} }
