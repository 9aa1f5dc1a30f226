# Defines functions for bash that keep the guest's kernel from changing its own code while traffic
# runs. The kernel switches rarely used code by patching it. QEMU before 8.1 can, when it emulates
# two processors, go on executing the instruction int3 that stands there during the change: the
# kernel then panics in a function such as __netif_receive_skb_core.

start_second_processor() { # the kernel boots with one (maxcpus=1), because it patches itself then
    local online=/sys/devices/system/cpu/cpu1/online
    [ "$(<$online)" = 1 ] || echo 1 >$online
}

patch_code_now() { # before there is traffic: use once what a run and its pings use, and keep it used
    # time stamps of packets: netstamp_needed_key
    ping -q -i 100000 127.0.0.1 >/dev/null 2>&1 </dev/null &
    # filters on an interface: ingress_needed_key, egress_needed_key, tcf_sw_enabled_key
    ip link add lab-patches type ifb
    tc qdisc add dev lab-patches clsact
    tc filter add dev lab-patches ingress matchall classid 1:1
}
