"""Whether the Hub can be reached, where its client would ask for half a minute; asking again where it would not."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from huggingface_hub import constants, get_session
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from huggingface_hub.errors import HTTPError as TransportError  # of the HTTP library that huggingface_hub uses
from huggingface_hub.utils import validate_repo_id

from .errors import InputError

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_PROBES = 60.0
WAITS = (1.0, 2.0, 4.0, 8.0)  # seconds, where the Hub asks for no others
LONGEST_WAIT = 60.0
Result = TypeVar("Result")

_problem = ""  # that made this module turn offline mode on
_next_probe = 0.0


class PushError(OSError):
    """The Hub cannot be reached, or does not allow it."""


def reach_hub() -> None:
    """Ask the Hub for a sign of life, once in a process; TransportError after the seconds of HF_HUB_ETAG_TIMEOUT."""
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
    """Say that a `kind` of folder is neither here nor, `at` a revision, on the Hub, and what to do."""
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


def retry(attempt: Callable[[], Result]) -> Result:
    """Call again where the Hub's client gives up at once: it sends neither a question nor a commit twice."""
    with failing_for_good():
        return retry_request(attempt, _describe)


def retry_request(attempt: Callable[[], Result], describe: Callable[[BaseException], str]) -> Result:
    """Send a request again, after longer and longer waits, where another attempt may succeed.

    Args:
        attempt: Sends it.
        describe: One line about an error, for the log.

    Raises:
        TransportError: The last attempt failed, or the first one for good.
    """
    for usual in WAITS:
        try:
            return attempt()
        except TransportError as error:
            wait = _wait_after(error, usual)
            if wait is None:
                raise
            logger.warning("%s; trying again in %.0f s", describe(error), wait)
            time.sleep(wait)
    return attempt()


@contextmanager
def failing_for_good() -> Iterator[None]:
    """Say in one line why the Hub's client has failed."""
    try:
        yield
    except (TransportError, LocalEntryNotFoundError, RuntimeError) as error:
        # Where a file's upload fails, the client wraps the reason.
        cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ else error
        raise PushError(f"{_describe(cause)}; the same push again finishes it") from error
    except ValueError as error:  # metadata of the card that the Hub refuses
        raise InputError(f"not pushed: {error}") from error


def _wait_after(error: TransportError, usual: float) -> float | None:
    """Seconds to wait before another attempt; None where it would fail the same way."""
    if not isinstance(error, HfHubHTTPError):
        return usual
    status, asked = error.response.status_code, error.response.headers.get("Retry-After", "")
    if status < 500 and status not in (408, 412, 429):  # 412: somebody else's commit came between
        return None
    return min(float(asked), LONGEST_WAIT) if asked.isdigit() else usual


def _describe(error: BaseException) -> str:
    """A message without the address that was asked for, which may carry a signature."""
    if not isinstance(error, HfHubHTTPError):
        return f"the Hub could not be reached ({type(error).__name__})"
    status, reason = error.response.status_code, error.response.reason_phrase
    hints = {
        401: "the token is not valid: run `hf auth login`, or set HF_TOKEN",
        403: "the token needs the `write` role and you need write access",
        404: "the repository does not exist, or the token cannot see it",
    }
    return "; ".join(filter(None, (f"the Hub answered {status} {reason}", error.server_message, hints.get(status))))
