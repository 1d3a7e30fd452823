"""A relay before a server, in a process of its own, so that a client that holds the interpreter's lock while it waits
gets its answers. `cut` ends it and all its connections: the server is away; `start` brings it back at its port.

As a program: `relay.py PORT SERVER_PORT`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import time

_START_S = 300


class Relay:
    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, __file__, str(self.port), str(self._server_port)])
        until = time.monotonic() + _START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                assert self._process.poll() is None, "the relay has ended"
                assert time.monotonic() < until, "the relay does not listen"
                time.sleep(0.02)

    def cut(self) -> None:
        self._process.kill()
        self._process.wait()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _relay(port: int, server_port: int) -> None:
    async def both_ways(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", server_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, to_server), _pass_on(from_server, writer))

    server = await asyncio.start_server(both_ways, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_relay(int(sys.argv[1]), int(sys.argv[2])))
