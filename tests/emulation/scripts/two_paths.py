"""Two paths between a pair of hosts with plain Mininet: h1 has an interface on each."""

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.topo import Topo


class TwoPaths(Topo):
    def build(self):
        h1, h2 = self.addHost("h1"), self.addHost("h2")
        left, right, end = (self.addSwitch(name) for name in ("s1", "s2", "s3"))
        self.addLink(h1, left)
        self.addLink(h1, right)
        self.addLink(left, end, bw=4, delay="10ms", max_queue_size=50)
        self.addLink(right, end, bw=2, delay="10ms", max_queue_size=50)
        self.addLink(end, h2)


net = Mininet(topo=TwoPaths(), link=TCLink)
net.start()
h1, h2, s3 = net.get("h1", "h2", "s3")
h1.setIP("10.0.1.1/24", intf="h1-eth1")
net.adopt()

print(h1.cmd("ping -c 2 -I 10.0.0.1 10.0.0.2"), h1.cmd("ping -c 2 -I 10.0.1.1 10.0.0.2"))
h2.cmd("mptcpize run iperf3 -s -D")
h1.cmd("mptcpize run iperf3 -c 10.0.0.2 -R -t 40 > /tmp/client.txt &")
h1.cmd("sleep 8")
print("before", h1.cmd("ss -tino state established | grep -c ssthresh"))
print(s3.cmd("tc qdisc change dev s3-eth1 parent 5:1 handle 10: netem delay 10ms loss 5% limit 50"))
h1.cmd("sleep 8")
print(h1.cmd("ip mptcp endpoint"))
print(s3.cmd("tc qdisc change dev s3-eth1 parent 5:1 handle 10: netem delay 10ms loss 0% limit 50"))
h1.cmd("sleep 8")
print(h1.cmd("ip mptcp endpoint"))
print(h1.cmd("nstat -asz MPTcpExtMPJoinSynAckRx MPTcpExtMPPrioTx"))
net.stop()
