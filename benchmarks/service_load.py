"""Load of the service: reports per second, latency, and the same with the service killed in between.

    python -m benchmarks.service_load [--reports 10000] [--cells 200] [--clients 200] [--kills 10]
                                      [--database postgresql://...]

Without --database it uses SQLite in a temporary folder. The clients run in this process, on the same processor.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.service_harness import Delivery, LoadCampaign, ServiceProcess, deliver, differences, make_load

MILLISECONDS = 1000


async def measure(load: LoadCampaign, folder: Path, options: argparse.Namespace, database: str, kills: int) -> str:
    """Send all reports while the service is killed `kills` times; return a row of figures."""
    log = folder / "log"
    service = ServiceProcess(load.folder, log, database=database)
    delivery = Delivery()
    start = time.perf_counter()
    sending = asyncio.create_task(
        deliver(load.requests, service.port, delivery, clients=options.clients, wanted=lambda: True)
    )
    for number in range(kills):
        due = len(load.requests) * (number + 1) // (kills + 1)
        while len(delivery.receipts) < due and not sending.done():
            await asyncio.sleep(0.005)
        service.kill()
        service = await asyncio.to_thread(ServiceProcess, load.folder, log, database=database, port=service.port)
    await sending
    elapsed = time.perf_counter() - start
    service.stop()
    found = differences(load, delivery.receipts, database)
    percentiles = statistics.quantiles(delivery.seconds, n=100)
    return (
        f"{kills:5d} {len(delivery.receipts) / elapsed:9.0f} {percentiles[49] * MILLISECONDS:8.0f} "
        f"{percentiles[98] * MILLISECONDS:8.0f} {elapsed:8.1f} {delivery.broken:7d} {delivery.refused:5d}  "
        f"{len(delivery.receipts)} receipts, {'; '.join(found[:3]) or 'each one equal stored report'}"
    )


def main() -> None:
    """Measure once undisturbed and once with kills."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--database", default="", help="an empty PostgreSQL database; each run is another campaign")
    options = parser.parse_args()
    print("kills reports/s   p50 ms   p99 ms  seconds  broken   503  check", flush=True)
    for kills in dict.fromkeys((0, options.kills)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            load = make_load(folder / "campaign", slots=options.reports, cells=options.cells)
            database = options.database or f"sqlite:///{folder / 'reports.sqlite'}"
            print(asyncio.run(measure(load, folder, options, database, kills)), flush=True)


if __name__ == "__main__":
    main()
