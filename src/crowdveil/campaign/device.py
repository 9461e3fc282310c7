"""Python device of a worker: the device of the one file, with encryption for campaigns with a relay.

The states, files and ledger are those of `crowdveil.standalone.device`: both programs continue one another's
work, and never draw twice for one link on one computer.
"""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.certificate import refusals_as
from crowdveil.errors import DeviceError
from crowdveil.standalone import device as one_file

Sealing = Callable[[Campaign, bytes], bytes]


class SealingDevice(one_file.Device):
    """One worker's device for one campaign; a context that locks its record.

    `open`, `answer`, `sample` and `send` (or `save_report`) are the steps; each continues from the stored record.
    Methods raise `standalone.device.Refused`; inside `refusals_as(DeviceError)` it becomes a `DeviceError`.

    Args:
        sealing: encryption of a body to the curator's key, for a campaign with a relay.
    """

    def __init__(self, *args: Any, sealing: Sealing | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if sealing is not None:
            self.seal = lambda body: sealing(self.campaign, body)

    def open(self) -> None:
        """Fetch and verify the campaign, and that reports can be encrypted if it has a relay.

        Raises:
            Refused: the campaign, its assignment or a certificate is invalid.
        """
        super().open()
        if self.record["state"] == "receipted":
            return
        campaign = self.campaign
        if campaign.relay is not None and self.seal is not None:
            self.seal(bytes(campaign.body_bytes))  # refuses a key that cannot be used before anything is asked

    @property
    def campaign(self) -> Campaign:
        """The stored campaign."""
        return Campaign.from_bytes((self.folder / "campaign.json").read_bytes())


def answer_campaign(
    link: str,
    *,
    answers: Path | None = None,
    home: Path = one_file.HOME,
    files: Path | None = None,
    out: Path = Path(),
    budget: Decimal | None = None,
    level: int | None = None,
    sealing: Sealing | None = None,
) -> tuple[SealingDevice, Path | None]:
    """Answer a campaign, sample once and send, from wherever the record stands; return the device, and a report file.

    Args:
        link: the worker's link.
        answers: CSV file with the columns task and label; None asks in the terminal.
        home: folder of records and ledger.
        files: folder of `campaign.json` and `parts`, for a campaign without a service.
        out: folder of the report file of such a campaign.
        budget: epsilon over all campaigns on this computer. Above it nothing is sent if `answers` is a file;
            otherwise the worker is warned and decides.
        level: level of a campaign with levels, from 1, chosen once; None asks in the terminal, and with `answers` is 1.
        sealing: encryption of a body to the curator's key; without it a campaign with a relay is refused.

    Raises:
        DeviceError: with a sentence for the worker.
    """
    with refusals_as(DeviceError), SealingDevice(link, home, files, sealing=sealing) as device:
        return device, one_file.run(device, answers, out, budget, level)
