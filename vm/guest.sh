# Runs inside the VM as root, before and around the command: bash guest.sh VM_FOLDER PROJECT COMMAND...
# Writes into VM_FOLDER: guest.txt (this script), output.txt and errors.txt (the command), started,
# exit_code.
folder=$1 project=$2
shift 2
exec >>"$folder/guest.txt" 2>&1 </dev/null
say() {
    read -r uptime _ </proc/uptime
    echo "$uptime $*"
}
say "script starts"

. "$project/vm/code_patching.sh"
. "$project/vm/open_vswitch.sh"
prepare_booted() {
    start_second_processor
    # Set the clock from the time stamp that the machine's file system gives a file, to a few tenths
    # of a second. The guest's own clock starts at a full second.
    : >"$folder/clock"
    date -s "@$(stat -c %.6Y "$folder/clock")" >/dev/null
    rm "$folder/clock"
    mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
    mountpoint -q /sys/fs/bpf || mount -t bpf none /sys/fs/bpf
    ip link set lo up
    # The switches and the radios' module take seconds, and the command starts meanwhile. A command
    # that needs them waits for them: ovs-vsctl --retry, modprobe.
    { modprobe -a sch_netem sch_htb sch_fq sch_codel sch_red sch_ingress act_bpf cls_bpf cls_matchall act_mirred; modprobe ifb numifbs=0; patch_code_now; modprobe mac80211_hwsim radios=0; say "modules are loaded"; start_switches "$folder/switches.db"; } &
}
[ -d /run/warm ] || prepare_booted # a restored VM has all this (snapshot_init.sh)

# Put the command's files at their original paths. Where the guest sees the machine's file, the copy
# hides it: the file may have been edited since the command began.
place_file() {
    local place=${1#"$folder/files"}
    if [ -e "$place" ]; then
        mount --bind "$1" "$place"
    else
        mkdir -p "${place%/*}" && cp "$1" "$place"
    fi
}
if [ -d "$folder/files" ]; then
    while IFS= read -r -d "" file; do place_file "$file"; done < <(find "$folder/files" -type f -print0)
fi

# A file `stop` in the folder interrupts the command. Reading a pipe without a writer sleeps without
# starting a process.
mkfifo /run/never
watch_for_stop() {
    exec 8<>/run/never
    until [ -e "$folder/stop" ]; do read -r -t 0.5 -u 8; done
    kill -INT "$(</run/command.pid)"
    say "command is interrupted"
}
watch_for_stop &

. "$project/vm/warm.sh"
run_warm() {
    ln -s /run/warm/requests/command.pid /run/command.pid
    warm command "$project" "$folder/output.txt" "$folder/errors.txt" "$@"
}
run() {
    echo $BASHPID >/run/command.pid
    exec "$@" >"$folder/output.txt" 2>"$folder/errors.txt"
}

cd "$project" || exit 3
say "command starts"
: >"$folder/started"
if [ -d /run/warm ] && [[ $1 == */python* ]]; then run_warm "$@"; else (run "$@"); fi
status=$?
say "command ends with status $status"
echo $status >"$folder/exit_code.new"
mv "$folder/exit_code.new" "$folder/exit_code"
