// SPDX-License-Identifier: Apache-2.0
//
// Simulates in htsim a network of the lab: the same queues, delays, connections and routes.
// bench/against/htsim.py compiles it together with a clone of htsim, which stays as it is.
//
// Standard input (words; bench/against/measure.py writes them):
//     ACKS PACKET_BYTES WARM_UP_S MEASURED_S
//     HOPS, and for each:          RATE_BPS DELAY_NS QUEUE_PACKETS         (rate 0: not shaped)
//     CONNECTIONS, and for each:   uncoupled|coupled SUBFLOWS
//         and for each subflow:    HOPS NUMBER... HOPS NUMBER...           (of data, of ACKs)
// ACKS is who acknowledges, and on which way:
//     second    every second segment, as the lab's receiver does, over the hops
//     each      each segment, over the hops
//     shipped   each segment, without a hop, as in htsim's main_tcp.cpp
// Standard output: one JSON object. Its counts and `run_s` are those after the warm-up; times are
// of the processor, in user and system mode together.

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "mtcp.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

static const int ACK_EVERY = 2;                  // lab/engines/sim/core/receiver.py
static const simtime_picosec DELAYED_ACK = timeFromMs(40);
static const simtime_picosec TIMER_SCAN = timeFromMs(10);  // as in main_tcp.cpp

static double cpu_s() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

template <typename T>
static T word(const char* what) {
    T found;
    if (!(cin >> found)) {
        cerr << "standard input: " << what << " is missing" << endl;
        exit(2);
    }
    return found;
}

// A sink that counts the acknowledgements that it sends.
class Receiver : public TcpSink {
public:
    virtual uint64_t acks() const { return packets(); }
    uint64_t packets() const { return _packets / Packet::data_packet_size(); }
};

// A sink that acknowledges every second segment (RFC 5681, section 4.2): at once what is out of
// order or fills a gap, and otherwise one segment alone after 40 ms.
class DelayingReceiver : public Receiver {
public:
    DelayingReceiver(EventList& eventlist, const Route& back) : _timer(eventlist, *this), _back(back) {}

    uint64_t acks() const override { return _acks; }

    void receivePacket(Packet& packet) override {
        TcpPacket& segment = static_cast<TcpPacket&>(packet);
        const TcpPacket::seq_t seq = segment.seqno();
        const int size = segment.size();
        const bool held = !_received.empty();
        if (_unacked == 0) _echo = segment.ts();
        _flow = &segment.flow();
        segment.free();
        _packets += size;
        if (seq == _cumulative_ack + 1) {
            _cumulative_ack += size;
            while (!_received.empty() && _received.front() == _cumulative_ack + 1) {
                _received.pop_front();
                _cumulative_ack += Packet::data_packet_size();
            }
            const bool is_syn = size == 1;
            if (++_unacked >= ACK_EVERY || held || is_syn)
                acknowledge();
            else
                _timer.start();
            return;
        }
        if (seq > _cumulative_ack) hold(seq);
        acknowledge();
    }

private:
    class Timer : public EventSource {
    public:
        Timer(EventList& eventlist, DelayingReceiver& receiver)
            : EventSource(eventlist, "delayed_ack"), _receiver(receiver) {}
        void start() {
            _due = eventlist().now() + DELAYED_ACK;
            if (!_is_pending) eventlist().sourceIsPending(*this, _due);
            _is_pending = true;
        }
        void doNextEvent() override {
            _is_pending = false;
            if (_receiver._unacked == 0) return;
            if (_due <= eventlist().now()) {
                _receiver.acknowledge();
                return;
            }
            eventlist().sourceIsPending(*this, _due);
            _is_pending = true;
        }

    private:
        DelayingReceiver& _receiver;
        simtime_picosec _due = 0;
        bool _is_pending = false;
    };

    void hold(TcpPacket::seq_t seq) {
        list<TcpAck::seq_t>::iterator at = _received.end();
        while (at != _received.begin()) {
            --at;
            if (*at == seq) return;
            if (*at < seq) {
                ++at;
                break;
            }
        }
        _received.insert(at, seq);
    }

    void acknowledge() {
        TcpAck* ack = TcpAck::newpkt(*_flow, _back, 0, _cumulative_ack, 0);
        ack->set_ts(_echo);
        ack->set_flags(0);
        _unacked = 0;
        _acks++;
        ack->sendOn();
    }

    Timer _timer;
    const Route& _back;
    PacketFlow* _flow = NULL;
    simtime_picosec _echo = 0;
    int _unacked = 0;
    uint64_t _acks = 0;
};

struct Hop {
    Queue* queue;
    Pipe* pipe;
};

struct Subflow {
    Receiver* receiver;
    uint64_t data_hops, ack_hops;
};

struct Counts {
    uint64_t packets = 0, hops = 0, acks = 0;
    double cpu = 0;
};

static Counts count(const vector<Subflow>& subflows) {
    Counts found;
    found.cpu = cpu_s();
    for (const Subflow& each : subflows) {
        found.packets += each.receiver->packets();
        found.acks += each.receiver->acks();
        found.hops += each.receiver->packets() * each.data_hops + each.receiver->acks() * each.ack_hops;
    }
    return found;
}

class AfterWarmUp : public EventSource {
public:
    AfterWarmUp(EventList& eventlist, const vector<Subflow>& subflows)
        : EventSource(eventlist, "after_warm_up"), _subflows(subflows) {}
    void doNextEvent() override { counts = count(_subflows); }
    Counts counts;

private:
    const vector<Subflow>& _subflows;
};

static vector<Hop> read_hops(EventList& eventlist) {
    vector<Hop> hops(word<int>("the number of hops"));
    for (Hop& each : hops) {
        const linkspeed_bps rate_bps = word<linkspeed_bps>("a rate");
        const double delay_ns = word<double>("a delay");
        const mem_b room = word<mem_b>("a queue's packets") * Packet::data_packet_size();
        each.queue = rate_bps ? new Queue(rate_bps, room, eventlist, NULL) : NULL;
        each.pipe = delay_ns ? new Pipe(timeFromNs(delay_ns), eventlist) : NULL;
    }
    return hops;
}

static Route* read_route(const vector<Hop>& hops, uint64_t& length) {
    Route* route = new Route();
    length = word<uint64_t>("the length of a route");
    for (uint64_t n = 0; n < length; n++) {
        const Hop& hop = hops.at(word<size_t>("a hop of a route"));
        if (hop.queue) route->push_back(hop.queue);
        if (hop.pipe) route->push_back(hop.pipe);
    }
    return route;
}

static Subflow read_subflow(EventList& eventlist, const vector<Hop>& hops, const string& acks,
                            MultipathTcpSrc& connection, TcpRtxTimerScanner& timers) {
    Subflow found;
    Route* out = read_route(hops, found.data_hops);
    Route* back = read_route(hops, found.ack_hops);
    if (acks == "shipped") {
        back = new Route();
        found.ack_hops = 0;
    }
    TcpSrc* source = new TcpSrc(NULL, NULL, eventlist);
    found.receiver = acks == "second" ? new DelayingReceiver(eventlist, *back) : new Receiver();
    out->push_back(found.receiver);
    back->push_back(source);
    timers.registerTcp(*source);
    connection.addSubflow(source);
    source->connect(*out, *back, *found.receiver, 0);
    return found;
}

int main() {
    EventList eventlist;
    const string acks = word<string>("who acknowledges");
    Packet::set_packet_size(word<int>("the size of a packet"));
    const simtime_picosec warm_up = timeFromSec(word<double>("the warm-up"));
    EventList::setEndtime(warm_up + timeFromSec(word<double>("the measured time")));
    srand(1);
    cout.setstate(ios_base::failbit);  // htsim prints every timeout

    const vector<Hop> hops = read_hops(eventlist);
    TcpRtxTimerScanner timers(TIMER_SCAN, eventlist);
    vector<Subflow> subflows;
    for (int left = word<int>("the number of connections"); left > 0; left--) {
        const bool is_coupled = word<string>("a congestion control") == "coupled";
        MultipathTcpSrc* connection =
            new MultipathTcpSrc(is_coupled ? COUPLED_INC : UNCOUPLED, eventlist, NULL);
        for (int more = word<int>("the number of subflows"); more > 0; more--)
            subflows.push_back(read_subflow(eventlist, hops, acks, *connection, timers));
    }
    AfterWarmUp start(eventlist, subflows);
    eventlist.sourceIsPending(start, warm_up);
    while (eventlist.doNextEvent()) {
    }
    const Counts end = count(subflows);
    printf("{\"packets\": %llu, \"acks\": %llu, \"hops\": %llu, \"start_s\": %.6f, \"run_s\": %.6f}\n",
           (unsigned long long)(end.packets - start.counts.packets),
           (unsigned long long)(end.acks - start.counts.acks),
           (unsigned long long)(end.hops - start.counts.hops),
           start.counts.cpu, end.cpu - start.counts.cpu);
    return 0;
}
