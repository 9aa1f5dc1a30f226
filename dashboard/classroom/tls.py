"""Serve TLS: accept encrypted connections and pass their bytes on to the server, which speaks plain
HTTP on 127.0.0.1.

Waitress has no TLS. The server cannot see the address of a browser behind this door, but it sees
from which port the door speaks, and the door knows who is behind each port.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

from lab.errors import RequestError

PIECE = 1 << 16  # bytes
HANDSHAKE_S = 10.0
MOST_CONNECTIONS = 1000
LAST_ROUNDS = 20  # of the event loop; bytes that wait are passed on in fewer than five


def context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS settings of a server. Raise `RequestError` if a file cannot be used."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as error:
        raise RequestError(
            f"use {certificate} with {key}: {error.strerror or error}. Give a certificate and its "
            "private key in PEM, without a password"
        ) from error
    return made


class TlsDoor(threading.Thread):
    """Accept TLS connections on `sock`, and pass their bytes on to `port` on 127.0.0.1."""

    def __init__(self, sock: socket.socket, settings: ssl.SSLContext, port: int) -> None:
        super().__init__(name="tls", daemon=True)
        self._sock, self._settings, self._port = sock, settings, port
        self._behind: dict[int, str] = {}  # the address of the browser, by the port of the door
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()

    def address_of(self, environ: dict[str, object]) -> str:
        """Return the network address of the browser that has sent a request."""
        port = environ.get("REMOTE_PORT", "0")
        return self._behind.get(int(str(port)), str(environ.get("REMOTE_ADDR", "")))

    def run(self) -> None:
        """Pass on connections until `close` is called."""
        asyncio.set_event_loop(self._loop)
        serving = asyncio.start_server(
            self._serve, sock=self._sock, ssl=self._settings, ssl_handshake_timeout=HANDSHAKE_S
        )
        server = self._loop.run_until_complete(serving)
        self._ready.set()
        self._loop.run_forever()
        server.close()

    def close(self) -> None:
        """Pass on what the server has sent, then end all connections and the thread."""
        self._ready.wait()
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop)
        self.join()

    async def _finish(self) -> None:
        for _ in range(LAST_ROUNDS):
            await asyncio.sleep(0)
        self._loop.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._behind) >= MOST_CONNECTIONS:
            writer.close()
            return
        port = 0
        try:
            inner, outer = await asyncio.open_connection("127.0.0.1", self._port)
            port = outer.get_extra_info("sockname")[1]
            self._behind[port] = str(writer.get_extra_info("peername")[0])
            await self._both(reader, outer, inner, writer)
        except OSError:  # one side has ended the connection
            pass
        finally:
            self._behind.pop(port, None)
            writer.close()

    async def _both(
        self,
        browser: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_browser: asyncio.StreamWriter,
    ) -> None:
        """Copy bytes in both directions until one side ends."""
        copies = {
            asyncio.ensure_future(_copy(browser, to_server)),
            asyncio.ensure_future(_copy(server, to_browser)),
        }
        _, left = await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        for each in left:
            each.cancel()
        to_server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
