"""What the server takes."""

from __future__ import annotations

from dataclasses import dataclass

from ..common.fields import Options, option

# Maximum JSON size of a character, and of the rest of a request.
BYTES_A_CHARACTER, OTHER_BYTES = 12, 65536


@dataclass(kw_only=True)
class Limits(Options):
    """What the server takes; the `help` of each field says what it bounds."""

    max_batch: int = option("Maximum batch size.", 32, least=1)
    max_wait_ms: float = option("Milliseconds to wait for more texts before a batch runs.", 5.0, least=0)
    max_queue: int = option("Maximum number of waiting texts; more get 429.", 1024, least=1)
    max_text_length: int = option("Maximum characters of a text; longer ones get 413.", 1000, least=1)
    max_header_bytes: int = option("Maximum bytes of a header; longer ones get 431.", 65536, least=1024)
    max_request_seconds: float = option(
        "Maximum seconds for a request to arrive; slower ones get 408.", 60.0, least=0.1
    )
    max_connections: int = option(
        "Maximum concurrent connections; more get 503. `ulimit -n` must be higher.", 900, least=1
    )

    @property
    def max_bytes(self) -> int:
        """Of a request."""
        return OTHER_BYTES + BYTES_A_CHARACTER * self.max_text_length * self.max_queue
