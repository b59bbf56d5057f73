"""Runs tests on a Linux kernel that can do what the machine's own cannot: User Mode Linux, a kernel that is a process
(Debian's package user-mode-linux). Its root is the machine's file system; /run and /tmp are its own.

    def test_with_esp(request):
        if uml.test_runs_there(request, modules=["esp4"]):
            return
        ...
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest

MODULES = pathlib.Path("/usr/lib/uml/modules")
TIMEOUT_S = 280
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mkdir -p /run/netns /run/modules/lib /run/test
ln -s {modules} /run/modules/lib/modules
printf '#!/bin/sh\\nexec modprobe -d /run/modules "$@"\\n' >/run/modprobe
chmod +x /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
for module in {wanted}; do /run/modprobe $module || echo "no module $module"; done
ip link set lo up
cd {folder}
HEADRACE_IN_UML=1 {environment} {python} -m pytest -q --color no -p no:cacheprovider -p no:xdist --basetemp=/run/test/pytest {test}
echo "pytest ended: $?"
exec {python} -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""


def inside():
    return "HEADRACE_IN_UML" in os.environ


def test_runs_there(request, modules):
    """True if the test ran, without failure, in a kernel with these modules. False if this is that kernel. Skips the test
    without one."""
    if inside():
        return False
    missing = [program for program in ("linux.uml", "modprobe") if not shutil.which(program)]
    if missing or not MODULES.is_dir():
        pytest.skip(f"not installed: {', '.join(missing)} (the packages user-mode-linux and kmod)")
    folder = request.getfixturevalue("tmp_path")
    environment = {name: value for name, value in os.environ.items() if name.startswith("HEADRACE")}
    init = folder / "init"
    init.write_text(INIT.format(
        modules=MODULES, wanted=" ".join(modules), folder=pathlib.Path(__file__).parent, python=sys.executable,
        environment=" ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items()),
        test=shlex.quote(f"{request.node.fspath}::{request.node.name}")))
    init.chmod(0o755)
    done = subprocess.run(["linux.uml", "rootfstype=hostfs", "rootflags=/", "rw", "mem=1536M", f"init={init}", "con=null",
                           "con0=null,fd:1", "quiet", f"umid=hr-{os.getpid()}", f"uml_dir={folder}/"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=TIMEOUT_S, check=False)
    if " skipped in " in done.stdout and " passed" not in done.stdout:
        pytest.skip("in User Mode Linux: " + "".join(
            line for line in done.stdout.splitlines() if line.startswith("SKIPPED"))[-300:])
    assert "pytest ended: 0" in done.stdout, done.stdout[-20000:]
    return True
