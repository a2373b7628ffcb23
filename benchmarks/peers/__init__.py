"""Other brokers, measured on the workloads of the forwarding benchmark: `python -m benchmarks.peers`.

Read harness.py first.  Each peer is a module with

    is_installed() -> str | None                what is missing, or None if nothing is
    published_per_s(workload) -> float          records published per second, all deliveries checked

They come from Debian's packages: apt-get install --no-install-recommends mosquitto activemq
"""
