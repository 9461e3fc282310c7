"""The Python devices and the real service: the same checks, one report, and the same folder as from files."""

import shutil
from pathlib import Path

import pytest

from crowdveil.campaign.device import answer_campaign
from crowdveil.campaign.folder import CampaignFolder
from crowdveil.errors import DeviceError
from crowdveil.folder.campaign.export import EXPORT_FILES
from crowdveil.folder.campaign.report_files import read_report_files, write_collected
from crowdveil.service.app import create_app
from crowdveil.service.registration import register
from crowdveil.service.release import export
from crowdveil.service.store import Store
from crowdveil.standalone import device as one_file
from tests.campaign.builders import BuiltCampaign, build_campaign
from tests.service.browser import free_port, served


def copied_reports(built: BuiltCampaign, homes: Path, target: Path) -> None:
    """Write each device's stored report as a file; it ends with the device's receipt."""
    for slot in (0, 1):
        with one_file.Device(built.link(slot).text, homes / str(slot)) as device:
            device.open()
            device.answer(0, "quokka")
            device.sample()
            device.save_report(target)
            device.send()


def test_service_and_files_give_the_same_folder(tmp_path):
    """Reports that two devices send and hand in as files are exported and collected to the same bytes."""
    built = build_campaign(url=f"http://127.0.0.1:{(port := free_port())}")
    folder = CampaignFolder(built.write(tmp_path / "campaign"))
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    register(store, folder)
    digest = built.campaign.digest
    (tmp_path / "my.csv").write_text("task,label\nt0,narwhal\n")
    with served(create_app(store), port):
        copied_reports(built, tmp_path / "homes", tmp_path / "files")
        shutil.rmtree(tmp_path / "homes" / "0")  # another device of the same worker
        with pytest.raises(DeviceError, match="has been used"):
            answer_campaign(built.link(0).text, answers=tmp_path / "my.csv", home=tmp_path / "homes" / "0")
        store.close_campaign(digest)
        with pytest.raises(DeviceError, match="is closed"):
            answer_campaign(built.link(2).text, answers=tmp_path / "my.csv", home=tmp_path / "homes" / "2")
    export(store, digest, tmp_path / "exported")
    store.close()
    write_collected(tmp_path / "collected", folder.campaign, read_report_files(tmp_path / "files", folder))

    for name in EXPORT_FILES:
        assert (tmp_path / "exported" / name).read_bytes() == (tmp_path / "collected" / name).read_bytes()
