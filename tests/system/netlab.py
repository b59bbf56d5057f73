"""Networks to test a router in: network namespaces that stand for hosts, and veth pairs that stand for cables.

    with netlab.Lab() as lab:
        left, router = lab.host("left"), lab.host("router")
        lab.cable(left, "eth0", router, "left")
        left.address("eth0", "10.0.0.2/24")
        left.run("ping", "-c1", "10.0.0.1")

Namespaces are called hr-PID-NAME. All of them, and the processes started in them, are gone when the lab is closed, also
after a failure. Everything happens inside: nothing reaches the machine's own network.
"""

import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

ETH_P_ALL = 3
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_AUXDATA = 263, 8
CLONE_NEWNET = 0x40000000
OFFLOADS = ["tx", "tso", "gso", "gro"]
_libc = ctypes.CDLL(None, use_errno=True)


def need(*programs):
    """Skips the test unless it runs as root, may make namespaces, and has these programs."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes network namespaces")
    missing = [program for program in ("ip", "ethtool", *programs) if not shutil.which(program)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (tools/deps test)")
    name = f"hr-{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no network namespaces here: {made.stderr.strip()}")
    subprocess.run(["ip", "netns", "del", name], check=True)


def call(*command, check=True, timeout=60, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **options)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def memory_kib(pid):
    """The memory of a process: what is resident of ordinary mappings, and the whole size of those that ask for huge pages.
    The packet pool and large tables are such mappings. How many of their pages have been touched says nothing: buffers are
    used in turn, so a faster machine has touched more of them."""
    total = size = resident = 0
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == "Size":
            size = int(value.split()[0])
        elif key == "Rss":
            resident = int(value.split()[0])
        elif key == "VmFlags":
            total += size if {"hg", "ht"} & set(value.split()) else resident
    return total


class Lab:
    def __init__(self):
        self.hosts = []
        self._processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def host(self, name):
        host = Host(self, name)
        self.hosts.append(host)
        return host

    def cable(self, host_a, name_a, host_b, name_b, mtu=1500):
        """A veth pair with one end in each host, both up, without offloads."""
        call("ip", "-n", host_a.netns, "link", "add", name_a, "mtu", mtu, "type", "veth",
             "peer", "name", name_b, "netns", host_b.netns, "mtu", mtu)
        for host, name in (host_a, name_a), (host_b, name_b):
            host.run("ethtool", "-K", name, *[word for offload in OFFLOADS for word in (offload, "off")])
            host.ip("link", "set", name, "up")

    def close(self):
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
        self._processes.clear()
        for host in self.hosts:
            host.remove()
        self.hosts.clear()


class Host:
    """A network namespace with the loopback interface up and IPv6 off."""

    def __init__(self, lab, name):
        self.lab, self.name = lab, name
        self.netns = f"hr-{os.getpid()}-{name}"
        call("ip", "netns", "add", self.netns)
        self.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
        self.sysctl("net.ipv6.conf.default.disable_ipv6", 1)
        self.sysctl("net.ipv4.conf.all.rp_filter", 0)
        self.sysctl("net.ipv4.conf.default.rp_filter", 0)
        self.ip("link", "set", "lo", "up")

    def remove(self):
        # Whoever is still in there would keep the namespace.
        for pid in call("ip", "netns", "pids", self.netns, check=False).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        call("ip", "netns", "del", self.netns, check=False)

    @contextlib.contextmanager
    def inside(self):
        """This thread is in the namespace: sockets that are opened stay there."""
        with open("/proc/thread-self/ns/net") as here, open(f"/run/netns/{self.netns}") as there:
            _enter(there)
            try:
                yield
            finally:
                _enter(here)

    def ip(self, *arguments):
        return call("ip", "-n", self.netns, *arguments).stdout

    def run(self, *command, **options):
        return call("ip", "netns", "exec", self.netns, *command, **options)

    def ping(self, address, count, *arguments, interval=0.05, seconds=30):
        """Each of `count` requests is answered, however late: `ping` itself waits for two round trips only, which its last answer
        may exceed on a machine that has other work. With a time limit it waits, but sends more meanwhile, of which it may show
        answers."""
        done = self.run("ping", f"-c{count}", f"-i{interval}", f"-w{seconds}", *arguments, address, check=False,
                        timeout=seconds + 30)
        assert re.findall(r"icmp_seq=(\d+) ttl", done.stdout)[:count] == [str(n + 1) for n in range(count)], done.stdout

    def listens(self, port, process):
        """Waits until `process` takes connections at a TCP port of this host."""
        while not self.run("ss", "-Htln", f"sport = :{port}").stdout:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)

    def start(self, *command, **options):
        """A process that ends with the lab; text streams."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        process = subprocess.Popen(["ip", "netns", "exec", self.netns, *map(str, command)], **options)
        self.lab._processes.append(process)
        return process

    def sysctl(self, name, value):
        with self.inside():
            pathlib.Path("/proc/sys", *name.split(".")).write_text(f"{value}\n")

    def address(self, interface, address):
        self.ip("addr", "add", address, "dev", interface)

    def mac(self, interface):
        return self.ip("-o", "link", "show", interface).split("link/ether ")[1].split()[0]

    def port(self, interface):
        return Port(self, interface)


def _enter(namespace):
    if _libc.setns(namespace.fileno(), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class Port:
    """Sends frames by an interface as they are, and receives what comes from the other end."""

    def __init__(self, host, interface):
        with host.inside():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.bind((interface, ETH_P_ALL))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def fileno(self):
        return self._socket.fileno()

    def send(self, frame):
        self._socket.send(bytes(frame))

    def receive(self, timeout):
        """The next frame that came from the other end, or None."""
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                frame, address = self._socket.recvfrom(65536)
            except TimeoutError:
                return None
            if address[2] != PACKET_OUTGOING:
                return frame
        return None

    def drain(self):
        while self.receive(0.01) is not None:
            pass


class MessageBatch:
    """Frames that sendmmsg() takes to the kernel in one call. The frames lie in one buffer that may be changed between
    two calls: frame i begins at i * stride."""

    class _Message(ctypes.Structure):
        _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32), ("iov", ctypes.c_void_p),
                    ("iov_count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
                    ("flags", ctypes.c_int), ("sent", ctypes.c_uint32)]

    class _Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    def __init__(self, count, stride):
        self.count, self.stride = count, stride
        self.buffer = bytearray(count * stride)
        self._base = (ctypes.c_char * len(self.buffer)).from_buffer(self.buffer)
        self._vectors = (self._Vector * count)()
        self._messages = (self._Message * count)()
        for i in range(count):
            self._vectors[i].base = ctypes.addressof(self._base) + i * stride
            self._messages[i].iov = ctypes.addressof(self._vectors[i])
            self._messages[i].iov_count = 1

    def set_length(self, i, length):
        self._vectors[i].length = length

    def send(self, port):
        """How many frames the interface took. One that the kernel refuses is left out."""
        at = taken = 0
        while at < self.count:
            sent = _libc.sendmmsg(port.fileno(), ctypes.byref(self._messages, at * ctypes.sizeof(self._Message)),
                                  self.count - at, 0)
            if sent > 0:
                taken += sent
                at += sent
            else:
                at += 1
        return taken


def checksum(data):
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data = bytes(data) + b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
