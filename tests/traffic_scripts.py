"""Scripts for hosts: a server that sends without end, a client that counts bytes, an echo
request."""

SEND = """
import socket, sys, threading, time
protocol, port, pace_bps = (int(word) for word in sys.argv[1:4])
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("10.0.0.1", port))
listener.listen()

def serve(connection):
    try:
        while True:
            connection.sendall(bytes(5000))
            if pace_bps:
                time.sleep(40000 / pace_bps)
    except OSError:
        pass

while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

COUNT = """
import socket, sys, time
protocol, port, source, progress = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
connection.bind((source, 0))
connection.connect(("10.0.0.1", port))
total, written = 0, 0.0
while True:
    total += len(connection.recv(65536))
    if time.monotonic() - written > 0.1:
        written = time.monotonic()
        with open(progress, "a") as file:
            file.write(f"{written} {total}\\n")
"""

ECHO = """
import socket, struct, sys
source, target = sys.argv[1:3]
request = struct.pack("!BBHHH", 8, 0, 0, 7, 1) + b"are you there?.."
total = sum(struct.unpack(f"!{len(request) // 2}H", request))
total = (total >> 16) + (total & 0xFFFF)
request = request[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + request[4:]
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
    raw.bind((source, 0))
    raw.settimeout(1)
    for attempt in range(4):
        raw.sendto(request, (target, 0))
        try:
            while raw.recv(200)[20] != 0:
                pass
            print("answered")
            break
        except TimeoutError:
            pass
"""
