# Defines a function for bash that starts Open vSwitch in the VM. It uses `say` of the script that
# reads this file.

# Open vSwitch counts the processors once in ten seconds of the kernel's clock, which starts at 0.
# Before 10 s it believes that there are none: the first bridge then has no thread for packets that
# no flow matches, and the kernel drops all of them. So the switches start later (with clocks three
# times slower, a VM has booted after 8 s).
start_switches() { # DATABASE
    local ovs=/run/openvswitch uptime
    while read -r uptime _ </proc/uptime && [ "${uptime%.*}" -lt 10 ]; do sleep 0.2; done
    modprobe openvswitch
    mkdir -p $ovs
    cp "$1" $ovs/conf.db
    ovsdb-server $ovs/conf.db --remote=punix:$ovs/db.sock --pidfile --detach --no-chdir --log-file=$ovs/ovsdb-server.log
    ovs-vswitchd unix:$ovs/db.sock --pidfile --detach --no-chdir --log-file=$ovs/ovs-vswitchd.log
    say "switches are running"
}
