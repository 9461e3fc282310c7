"""The engine `processes`: blocks are worked on by processes of this machine, letters are files."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any, ClassVar, final

from crowdveil.engines.desk import Order, report, work_on
from crowdveil.engines.dispatch import Dispatch
from crowdveil.engines.lanes import Lane
from crowdveil.engines.parcel import Letter
from crowdveil.errors import SettingsError
from crowdveil.estimators.contract import GoldBlock
from crowdveil.estimators.kernels import thread_count
from crowdveil.estimators.room import Found
from crowdveil.estimators.work import Crew, Part, Step, Work
from crowdveil.storage.temporary import temporary_folder

AHEAD = 2
"""Blocks that are given to a process at once, so that it need not wait."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Processes of this machine, each with its own share of the blocks; a dead one is replaced.

    Attributes:
        processes: how many; None for `CROWDVEIL_THREADS`, or one per free core.

    Raises:
        SettingsError: fewer than one.
    """

    name: ClassVar[str] = "processes"
    processes: int | None = None

    def __post_init__(self) -> None:
        if self.processes is not None and self.processes < 1:
            raise SettingsError("processes must be at least 1", value=self.processes)

    @contextmanager
    def open(self, work: Work[Any, Any]) -> Iterator[Crew[Any, Any]]:
        """Start the processes, and stop them in the end."""
        count = min(self.processes or thread_count(), len(work.blocks))
        memory = None if work.memory is None else work.memory // count
        with temporary_folder(Path(gettempdir())) as folder, ExitStack() as stack:
            dispatch = Dispatch(work, Files(folder), memory)
            lanes = [Lane() for _ in range(count)]
            for lane in lanes:
                stack.callback(lane.close)
            yield ProcessCrew(dispatch, lanes)


@dataclass(frozen=True, slots=True)
class Filed:
    """A letter in a file."""

    path: Path

    @property
    def value(self) -> bytes:
        """The bytes."""
        return self.path.read_bytes()


class Files:
    """A folder of letters."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def send(self, data: bytes, *, to_all: bool) -> Filed:
        """Write a letter; one file does for all."""
        self._count += 1
        letter = Filed(self._folder / str(self._count))
        letter.path.write_bytes(data)
        return letter

    def discard(self, letter: Letter) -> None:
        """Remove a letter."""
        assert isinstance(letter, Filed)
        letter.path.unlink()


class ProcessCrew:
    """The processes of one fit; every block has its own."""

    def __init__(self, dispatch: Dispatch, lanes: list[Lane]) -> None:
        self._dispatch, self.lanes = dispatch, lanes

    def map(self, step: Step[Any, Any]) -> Iterator[Part[Any]]:
        """Yield what a step makes of each block, in order."""
        self._dispatch.begin(step)
        return self._ask_all(work_on)

    def collect(self) -> Found:
        """Return the posteriors of the last step."""
        return self._dispatch.together(self._ask_all(report))

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block, in this process."""
        return self._dispatch.blocks()

    def _ask_all(self, function: Callable[[Order], Any]) -> Iterator[Any]:
        asked = deque[Future[Any]]()
        for index in self._dispatch.indices:
            if len(asked) == AHEAD * len(self.lanes):
                yield asked.popleft().result()
            lane, order = self.lanes[index % len(self.lanes)], self._dispatch.order(index)
            asked.append(lane.ask(function, order, f"block {index + 1}"))
        while asked:
            yield asked.popleft().result()
