package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// networkEnv says that the process has a network of its own.
const networkEnv = "CHAOS_NETWORK"

// partitions says whether traffic can be cut: in a network of its own alone,
// since rules are for a whole one.
func partitions() bool { return os.Getenv(networkEnv) != "" }

// inNetwork runs the tests again in a network of their own and answers their
// status; false where that can't be had, which needs root and iproute2.
func inNetwork() (status int, done bool) {
	if partitions() || os.Geteuid() != 0 {
		return 0, false
	}
	// The child is tied to the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	probe := exec.Command("ip", "rule", "add", "prio", "5", "to", "127.2.2.2", "ipproto", "tcp", "dport", "2380", "blackhole")
	probe.SysProcAttr = own
	if probe.Run() != nil {
		return 0, false
	}
	// What the program needs and is not there yet can't be fetched from inside.
	build := exec.Command("go", "build", "-o", os.DevNull, "../../cmd/etcdmanager")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build etcdmanager: %v\n%s", err, out)
		return 1, true
	}
	again := exec.Command(os.Args[0], os.Args[1:]...)
	again.Env = append(os.Environ(), networkEnv+"=1")
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.SysProcAttr = own
	err := again.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		fmt.Fprintln(os.Stderr, "run in a network of its own:", err)
		return 1, true
	}
	if err != nil {
		return max(again.ProcessState.ExitCode(), 1), true
	}
	return 0, true
}

// setUpNetwork turns loopback on, and puts its routes behind rules to come.
func setUpNetwork() error {
	for _, args := range []string{"link set lo up", "rule add prio 10 table local", "rule del prio 0 table local"} {
		if err := ip(context.Background(), strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

func ip(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

const (
	peerPort = "2380"
	allPorts = "2378-2380"
)

// cutTo drops what is sent to ports of members for a while. What these send
// themselves arrives.
func cutTo(ports string) action { return cut("to", "dport", ports) }

// cutFrom drops what is sent from ports of members for a while: they hear, and
// are not heard.
func cutFrom(ports string) action { return cut("from", "sport", ports) }

func cut(end, portEnd, ports string) action {
	return func(ctx context.Context, _ *hurt, f fault, members []member) error {
		var rules [][]string
		for _, m := range members {
			rules = append(rules, []string{"prio", "5", end, m.object.Status.Address, "ipproto", "tcp", portEnd, ports, "blackhole"})
		}
		var all error
		for _, rule := range rules {
			all = errors.Join(all, ip(ctx, append([]string{"rule", "add"}, rule...)...))
		}
		all = errors.Join(all, pause(ctx, f.lasts))
		for _, rule := range rules {
			all = errors.Join(all, ip(context.WithoutCancel(ctx), append([]string{"rule", "del"}, rule...)...))
		}
		return all
	}
}
