from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Trials:
    """How often something was tried, and what failed.

    Args:
        name: What is tried; a column of the table.
        tried: So far.
        failed: What each failure was, in a line.
        skipped: Why nothing could be tried here.
    """

    name: str
    tried: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: str = ""

    @contextmanager
    def trial(self, label: str, allowed: tuple[type[Exception], ...] = (), seconds: float = 60.0) -> Iterator[None]:
        """Count a trial, which fails by any exception but those allowed, or by taking too long.

        Args:
            label: How somebody finds it again.
            allowed: What the package promises to raise.
            seconds: Of this process's time.
        """
        self.tried += 1
        start = time.process_time()
        try:
            yield
        except allowed:
            pass
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename.rpartition('/')[2]}:{where.lineno}"
            self.failed.append(f"{label}: {type(error).__name__}: {error!s:.200} ({place})")
        if (taken := time.process_time() - start) > seconds:
            self.failed.append(f"{label}: took {taken:.0f} s")
