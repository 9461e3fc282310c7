"""The default engine: blocks are worked on by threads of this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, final

from crowdveil.em.executor import ActiveExecutor, Bench, FitTask, Part, Step
from crowdveil.em.kernels import parallel_map, thread_count
from crowdveil.em.memory import MemoryPlan, Posterior
from crowdveil.em.model import GoldBlock, P, S


@final
@dataclass(frozen=True, slots=True)
class Threads:
    """As many threads as the environment says (`CROWDVEIL_THREADS`), or one per free core; one if blocks are small."""

    name: ClassVar[str] = "threads"

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[ActiveExecutor[Any, Any]]:
        """Give a crew of threads."""
        threads = min(thread_count(), len(work.blocks)) if work.blocks.compiled else 1
        room = MemoryPlan.under(work.memory, threads, work.load)
        with parallel_map(room.threads) as each:
            yield _Crew(Bench(work, room), each)


@dataclass(frozen=True, slots=True)
class _Crew(Generic[P, S]):
    bench: Bench[P, S]
    each: Any

    def map(self, step: Step[P, S]) -> Iterator[Part[S]]:
        step.ready  # noqa: B018  worked out once, before threads ask for it
        indices = range(len(self.bench.work.blocks))
        parts: Iterator[Part[S]] = iter(self.each(partial(self.bench.step, step=step), indices))
        return parts

    def collect(self) -> Posterior:
        return self.bench.posteriors.whole()

    def blocks(self) -> Iterator[GoldBlock]:
        return self.bench.blocks()
