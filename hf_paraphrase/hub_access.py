"""Whether the Hub can be reached: where it cannot, its client would retry every file for half a minute."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from huggingface_hub import constants, get_session
from huggingface_hub.errors import HFValidationError
from huggingface_hub.errors import HTTPError as TransportError  # of the HTTP library that huggingface_hub uses
from huggingface_hub.utils import validate_repo_id

__all__ = ["TransportError", "describe_absence", "reach_hub", "use_cache_without_network"]

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_PROBES = 60.0

_problem = ""  # that made this module turn offline mode on
_next_probe = 0.0


def reach_hub() -> None:
    """Ask the Hub for a sign of life, once in a process.

    Raises:
        TransportError: There was none within the seconds of HF_HUB_ETAG_TIMEOUT.
    """
    global _next_probe
    if time.monotonic() >= _next_probe:
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
        _next_probe = float("inf")


def use_cache_without_network(path: str | os.PathLike, local_files_only: bool | None = False) -> None:
    """Turn on the offline mode of the Hub's client while the Hub cannot be reached.

    Args:
        path: A folder or Hub repository; what can only be a folder needs no Hub.
        local_files_only: The caller will not ask the Hub.
    """
    global _problem, _next_probe
    chosen_by_user = constants.HF_HUB_OFFLINE and not _problem
    if local_files_only or chosen_by_user or time.monotonic() < _next_probe or not _may_be_repository(path):
        return
    constants.HF_HUB_OFFLINE = False  # the client itself heeds it
    try:
        reach_hub()
        _problem = ""
    except TransportError as error:
        constants.HF_HUB_OFFLINE = True
        _problem, _next_probe = str(error) or type(error).__name__, time.monotonic() + SECONDS_BETWEEN_PROBES
        logger.info("%s cannot be reached (%s): using only cached files", constants.ENDPOINT, _problem)


def describe_absence(path: str | os.PathLike, kind: str = "checkpoint folder", at: str = "") -> str:
    """Say that something is neither here nor on the Hub, and what to do.

    Args:
        path: What was looked for.
        kind: Of folder.
        at: Its revision, in words.
    """
    if not _may_be_repository(path):
        return f"{path} is neither a {kind} nor a Hub repository: there is no such folder"
    if _problem:
        hint = f"{constants.ENDPOINT} cannot be reached ({_problem}): check the network and HF_ENDPOINT"
    elif constants.HF_HUB_OFFLINE:
        hint = "HF_HUB_OFFLINE is set: unset it to download, or use what was downloaded before"
    else:
        hint = "check its name; for a private or gated one run `hf auth login`"
    return f"{path}{at} is neither a {kind} nor a Hub repository within reach; {hint}"


def _may_be_repository(path: str | os.PathLike) -> bool:
    try:
        validate_repo_id(os.fspath(path))
    except HFValidationError:
        return False
    return not Path(path).is_dir()
