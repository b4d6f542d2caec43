"""Downloads that are checked, go on where they broke off, and show a bar."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

#: Bytes that are written at a time.
CHUNK = 1 << 18

#: Seconds without a byte after which a download has failed.
TIMEOUT = 30


def download(url: str, path: Path, md5: str) -> Path:
    """Download a file; it is in its place only when its checksum is right.

    What has arrived is kept beside it until then, so a download that breaks off goes on where it
    was. Several processes may ask for the same file.

    Args:
        url: where from.
        path: where to.
        md5: its checksum.

    Raises:
        OSError: if it cannot be had.
        ValueError: if its checksum is wrong; the next call begins from the start.
    """
    import pooch  # takes a while to import

    from bezoar._lock import Lock

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with Lock(path.with_name(f"{path.name}.lock")):
        downloader = partial(_resume, part)
        found = pooch.retrieve(url, f"md5:{md5}", path.name, path.parent, downloader=downloader)
    return Path(found)


def _resume(part: Path, url: str, output_file: str, _: Any) -> None:
    """Download into ``part``, which stays if that breaks off; the whole becomes ``output_file``."""
    import requests

    have = part.stat().st_size if part.exists() else 0
    wanted = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=wanted, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            os.replace(part, output_file)  # nothing is missing; its checksum will tell
            return
        response.raise_for_status()
        goes_on = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if goes_on else 0
        more = int(response.headers.get("Content-Length", 0))
        with open(part, "ab" if goes_on else "wb") as file, _bar() as bar:
            task = bar.add_task(Path(url).name, total=have + more or None, completed=have)
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
                bar.advance(task, len(chunk))
    os.replace(part, output_file)


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=not sys.stderr.isatty())
