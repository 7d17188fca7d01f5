package machinetest

import (
	"context"
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

// Files in the agent's directory: the PID of its etcd, and a line for every
// start of the agent.
const (
	etcdPIDFile = "etcd.pid"
	startsFile  = "starts"
)

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
		if err := os.MkdirAll(*data, 0o700); err != nil {
			return err
		}
	}
	listener, err := listen(*address, port)
	if err != nil {
		return err
	}
	defer listener.Close()
	if role == "agent" {
		if err := startAgent(*dir, *address, *bootstrap); err != nil {
			return err
		}
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

func listen(address string, port int) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(context.Background(), "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
}

func startAgent(dir, address, bootstrap string) error {
	if content, err := os.ReadFile(bootstrap); err != nil {
		return err
	} else if len(content) == 0 {
		return fmt.Errorf("no bootstrap data in %s", bootstrap)
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
	listener, err := listen(address, 2379)
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
	return os.WriteFile(filepath.Join(dir, etcdPIDFile), []byte(strconv.Itoa(etcd.Pid)), 0o600)
}
