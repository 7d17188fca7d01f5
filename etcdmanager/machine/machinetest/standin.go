package machinetest

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// StandIn turns the test binary into an agent when it is started as one, with
// the arguments agent --dir D --address A --bootstrap F. It is called first in
// TestMain and returns if the binary is there to test.
//
// The stand-in does what drivers can see of an agent, in milliseconds: it
// listens on port 2378 of its address, notes every start on its disk, and
// starts, or adopts, an etcd that outlives it.
func StandIn() {
	if len(os.Args) < 2 || (os.Args[1] != "agent" && os.Args[1] != "etcd") {
		return
	}
	if err := standIn(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// EtcdPIDFile, in the agent's directory, is where the stand-in writes its
// etcd's PID.
const EtcdPIDFile = "etcd.pid"

// startsFile, in the agent's directory, has a line for every start.
const startsFile = "starts"

func standIn(role string, arguments []string) error {
	flags := flag.NewFlagSet(role, flag.ContinueOnError)
	dir := flags.String("dir", "", "")
	data := flags.String("data-dir", "", "")
	address := flags.String("address", "", "")
	bootstrap := flags.String("bootstrap", "", "")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	port := 2378
	if role == "etcd" {
		port = 2379
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(*address, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the process ends
	if role == "etcd" {
		err = os.MkdirAll(*data, 0o700)
	} else {
		err = startAgent(*dir, *address, *bootstrap)
	}
	if err != nil {
		return err
	}
	for { // until SIGTERM
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
}

func startAgent(dir, address, bootstrap string) error {
	if content, err := os.ReadFile(bootstrap); err != nil || len(content) == 0 {
		return fmt.Errorf("no bootstrap data in %s: %v", bootstrap, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := startEtcd(dir, address); err != nil {
		return err
	}
	starts, err := os.OpenFile(filepath.Join(dir, startsFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(starts, os.Getpid()); err != nil {
		return err
	}
	return starts.Close()
}

func startEtcd(dir, address string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "2379"))
	if err != nil {
		return nil // it runs
	}
	if err := listener.Close(); err != nil {
		return err
	}
	etcd, err := os.StartProcess(os.Args[0],
		[]string{os.Args[0], "etcd", "--data-dir=" + filepath.Join(dir, "data"), "--address=" + address},
		&os.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}, Env: os.Environ()})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, EtcdPIDFile), []byte(strconv.Itoa(etcd.Pid)), 0o600)
}
