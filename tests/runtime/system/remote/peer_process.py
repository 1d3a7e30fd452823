"""A process that tests kill: an actor system with one actor, `echo`. Usage: peer_process.py KEY_FILE

Prints the actor's address, and lives until its input is closed.
"""

import sys

from understudy.actors.actor import Actor
from understudy.runtime.system import ActorSystem, CurveKeys


class Echo(Actor):
    def on_receive(self, message):
        return self.context.promise() if message == "silence" else message


if __name__ == "__main__":
    with ActorSystem("peer", bind="tcp://127.0.0.1:0", curve=CurveKeys.load(sys.argv[1])) as system:
        print(system.spawn(Echo(), name="echo").address, flush=True)
        sys.stdin.read()
