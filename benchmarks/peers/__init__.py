"""Other brokers, measured on the workloads of the forwarding benchmark.

    python -m benchmarks.peers [mosquitto] [activemq] [--repeats 3]

Each peer is a module with

    is_installed() -> str | None            what is missing; None if it is installed
    published_per_s(workload) -> float      records published per second, every delivery checked

They come from Debian's packages: apt-get install --no-install-recommends mosquitto activemq
Read harness.py first.
"""
