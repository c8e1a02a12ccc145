"""What becomes of rows, and of a dataset of them that fits one machine: paraphrases, reasons of rejection, errors."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import torch
from datasets import Dataset, Features, Value
from datasets.fingerprint import generate_random_fingerprint

from ..common.errors import InputError
from ..generation.paraphrase_choice import SCORES
from ..generation.paraphrase_table import ParaphrasedTexts
from ..generation.paraphraser import Paraphrase, Paraphraser
from ..released import RELEASED

# Columns added to each row.
ADDED = Features(
    {
        "source_id": Value("string"),
        "paraphrase": Value("string"),
        "rank": Value("int32"),
        **dict.fromkeys(("score", *SCORES), Value("float64")),
        "error": Value("string"),
    }
)
# Batches that are sorted by length together.
BATCHES_AT_ONCE = 32
# Letters of an error that are kept; some show a whole tensor.
LONGEST_ERROR = 300


class Outcome(NamedTuple):
    """What became of a row.

    Args:
        paraphrases: The best first.
        rejected: How many candidates were rejected, by the kind of reason.
        error: Why the row failed; None where it did not, though no candidate may have passed.
        is_cut: Whether it was read up to `max_source_length` only.
        tokens: Token counts that a server reported for it or its batch, by kind.
    """

    paraphrases: list[Paraphrase]
    rejected: Mapping[str, int]
    error: str | None = None
    is_cut: bool = False
    tokens: Mapping[str, int] = MappingProxyType({})


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse arguments of a `Paraphraser`'s call that augmenting gives itself."""
    for name in ("texts", "n", "return_rejected"):
        if name in options:
            raise InputError(f"`{name}` is no further argument of a Paraphraser's call: augmenting gives it itself")


class RowParaphraser:
    """Paraphrases rows in batches of similar length, and survives failures.

    If a batch fails, its rows are retried one by one, so that only the failing row has no result. Not taken for a
    row's are a disk or network that fails (OSError), and a GPU that has failed for good, after which everything fails.

    Args:
        paraphraser: Who writes.
        n: Paraphrases of each row, at most.
        batch_size: Rows at once.
        options: Further arguments of a `Paraphraser`'s call.

    Raises:
        InputError: An argument that cannot be.
    """

    def __init__(self, paraphraser: Paraphraser, n: int = 3, batch_size: int = 16, **options: Any):
        check_options(options)
        self.paraphraser, self.batch_size = paraphraser, batch_size
        limit = options.pop("max_source_length", None)
        self.cutter = paraphraser.writer.cutter(limit, quiet=True)
        self.options = {"n": n, "batch_size": batch_size, "return_rejected": True, **options}
        self.options["max_source_length"] = self.cutter
        paraphraser([], **self.options)  # which refuses arguments that cannot be

    @property
    def rows_at_once(self) -> int:
        """How many rows it pays to hand over together."""
        return self.batch_size * BATCHES_AT_ONCE

    def __call__(self, texts: Sequence[str | None]) -> list[Outcome]:
        """An outcome of each text, in order; a missing text is None."""
        outcomes = [Outcome([], {}, "the text is blank") for _ in texts]
        worded = sorted(
            (place for place, text in enumerate(texts) if text and text.strip()),
            key=lambda place: (len(texts[place] or ""), place),
        )
        for start in range(0, len(worded), self.batch_size):
            places = worded[start : start + self.batch_size]
            found = self._try([str(texts[place]) for place in places])
            for place, outcome in zip(places, found, strict=True):
                # What failed may fail in the tokenizer, which the cutter asks too.
                is_cut = outcome.error is None and self.cutter(str(texts[place])) != texts[place]
                outcomes[place] = outcome._replace(is_cut=is_cut)
        return outcomes

    def _try(self, texts: list[str]) -> list[Outcome]:
        try:
            before = self.paraphraser.writer.tokens.copy()
            groups = cast(ParaphrasedTexts, self.paraphraser(texts, **self.options))
            outcomes = []
            for group in groups:
                rejected = Counter(_kind_of(one.reason) for one in group if one.reason is not None)
                outcomes.append(Outcome([one for one in group if one.reason is None], rejected))
            outcomes[0] = outcomes[0]._replace(tokens=self.paraphraser.writer.tokens - before)
            return outcomes
        except (OSError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a panic of tokenizers is not an Exception
            if self.paraphraser.writer.device.type == "cuda":
                torch.cuda.synchronize()  # fails again where the GPU has failed for good
            if len(texts) == 1:
                message = " ".join(f"{type(error).__name__}: {error}".split())
                return [Outcome([], {}, message[:LONGEST_ERROR])]
            return [outcome for text in texts for outcome in self._try([text])]


def make_rows(values: Mapping[str, Any], source_id: str, outcome: Outcome) -> Iterator[dict[str, Any]]:
    """A row for each paraphrase of the source `source_id`, beside its `values`; without any, one that says why."""
    empty = dict.fromkeys(ADDED)
    for rank, one in enumerate(outcome.paraphrases, start=1):
        scores = {name: getattr(one, name) for name in ("score", *SCORES)}
        yield {**values, **empty, "source_id": source_id, "paraphrase": one.text, "rank": rank, **scores}
    if not outcome.paraphrases:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in sorted(outcome.rejected.items()))
        error = outcome.error or f"no candidate passed: {reasons}"
        yield {**values, **empty, "source_id": source_id, "error": error}


def count_outcome(counts: Counter[str], outcome: Outcome) -> None:
    """Count a row's paraphrases, failure and rejected candidates."""
    counts["rows"] += 1
    counts["paraphrases"] += len(outcome.paraphrases)
    counts["failed"] += outcome.error is not None
    counts["cut"] += outcome.is_cut
    counts["without"] += not outcome.paraphrases and outcome.error is None
    for kind, count in outcome.tokens.items():
        counts[f"{kind} tokens"] += count
    if outcome.error is not None:
        counts[f"failed: {outcome.error.partition(': ')[0]}"] += 1
    for reason, count in outcome.rejected.items():
        counts[f"rejected: {reason}"] += count


def check_columns(column: str, keep_columns: Sequence[str] | None, there: Sequence[str], where: str) -> list[str]:
    """The columns of the source that the result has, `column` with the text among them.

    Args:
        column: That with the text.
        keep_columns: The others that are kept; None for all.
        there: Those that there are.
        where: Where they come from, for the InputError where one is missing, or has the name of one that is added.
    """
    for name in (column, *(keep_columns or ())):
        if name not in there:
            raise InputError(f"{where} has no column `{name}`; it has: {', '.join(there)}")
    kept = [name for name in there if keep_columns is None or name == column or name in keep_columns]
    if clash := sorted(ADDED.keys() & set(kept)):
        raise InputError(
            f"{where} has a column `{clash[0]}`, as the result has one of its own; name the columns to keep "
            "(`keep_columns`) without it"
        )
    return kept


def _kind_of(reason: str) -> str:
    """A reason without the details of one candidate: `loses 'Ann' (names)` as `loses names`."""
    kept = re.fullmatch(r"(loses|invents) .* \((\w+)\)", reason, re.DOTALL)
    if kept:
        return f"{kept[1]} {kept[2]}"
    if reason.startswith("is the same as "):
        return "is the same as another"
    return re.sub(r" [\d.]+ is below ", " is below ", reason)


def augment(
    dataset: Dataset,
    model: str | os.PathLike | Paraphraser = RELEASED,
    column: str = "text",
    n: int = 3,
    *,
    keep_columns: Sequence[str] | None = None,
    batch_size: int = 16,
    backend: str | None = None,
    prompt: str | os.PathLike | None = None,
    dtype: str | None = None,
    trust_remote_code: bool = False,
    **options: Any,
) -> Dataset:
    """Paraphrase a column of a dataset: a row for each paraphrase, beside the columns of its source.

    ```python
    augment(dataset, column="question", n=3, keep_columns=["label"], min_adequacy=0.5)
    ```

    For corpora too large for one machine or one run, the command `hf-paraphrase augment` gives the same rows.

    Args:
        dataset: Rows with a text.
        model: A checkpoint folder, a Hub repository, or a paraphraser that is loaded already; by default the model
            that comes with the package.
        column: Where the text is.
        n: Paraphrases of each row, at most.
        keep_columns: The other columns to keep; None for all.
        batch_size: Batch size, in rows; rows of similar length share a batch.
        backend: Runs the model instead of `generate()`: "ctranslate2", or the address of a server.
        prompt: YAML file with the prompt of a language model.
        dtype: Precision of a model that is loaded here, as in `Paraphraser.from_pretrained`.
        trust_remote_code: Run the code in the named checkpoints.
        options: Further arguments of a `Paraphraser`'s call, such as `min_adequacy`, `decoding` and `seed`.

    Returns:
        The columns that are kept, and `source_id` (the number of the row, from 0), `paraphrase`, `rank` (1 for the
        best), `score`, `adequacy`, `fluency`, `novelty` and `error`. A row that failed, or whose candidates were all
        rejected, has no paraphrase; `error` gives the reason.

    Raises:
        InputError: A column or an argument that cannot be, or a model that cannot be loaded.
    """
    if not isinstance(dataset, Dataset):
        raise InputError(f"`dataset` must be a datasets.Dataset, such as one split, not a {type(dataset).__name__}")
    kept = check_columns(column, keep_columns, dataset.column_names, "`dataset`")
    if isinstance(model, Paraphraser):
        for name, value in {"backend": backend, "prompt": prompt, "dtype": dtype}.items():
            if value is not None:
                raise InputError(f"`{name}` is for a model loaded here; give it to Paraphraser.from_pretrained")
        paraphraser = model
    else:
        paraphraser = Paraphraser.from_pretrained(
            model, trust_remote_code=trust_remote_code, backend=backend, prompt=prompt, dtype=dtype
        )
    ask = RowParaphraser(paraphraser, n, batch_size, **options)

    def paraphrase(rows: dict[str, list], places: list[int]) -> dict[str, list]:
        for place, text in zip(places, rows[column], strict=True):
            if text is not None and not isinstance(text, str):
                raise InputError(f"`dataset`, row {place}: `{column}` is not text: {text!r:.100}")
        made = [
            row
            for at, (place, outcome) in enumerate(zip(places, ask(rows[column]), strict=True))
            for row in make_rows({name: rows[name][at] for name in kept}, str(place), outcome)
        ]
        return {name: [row[name] for row in made] for name in features}

    features = Features({name: dataset.features[name] for name in kept} | ADDED)
    if not len(dataset):
        return Dataset.from_dict({name: [] for name in features}, features=features)
    return dataset.with_format(None).map(
        paraphrase,
        with_indices=True,
        batched=True,
        batch_size=ask.rows_at_once,
        remove_columns=dataset.column_names,
        features=features,
        desc="augmenting",
        # A model under the same name may have been trained on since.
        load_from_cache_file=False,
        new_fingerprint=generate_random_fingerprint(),
    )
