#!/bin/bash
# The Debian package, installed on a fresh Debian 12 that runs systemd: `systemctl start headrace` routes between two
# hosts, with the capabilities of the unit and no more. The system is a folder made by debootstrap, booted in namespaces of
# its own; HEADRACE_DEBIAN names a folder to keep it in between runs.
set -euo pipefail

skip() {
  echo "$*"
  exit 77
}
if [ "$(id -u)" -ne 0 ]; then skip "needs root: it boots a system in namespaces"; fi
if [ ! -x "$HEADRACE" ]; then skip "no binary at $HEADRACE"; fi
if grep -q '^HEADRACE_SANITIZE:STRING=.\+' "$HEADRACE_BUILD/CMakeCache.txt"; then
  skip "a binary with sanitizers is not for installing"
fi
for program in debootstrap dpkg-shlibdeps cpack; do
  command -v "$program" >/dev/null || skip "not installed: $program (tools/deps test)"
done
if ! grep -q '^VERSION_ID="12"' /etc/os-release; then skip "packages are made for Debian 12, and this is another system"; fi
if [ ! -c /dev/net/tun ]; then skip "no /dev/net/tun here"; fi

scratch=$(mktemp -d)
root=${HEADRACE_DEBIAN:-$scratch/debian}
init=
cleanup() {
  if [ -n "$init" ]; then kill -9 "$init" 2>/dev/null || true; fi
  wait 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT
fail() {
  echo "package.test.sh: $*" >&2
  if [ -n "$init" ]; then inside journalctl --no-pager -b -n 40 -u 'headrace*' >&2 || true; fi
  exit 1
}
quietly() { "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "failed: $*"; }; }

# The package.
cp "$HEADRACE_BUILD"/CPack*.cmake "$scratch/"
(cd "$HEADRACE_BUILD" && quietly cpack -B "$scratch/packages")
package=$(ls "$scratch"/packages/headrace_*.deb)
quietly systemd-analyze verify --man=no --recursive-errors=no "$HEADRACE_SOURCE/packaging/headrace.service"

# A fresh system.
if [ ! -e "$root/etc/debian_version" ]; then
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,iproute2,iputils-ping bookworm "$root" \
    >"$scratch/log" 2>&1 || skip "debootstrap cannot make a Debian 12 here: $(tail -1 "$scratch/log")"
fi
cp "$package" "$root/root/headrace.deb"
in_root() { chroot "$root" /usr/bin/env -i DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
quietly in_root apt-get install -y -q --no-install-recommends --allow-downgrades --reinstall /root/headrace.deb

# The configuration, and a second one that is wrong: it must not keep the first from running.
cp "$root/usr/share/headrace/conf/ipv4-router-2ports.click" "$root/etc/headrace/site.click"
echo 'HEADRACE_OPTIONS=DEV0=port0 DEV1=port1 --workers 1' >"$root/etc/default/headrace-site"
echo 'Idle -> Stripp(14) -> Discard;' >"$root/etc/headrace/wrong.click"

cat >"$scratch/boot" <<'BOOT'
set -e
cd "$1"
mount --make-rprivate /
mount --bind . .
cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
for folder in run tmp dev; do mount -t tmpfs tmpfs $folder; done
mkdir dev/net dev/pts dev/shm
for node in null zero full random urandom tty net/tun; do
  : >dev/$node
  mount --bind /dev/$node dev/$node
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
else
  mount -t tmpfs tmpfs sys/fs/cgroup
  mkdir sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd,xattr cgroup sys/fs/cgroup/systemd
fi
exec chroot . /usr/bin/env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system
BOOT
unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child bash "$scratch/boot" "$root" >"$scratch/boot.log" 2>&1 &
unshare=$!
for _ in $(seq 100); do
  init=$(pgrep -P $unshare | head -1) || true
  if [ -n "$init" ] && grep -q systemd "/proc/$init/cmdline" 2>/dev/null; then break; fi
  kill -0 $unshare 2>/dev/null || { init=; cat "$scratch/boot.log"; skip "no system can be booted in namespaces here"; }
  sleep 0.1
done
inside() {
  nsenter -t "$init" -m -p -n -u -i -C chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
for _ in $(seq 100); do
  state=$(inside systemctl is-system-running 2>/dev/null || true)
  case $state in running | degraded) break ;; esac
  sleep 0.2
done
case $state in
  running | degraded) ;;
  *) cat "$scratch/boot.log"; skip "systemd does not come up in namespaces here ('$state')" ;;
esac

# Two hosts, and the router's ports between them.
for host in left right; do
  inside ip netns add $host
done
inside ip link add port0 type veth peer name eth0 netns left
inside ip link add port1 type veth peer name eth0 netns right
for port in 0 1; do
  host=$([ $port = 0 ] && echo left || echo right)
  inside ip link set port$port up
  inside ip -n $host address add 10.0.$port.2/24 dev eth0
  inside ip -n $host link set eth0 up
  inside ip -n $host route add default via 10.0.$port.1
done

inside systemctl daemon-reload
inside systemctl start headrace
pings() { inside ip netns exec left ping -c 1 -W 1 -q 10.0.1.2 >/dev/null 2>&1; }
for _ in $(seq 20); do
  if pings; then break; fi
  sleep 0.5
done
pings || fail "no ping crosses the router"

inside systemctl is-active --quiet headrace@site.service || fail "headrace@site.service is not active"
inside systemctl is-failed --quiet headrace@wrong.service || fail "a wrong configuration is not reported as failed"
inside journalctl --no-pager -u headrace@wrong >"$scratch/wrong.log"
grep -q "'Stripp' (did you mean 'Strip'?)" "$scratch/wrong.log" || { cat "$scratch/wrong.log"; fail "the journal does not say what is wrong"; }

pid=$(inside systemctl show -p MainPID --value headrace@site.service)
status=$(inside cat "/proc/$pid/status")
# CAP_NET_ADMIN 12, CAP_NET_RAW 13, CAP_BPF 39.
grep -q '^CapEff:[[:space:]]*0000008000003000$' <<<"$status" || { echo "$status"; fail "the router has other capabilities than the unit gives"; }
grep -q '^CapBnd:[[:space:]]*0000008000003000$' <<<"$status" || { echo "$status"; fail "the router may get other capabilities"; }
if grep -q '^Uid:[[:space:]]*0' <<<"$status"; then fail "the router runs as root"; fi
inside test -S /run/headrace/site/control.sock || fail "no control socket"

# Another configuration without another process.
inside systemctl reload headrace@site.service
sleep 1
pings || fail "no ping after a reload"
[ "$(inside systemctl show -p MainPID --value headrace@site.service)" = "$pid" ] || fail "a reload started another process"

inside systemctl stop headrace
# Not is-active: that says no already while the router ends, and forwards.
state=
for _ in $(seq 40); do
  state=$(inside systemctl show -p ActiveState --value headrace@site.service)
  if [ "$state" = inactive ]; then break; fi
  sleep 0.25
done
[ "$state" = inactive ] || fail "it is $state after systemctl stop headrace"
if pings; then fail "packets cross a router that was stopped"; fi

quietly inside apt-get purge -y -q headrace
[ ! -e "$root/usr/bin/headrace" ] || fail "the binary is there after a purge"
