#!/bin/bash
# Process 1 of the VM from which the snapshot is taken. It runs from the image alone, because QEMU
# makes no snapshot while a folder of the machine is mounted. After the restore it runs the command
# (guest.sh), when warm_python.py has made the machine's files the root file system.
. /settings.sh # exports PROJECT, PYTHON, POX, MODULES, PROGRAMS and the environment
say() {
    read -r uptime _ </proc/uptime
    echo "$uptime $*" >/dev/console
}

. "$PROJECT/vm/code_patching.sh"
. "$PROJECT/vm/open_vswitch.sh"
mount -t tmpfs run /run
mkdir -p /dev/pts /dev/shm
ln -s /proc/self/fd /dev/fd # nothing else makes these; bash and students use them
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs -o mode=1777,nosuid,nodev shm /dev/shm
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
start_second_processor
ip link set lo up
modprobe -a $MODULES
modprobe ifb numifbs=0
patch_code_now
modprobe mac80211_hwsim radios=0
say "modules are loaded"

mkdir -p /run/warm/requests
mkfifo /run/warm/restored
start_switches /switches.db

cd "$PROJECT" || exit 1
"$PYTHON" "$PROJECT/vm/warm_python.py" serve "$POX" "$(printf %4096s)" </dev/null >/run/warm/log.txt 2>&1 &
until [ -e /run/warm/ready ]; do
    [ -d /proc/$! ] || { cat /run/warm/log.txt >/dev/console; exit 1; }
    sleep 0.2
done
cat /run/warm/log.txt >/dev/console
cd /
# programs that every run starts are then in memory
for program in $PROGRAMS; do cat "$program" >/dev/null; done
for program in ip tc iw ovs-vsctl; do $program --version >/dev/null 2>&1; done

# ---- the snapshot is taken while this waits; then warm_python.py mounts the machine's files ----
: >/run/warm/complete
read -r system_id shared <>/run/warm/restored
{ ovs-vsctl --timeout=60 set Open_vSwitch . "external_ids:system-id=$system_id"; } &
bash "$shared/vm/start.sh" </dev/null >/dev/console 2>&1
busybox poweroff -f
