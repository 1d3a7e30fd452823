"""A job with a page, in a process that may open 1,024 files and sockets. It ends when its standard input does.

Argument: the folder of its checkpoints.
"""

from __future__ import annotations

import json
import resource
import sys

from understudy import LocalCluster, StreamEnvironment

TOKEN = "a-long-secret"
DESCRIPTORS = 1_024

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    env = StreamEnvironment(checkpoint_interval_ms=100, checkpoint_dir=sys.argv[1])
    numbers = env.generate(lambda index: index, records_per_second=1_000)
    numbers.key_by(lambda number: number % 7).reduce(max).filter(lambda number: False).print()
    prometheus = {"metrics.reporter.prom.port": "0"}
    with LocalCluster(task_managers=1, web_port=0, web_token=TOKEN, config=prometheus) as cluster:
        job = cluster.submit(env)
        job.ready().result(timeout=120)
        print(json.dumps([cluster.web_url, cluster.address, cluster.prometheus_url]), flush=True)
        sys.stdin.read()
        job.cancel().result(timeout=120)
