#!/usr/bin/env python3
"""An actuator for etcdmanager that makes machines out of local processes.

It is an example of the exec protocol (docs/actuators.md): started once per
call with the verb as its argument, one JSON document on standard input, one
on standard output. Python's standard library, 3.9 or newer, on Linux.

    ETCDMANAGER_BINARY    the etcdmanager binary, which is also the agent
    ETCDMANAGER_MACHINES  a directory for the machines, made by `actuator.py init`

Everything is found again by the machine's UID, in the directory and in /proc;
nothing is remembered between calls.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

API_VERSION = "actuator.etcdmanager.io/v1alpha1"
MARKER = ".actuator-python"
GRACE = 10  # seconds between SIGTERM and SIGKILL


class Failure(Exception):
    """An answer with an error. The code says whether to ask again."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def machines():
    """Return the directory of machines, if it is certainly the one.

    An unmounted disk leaves an empty directory behind. Without the marker we
    cannot tell which machines there are, and must not say that there are none.
    """
    place = pathlib.Path(os.path.realpath(setting("ETCDMANAGER_MACHINES")))
    if not (place / MARKER).is_file():
        raise Failure("Retry", f"{place} has no {MARKER}: not mounted, or never made with init")
    return place


def setting(name):
    value = os.environ.get(name)
    if not value:
        raise Failure("Retry", f"{name} is not set")
    return value


# The verbs. Each may be repeated, be run twice at once, and be interrupted.


def create(machine, bootstrap):
    place = machines()
    home = place / machine["uid"]
    if machine.get("config"):
        raise Failure("Invalid", "this actuator takes no config")
    with locked(place):
        if not home.exists():
            if deleted(home).exists():
                raise Failure("Retry", "the machine is being deleted")
            if processes_of(home):
                raise Failure("Retry", "its directory is gone, its processes run: delete it first")
            if not bootstrap:
                raise Failure("Invalid", "no bootstrap data")
            lay(home, machine, bootstrap)
    with locked(home):
        if agent_of(home) is None:
            start(home, bootstrap)
    return {}


def observe(machine):
    place = machines()
    home = place / machine["uid"]
    instance = {"providerID": "python://" + machine["uid"], "state": "Stopped"}
    if home.exists():
        instance["addresses"] = [read(home)["address"]]
        if agent_of(home) is not None:
            instance["state"] = "Running"
        else:
            instance["message"] = f"the agent does not run, see {home / 'agent.log'}"
    elif deleted(home).exists() or fresh(home).exists():
        instance["message"] = "half made or half removed"
    elif processes_of(home):
        instance.update(state="Running", message="its directory is gone, its processes run")
    else:
        machines()  # still there after we looked
        raise Failure("NotFound", "no such machine")
    return {"instance": instance}


def update(machine):
    home = machines() / machine["uid"]
    if not home.exists():
        observe(machine)
        raise Failure("Retry", "the machine is half made or half removed")
    with locked(home):
        write(home / "machine.json", dict(read(home), tags=machine.get("tags", {})))
    return {}


def delete(machine):
    home = machines() / machine["uid"]
    stop(home)
    if home.exists():
        with contextlib.suppress(FileNotFoundError), locked(home):
            stop(home)  # what was started before we had the lock
            remove(deleted(home))
            home.rename(deleted(home))
    remove(deleted(home))
    remove(fresh(home))
    return {}


# Directories: whole or not there. The lock of one is on the directory itself.


def fresh(home):
    return home.with_name(".new-" + home.name)


def deleted(home):
    return home.with_name(".deleted-" + home.name)


@contextlib.contextmanager
def locked(directory):
    """Keep other calls out, and make sure that the directory is still the same."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not os.path.samestat(os.fstat(handle), os.stat(directory)):
            raise Failure("Retry", f"{directory} was replaced meanwhile")
        yield
    finally:
        os.close(handle)


def lay(home, machine, bootstrap):
    remove(fresh(home))
    fresh(home).mkdir(mode=0o700)
    record = {k: machine.get(k) for k in ("uid", "name", "namespace", "cluster", "clusterUID", "tags")}
    record["address"] = choose_address(home)
    write(fresh(home) / "machine.json", record)
    write(fresh(home) / "bootstrap.json", bootstrap)
    fresh(home).rename(home)
    sync(home.parent)


def read(home):
    return json.loads((home / "machine.json").read_text())


def write(path, content):
    """Replace a file so that the old or the new is there, and private."""
    temporary = path.with_name(path.name + ".tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "w") as file:
        file.write(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    sync(path.parent)


def sync(directory):
    handle = os.open(directory, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def remove(directory):
    while directory.exists():  # another call may remove it at the same time
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(directory)


# Addresses: one of 127.0.0.0/8 for each machine, for life.


def choose_address(home):
    taken = {read(other)["address"] for other in home.parent.iterdir() if (other / "machine.json").exists()}
    spread = random.Random(hashlib.sha256(str(home).encode()).digest())
    for _ in range(64):
        address = f"127.{spread.randint(2, 254)}.{spread.randint(0, 255)}.{spread.randint(1, 254)}"
        if address not in taken and all(free(address, port) for port in (2378, 2379, 2380)):
            return address
    raise Failure("Retry", "no free loopback address: does something listen on all addresses?")


def free(address, port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen()
        except OSError:
            return False
    return True


# Processes: a PID means nothing without the start time of its process.


def start(home, bootstrap):
    address = read(home)["address"]
    if not free(address, 2378):
        raise Failure("Retry", f"{address}:2378 is in use by another process")
    if bootstrap and (home / "bootstrap.json").exists():  # the agent removes it once enrolled
        write(home / "bootstrap.json", bootstrap)
    handle = os.open(home / "agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(handle, "ab") as log:
        # A session and files of its own: the agent outlives this call, and the
        # controller does not wait for its output to end.
        agent = subprocess.Popen(
            [setting("ETCDMANAGER_BINARY"), "agent", "--dir", str(home / "agent"),
             "--address", address, "--bootstrap", str(home / "bootstrap.json")],
            cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    agent.returncode = 0  # not waited for
    write(home / "agent.pid", {"pid": agent.pid, "start": started(agent.pid), "boot": boot()})


def agent_of(home):
    """Return the PID of the machine's agent, or None."""
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
        noted = json.loads((home / "agent.pid").read_text())
        if noted["boot"] == boot() and noted["start"] and noted["start"] == started(noted["pid"]):
            return noted["pid"]
    for pid, _, arguments in processes_of(home):  # a crash came before the note
        if "agent" in arguments:
            return pid
    return None


def boot():
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def started(pid):
    """Return a running process' start time, or None when it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    ended = fields[0] in "ZX" and int(fields[17]) <= 1
    return None if ended else int(fields[19])


def processes_of(home):
    """Find what runs from the machine's directory or keeps its data in it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        since = started(int(entry.name))
        try:
            arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        try:
            program = os.readlink(entry / "exe")
        except OSError:
            program = ""
        data = re.findall(r"\0--?(?:data-)?dir[=\0]([^\0]*)", "\0".join(arguments))
        if since and any(path.startswith(f"{home}/") for path in [program, arguments[0], *data]):
            found.append((int(entry.name), since, arguments))
    return found


def stop(home):
    """End the machine's processes, its agent first: it would start etcd again."""
    while True:
        left = processes_of(home)
        agents = [found for found in left if "agent" in found[2]]
        if not left:
            return
        end(agents or left)


def end(found):
    running = [(pid, since) for pid, since, _ in found]
    kill_at = time.monotonic() + GRACE
    for pid, since in running:
        send(pid, since, signal.SIGTERM)
    while running:
        if time.monotonic() > kill_at:
            for pid, since in running:
                send(pid, since, signal.SIGKILL)
        time.sleep(0.02)
        running = [(pid, since) for pid, since in running if started(pid) == since]


def send(pid, since, number):
    """Signal this process and no other that has its PID by now."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if started(pid) == since:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


# The protocol.


def init():
    """Make the directory of machines. It is run once, by hand."""
    place = pathlib.Path(setting("ETCDMANAGER_MACHINES"))
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    (place / MARKER).touch(mode=0o600)


def answer(verb):
    request = json.load(sys.stdin)
    if request.get("apiVersion") != API_VERSION:
        raise Failure("Invalid", f"want apiVersion {API_VERSION}")
    machine = request["machine"]
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", machine["uid"]):
        raise Failure("Invalid", "the UID is not letters, digits, - and _")
    if verb == "create":
        return create(machine, request.get("bootstrap", ""))
    return {"observe": observe, "update": update, "delete": delete}[verb](machine)


def main():
    verb = sys.argv[1] if len(sys.argv) == 2 else ""
    if verb not in ("init", "create", "observe", "update", "delete"):
        sys.exit("usage: actuator.py init|create|observe|update|delete")
    try:
        if verb == "init":
            return init()
        result = answer(verb)
    except Failure as failure:
        result = {"error": {"code": failure.code, "message": str(failure)}}
    except (OSError, ValueError, KeyError) as wrong:
        # We could not tell: never NotFound.
        result = {"error": {"code": "Retry", "message": f"{type(wrong).__name__}: {wrong}"}}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
