"""The main class: diverse paraphrases of texts, scored and filtered."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TextClassificationPipeline

from ..common.checks import whole_number
from ..common.errors import InputError
from ..common.files import check_unicode
from ..common.progress import is_watched
from ..models.layers.layer_weights import input_device
from ..models.layers.portable import can
from ..models.layers.products import prepacked
from ..models.search.pipeline_checks import check_argument_names, load_retriever, read_array
from ..models.text.encoded_inputs import check_strength
from ..models.text.surface import drop_invisible
from ..released import RELEASED
from . import judges
from .backends import load_writer
from .documents import SentenceChange, rewrite_document
from .engine import SourceCutter
from .int8 import count_parameters
from .loading import check_loading_arguments, load_paraphraser
from .paraphrase_choice import MIN_ADEQUACY, MIN_NOVELTY, MIN_OPEN_ADEQUACY, Choice, Paraphrase, find_rule, normal_form
from .paraphrase_table import ParaphrasedTexts, Paraphrases
from .prompts import Prompt
from .protected_text import DEFAULT_KEEP, check_keep
from .server_writer import is_address
from .writers import Ask, Judged, write

if TYPE_CHECKING:
    import pandas

    from ..retrieval import ParaphraseRetriever

logger = logging.getLogger(__name__)

# Batches of a list that are sorted by length together.
BATCHES_AT_ONCE = 64
# The novelty that is wanted at strength 1: the score of a candidate falls unless 60% of its n-grams are new, so that a
# closer one is chosen only where it is much better, or none is so free.
STRONGEST_NOVELTY = 0.6
# Stricter than for texts, since people do not check every sentence of a document.
DOCUMENT_OPTIONS: dict[str, Any] = {"keep": (*DEFAULT_KEEP, "code", "quotes"), "min_adequacy": 0.1, "min_novelty": 0.1}


class _Call(NamedTuple):
    """The checked arguments of a call."""

    choice: Choice
    ask: Ask
    cutter: SourceCutter
    judge: judges.Adequacy
    reader: judges.OwnFluency | judges.CausalFluency


class Paraphraser:
    """Paraphrases texts with any generative model, and scores every paraphrase.

    ```python
    paraphraser = Paraphraser()  # the model that comes with the package; any other by `Paraphraser.from_pretrained`
    paraphraser("Where can I buy a cheap keyboard in Stockholm?", n=3)
    paraphraser(texts, n=5, min_adequacy=0.3, min_novelty=0.3, diversity=0.5, keep=("names", "numbers"), seed=1)
    ```

    Args:
        model: An encoder-decoder (this package's, T5, BART, Marian, Pegasus) or a causal language model, which is
            prompted. None for the built-in model.
        tokenizer: Its tokenizer.
        retriever: Retrieves the pairs that FSET edits by; None for the checkpoint's.
        prefix: Text put before every source, such as "paraphrase: "; None for the config's.
        trust_remote_code: Let encoders, matchers and fluency judges that are loaded by name run their own code.
        backend: "ctranslate2" generates and scores with CTranslate2, several times as fast on a CPU, for BART, Marian,
            T5 and Pegasus (see `CTranslate2Writer`) and for Llama, Qwen and other causal models (see
            `CTranslate2LanguageModelWriter`). The address of a language model server, such as
            "http://localhost:8080/v1", makes `model` a name on that server (see `ServerWriter`). None for
            `generate()`.
        compute_type: Precision of the backend, such as "int8" or "float32".
        strength: Default for all calls; None for the `default_strength` of the model's config.
        prompt: Prompt of a language model, a YAML file (see `Prompt`); None for the built-in one.

    Raises:
        ValueError: The model cannot generate, or has no retriever that it needs.
        InputError: The backend is not installed, or cannot run the model.
    """

    def __init__(
        self,
        model: PreTrainedModel | str | None = None,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        retriever: ParaphraseRetriever | None = None,
        prefix: str | None = None,
        trust_remote_code: bool = False,
        backend: str | None = None,
        compute_type: str = "int8",
        strength: float | None = None,
        prompt: str | os.PathLike | Prompt | None = None,
    ):
        is_elsewhere = is_address(backend)
        if is_elsewhere != isinstance(model, str):
            raise InputError("`model` is the name of a model where `backend` is an address, and only there")
        if not is_elsewhere and (model is None) != (tokenizer is None):
            raise InputError("`model` and `tokenizer` go together: pass both, or neither for the released model")
        if model is None:
            model, tokenizer = load_paraphraser()
        options: dict[str, Any] = {"retriever": retriever, "prefix": prefix, "prompt": prompt}
        options |= {"trust_remote_code": trust_remote_code, "backend": backend, "compute_type": compute_type}
        self.writer = writer = load_writer(model, tokenizer, **options)
        self.model, self.tokenizer, self.prefix = writer.model, writer.tokenizer, writer.prefix
        self.retriever, self.trust_remote_code = writer.retriever, trust_remote_code
        strength = getattr(getattr(model, "config", None), "default_strength", None) if strength is None else strength
        self.own_text = judges.OwnText(self.writer)
        self.strength = _check_strength(strength)
        self._judges: dict[tuple, Any] = {}

    def __repr__(self) -> str:
        if self.model is None:
            return f"Paraphraser({self.writer.name!r}, {self.writer.address})"
        name = str(self.model.name_or_path)
        name = RELEASED if Path(name).name == RELEASED else name or type(self.model).__name__
        return f"Paraphraser({name!r}, {count_parameters(self.model):,} parameters, {input_device(self.model)})"

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike = RELEASED,
        *,
        device: str | int | torch.device | None = None,
        device_map: Any = None,
        retriever: ParaphraseRetriever | None = None,
        prefix: str | None = None,
        trust_remote_code: bool = False,
        dtype: str | torch.dtype | None = None,
        backend: str | None = None,
        compute_type: str = "int8",
        strength: float | None = None,
        prompt: str | os.PathLike | Prompt | None = None,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | os.PathLike | None = None,
        local_files_only: bool | None = None,
        **model_kwargs: Any,
    ) -> Paraphraser:
        """Load a model with its tokenizer and, if it needs one, the retriever in its folder.

        Args:
            path: A checkpoint folder or Hub repository; by default the built-in model.
            device: Device of the model; -1 for the CPU, None for a GPU if available.
            device_map: Device map of transformers, instead of `device`.
            retriever: Used instead of the checkpoint's.
            prefix: As above.
            trust_remote_code: Let the checkpoint's own code run, and as above.
            dtype: Precision of the model, as in `load_paraphraser`.
            backend: As above.
            compute_type: As above.
            strength: As above.
            prompt: As above.
            revision: A branch, tag or commit of the repository.
            token: Access token for private repositories.
            cache_dir: Folder for downloads.
            local_files_only: Use only cached files, without network access.
            model_kwargs: Further arguments of the model's `from_pretrained`, such as `offload_folder`, or
                `gguf_file`, a file in `path` with a quantised language model (needs the package gguf).

        Raises:
            InputError: The folder has no model or no tokenizer, or the device or precision does not exist.
            FileNotFoundError: There is no such checkpoint.
        """
        check_loading_arguments(model_kwargs, inspect.signature(cls.from_pretrained).parameters)
        own: dict[str, Any] = {"prompt": prompt, "strength": strength, "trust_remote_code": trust_remote_code}
        own |= {"backend": backend}
        if is_address(backend):
            return cls(os.fspath(path), **own)
        hub = {"revision": revision, "token": token, "cache_dir": cache_dir, "local_files_only": local_files_only}
        hub = {name: value for name, value in hub.items() if value is not None}
        model, tokenizer = load_paraphraser(
            path, device, trust_remote_code, dtype, device_map=device_map, causal=True, hub=hub, **model_kwargs
        )
        if retriever is None and can(model.config, "reads_pairs"):
            retriever = load_retriever(model, trust_remote_code, **hub)
        return cls(model, tokenizer, retriever=retriever, prefix=prefix, compute_type=compute_type, **own)

    def __call__(
        self,
        texts: str | Iterable[str],
        n: int = 3,
        *,
        column: str | None = None,
        strength: float | None = None,
        min_adequacy: float | None = None,
        min_fluency: float = 0.0,
        min_novelty: float = MIN_NOVELTY,
        diversity: float = 0.0,
        keep: Sequence[str | os.PathLike] | os.PathLike = DEFAULT_KEEP,
        language: str = "en",
        weights: Sequence[float] | None = None,
        decoding: str | None = None,
        num_candidates: int | None = None,
        num_neighbors: int | None = None,
        adequacy: str | Callable[[list[str], list[str]], Sequence[float]] = "round_trip",
        select: str | None = None,
        encoder: Any = None,
        matcher: str | os.PathLike | TextClassificationPipeline | None = None,
        fluency: str | os.PathLike | judges.CausalFluency | None = None,
        seed: int = 0,
        batch_size: int = 16,
        max_source_length: int | SourceCutter | None = None,
        return_rejected: bool = False,
        **generate_kwargs: Any,
    ) -> Paraphrases | ParaphrasedTexts | pandas.Series | Iterator[Paraphrases]:
        """Paraphrase one text or several.

        A text's paraphrases depend only on the text, the options and `seed`, not on its batch (except for the last
        digits of scores, since batches add floats in another order). Apart from case, spacing and punctuation, they
        differ from the text and from each other.

        Args:
            texts: A text; a list, array, pandas Series or DataFrame of texts; or any other iterable, such as a
                generator, which is read batch by batch. Missing cells get no paraphrases.
            column: The column of a DataFrame with the texts.
            n: Maximum number of paraphrases per text; fewer come back if fewer pass. Blank texts get none.
            strength: How freely to paraphrase, from 0 (close to the text) to 1. It prefers candidates that are new
                enough (see `STRONGEST_NOVELTY`), and selects the control token of a model that has them. None for the
                constructor's.
            min_adequacy: Minimum adequacy, 0 to 1. None for 0.1 with "open", 0.03 with any other judge. Look at some
                scores first: "round_trip" depends on the model.
            min_fluency: Minimum fluency.
            min_novelty: Minimum novelty, PINC against the text: see `score_novelty`.
            diversity: From 0 (rank by score alone) to 1 (prefer paraphrases unlike the text and each other): see
                `choose_diverse`.
            keep: Reject candidates that lose or invent one of these: names, numbers, urls, addresses (of e-mail),
                placeholders, mentions, terms, code and quotes, and words of your own: `keep=("numbers", "umbrella")`,
                in double quotes if a kind has such a name: `keep=['"name"']`. See `find_kept`. By default all but code
                and quotes. A path is a file of terms, one per line. Case counts only if the model is cased.
            language: Language code of the texts: in German, capitals do not mark names (see `check_keep`).
            weights: Weights of adequacy, fluency and novelty in `score`, their geometric mean. None for 1, 3 and 0.25,
                and with `fluency` for 1, 1 and 0.25.
            decoding: Decoding method: "beam" (the default for one paraphrase), "diverse_beam" (for several),
                "dips", "sample" (of language models; with `temperature`, `top_k`, `top_p`), or "noise" (of models that
                embed sentences; with `temperature` and `noise`). CTranslate2 supports only "beam".
            num_candidates: Candidates per text; None for 3 times `n`, at least 16.
            num_neighbors: Retrieved pairs per text, among which FSET divides the candidates; None for 5.
            adequacy: "open", "round_trip", "embedding", "matcher", "jaccard", "mbr", or a function from a list of
                sources and one of candidates to numbers from 0 to 1: see `load_adequacy`.
            select: Rank by one rule, as the pipeline's `select` does, instead of `adequacy` and `weights`:
                "score" (fluency alone), "jaccard", "mbr", "embedding" or "matcher" (that adequacy alone).
            encoder: Sentence encoder of "embedding": see `load_adequacy`.
            matcher: Sentence-pair classifier of "matcher"; natural language inference works too.
            fluency: None for the model itself (`OwnFluency`), or the folder or Hub repository of a causal language
                model (`CausalFluency`), such as "gpt2".
            seed: Random seed.
            batch_size: Texts, and then candidates, per batch; halved when memory runs out.
            max_source_length: Maximum tokens of a text, prefix included; a warning counts the texts that are cut. None
                for `tokenizer.model_max_length`, the model's positions or 1,024, whichever is smallest.
            return_rejected: Append rejected candidates, each with its `reason`; a refused text is its own.
            generate_kwargs: Arguments of `generate()`, such as `num_beams`, `max_new_tokens`, `diversity_penalty`.

        Returns:
            For a text its paraphrases, the best first; for a list or an array a list of such lists; for a Series, or a
            column of a DataFrame, a Series of them with the same index; for anything else an iterator over them.

        Raises:
            InputError: An argument is invalid or a model cannot be loaded (raised before any text is read), or an item
                of `texts` is not text.
        """
        try:
            check_argument_names(generate_kwargs, inspect.signature(Paraphraser.__call__).parameters, self.model)
        except ValueError as error:
            raise InputError(str(error)) from None
        n, batch_size = whole_number("n", n, 1), whole_number("batch_size", batch_size, 1)
        strength = _check_strength(self.strength if strength is None else strength)
        num_candidates = max(16, 3 * n) if num_candidates is None else num_candidates
        num_candidates = whole_number("num_candidates", num_candidates, 1)
        if num_candidates < n:
            raise InputError(f"`num_candidates` must be at least `n`, {n}, not {num_candidates}")
        adequacy, weights = find_rule(select, adequacy, weights, fluency is not None)
        least = MIN_OPEN_ADEQUACY if adequacy == "open" else MIN_ADEQUACY
        choice = Choice(
            n=n,
            min_adequacy=least if min_adequacy is None else min_adequacy,
            min_fluency=min_fluency,
            min_novelty=min_novelty,
            wanted_novelty=STRONGEST_NOVELTY * (strength or 0.0),
            diversity=diversity,
            keep=check_keep(keep, language),
            weights=weights,
            return_rejected=return_rejected,
        )
        num_neighbors = None if num_neighbors is None else whole_number("num_neighbors", num_neighbors, 1)
        seed = whole_number("seed", seed)
        cutter = max_source_length
        if not isinstance(cutter, SourceCutter):
            cutter = self.writer.cutter(cutter)
        ask = Ask(
            decoding=decoding or self.writer.default_decoding(n),
            num_candidates=num_candidates,
            num_neighbors=num_neighbors,
            seed=seed,
            batch_size=batch_size,
            max_source_length=cutter.limit,
            strength=strength if self.writer.reads_strength else None,
            keep=choice.keep,
            generate_kwargs=generate_kwargs,
        )
        self.writer.check(ask)
        call = _Call(choice, ask, cutter, self._judge_of(adequacy, encoder, matcher), self._reader_of(fluency))
        index = getattr(texts, "index", None) if hasattr(texts, "iloc") else None
        try:
            texts = read_array(texts, column)
        except ValueError as error:
            raise InputError(f"`texts`: {error}") from None
        if isinstance(texts, str):
            (found,) = self._stream(iter([texts]), 1, call)
            return found
        if not isinstance(texts, Iterable):
            raise InputError(f"`texts` must be a text or give texts, not a {type(texts).__name__}")
        total = None
        if isinstance(texts, Sequence):
            _check_each_is_text(texts, 0)
            total = len(texts)
        stream = self._stream(iter(texts), total, call)
        if index is not None:
            import pandas  # which the caller has

            return pandas.Series(list(stream), index=index, dtype=object)
        return stream if total is None else ParaphrasedTexts(stream)

    def document(
        self,
        text: str | bytes,
        format: str = "auto",
        return_changes: bool = False,
        language: str = "en",
        **options: Any,
    ) -> str | bytes | tuple[str | bytes, list[SentenceChange]]:
        """Rewrite the sentences of a document and leave everything else byte for byte: see `rewrite_document`.

        Args:
            text: The document; for .docx, the bytes of the file.
            format: "markdown", "plain", "subtitles", "html", "docx", or "auto" to distinguish the first two.
            return_changes: Also return the outcome of every sentence, with the reason where it stayed.
            language: Language code of the document; it decides on abbreviations and names.
            options: Arguments of a call, except `return_rejected`. By default, up to three candidates of a sentence
                are tried, every kind of `keep` is kept, and adequacy and novelty must reach 0.1. A sentence longer
                than the model's input stays unchanged.

        Returns:
            The new document; with `return_changes` a pair of it and the records.

        Raises:
            InputError: An argument that cannot be.
        """
        if options.get("return_rejected"):
            raise InputError("`return_rejected` is for texts; `return_changes` says why a sentence was left")
        options = {**DOCUMENT_OPTIONS, "language": language, **options}
        cutter = self.writer.cutter(options.get("max_source_length"), quiet=True)
        refusals: dict[str, str | None] = {}

        def rewrite(sentences: list[str]) -> list[list[str] | None]:
            # What was cut would be rewritten from its beginning alone.
            whole = [sentence for sentence in sentences if cutter(sentence) == sentence]
            found = dict(zip(whole, self(whole, **options), strict=True))
            refusals.update((sentence, found[sentence].refusal) for sentence in whole)
            return [[one.text for one in found[sentence]] if sentence in found else None for sentence in sentences]

        document, changes = rewrite_document(text, rewrite, format, language)
        if not return_changes:
            return document
        return document, [one._replace(reason=refusals.get(one.before) or one.reason) for one in changes]

    def _stream(self, texts: Iterator[str], total: int | None, call: _Call) -> Iterator[Paraphrases]:
        """Paraphrase in large groups of batches; an endless generator is read one batch at a time."""
        batch_size, batches = call.ask.batch_size, 1 if total is None else BATCHES_AT_ONCE
        # A single batch has no progress to show.
        is_shown = is_watched() and (total is None or total > batch_size)
        if is_shown and total is not None:  # the bar should move at least ten times
            batches = min(batches, max(1, total // (10 * batch_size)))
        at_once = batch_size * batches
        with tqdm(total=total, desc="paraphrasing", unit="text", disable=not is_shown) as progress:
            done = 0
            while part := list(islice(texts, at_once)):
                _check_each_is_text(part, done)
                # A model on a server has no weights here; others are packed once for the search and the judge.
                with nullcontext() if self.model is None else prepacked(self.model):
                    found = self._write_and_choose(part, call)
                yield from found
                done += len(part)
                progress.update(len(part))
        if call.cutter.cut and not call.cutter.quiet:
            logger.warning(call.cutter.describe())

    def _write_and_choose(self, texts: list[str], call: _Call) -> list[Paraphrases]:
        """Write, sift, judge and choose for all texts together, so that batches hold texts of similar length."""
        choice, batch_size = call.choice, call.ask.batch_size
        texts = [drop_invisible(text) for text in texts]
        refusals = self.own_text.find_refusals(texts, batch_size)
        worded = [place for place, text in enumerate(texts) if normal_form(text) and refusals[place] is None]
        # Models read the cut text; `keep` and novelty refer to the whole text.
        read = [call.cutter(texts[place]) for place in worded]
        groups, judged = [], []
        for place, source, written in zip(worded, read, write(self.writer, read, call.ask), strict=True):
            if not isinstance(call.reader, judges.OwnFluency):  # the search's score serves as no other model's
                written = [one._replace(fluency=None) for one in written]
            pairs = {one.text: one.pair for one in reversed(written)}
            group = choice.sift(texts[place], written, ignore_case=self.writer.ignores_case)
            passing = [one for one in group if one.reason is None]
            groups.append(group)
            judged.append([Judged(source, one.text, pairs[one.text], one.fluency) for one in passing])
        fluencies = call.reader([one for group in judged for one in group], batch_size)
        if choice.min_fluency and None in fluencies:
            raise InputError("`min_fluency`: the server gives no log-probabilities; name a model by `fluency=`")
        numbers = iter(fluencies)
        for group in groups:
            group[:] = [one if one.reason is not None else one._replace(fluency=next(numbers)) for one in group]
        choice.judge(groups, judged, call.judge, batch_size, judges.judges_alone(call.judge))
        found = [
            Paraphrases([Paraphrase(text, reason=refusal)] * bool(refusal and choice.return_rejected), text, refusal)
            for text, refusal in zip(texts, refusals, strict=True)
        ]
        for place, group in zip(worded, groups, strict=True):
            found[place] += choice.choose(texts[place], group)
        return found

    def _judge_of(self, adequacy: Any, encoder: Any, matcher: Any) -> judges.Adequacy:
        """The judge of adequacy; models given by name are loaded once."""
        options = {"encoder": encoder, "matcher": matcher, "trust_remote_code": self.trust_remote_code}
        load = partial(judges.load_adequacy, adequacy, self.writer, **options)
        named = (adequacy, encoder, matcher)
        is_named = all(value is None or isinstance(value, str | os.PathLike) for value in named)
        return self._loaded(named, load) if is_named else load()

    def _reader_of(self, fluency: Any) -> judges.OwnFluency | judges.CausalFluency:
        if fluency is None:
            return judges.OwnFluency(self.writer)
        if isinstance(fluency, judges.CausalFluency):
            return fluency
        if not isinstance(fluency, str | os.PathLike):
            raise InputError(f"`fluency` must be the name of a causal language model, not {fluency!r:.100}")
        load = partial(judges.load_causal_fluency, fluency, self.writer.device, self.trust_remote_code)
        return self._loaded(("fluency", fluency), load)

    def _loaded(self, name: tuple, load: Callable[[], Any]) -> Any:
        if name not in self._judges:
            self._judges[name] = load()
        return self._judges[name]


def _check_strength(strength: float | None) -> float | None:
    try:
        check_strength(strength)
    except ValueError as error:
        raise InputError(str(error)) from None
    return strength


def _check_each_is_text(texts: Sequence[Any], first: int) -> None:
    for number, text in enumerate(texts, first):
        if not isinstance(text, str):
            raise InputError(f"`texts`, number {number} from 0: a {type(text).__name__}, not a text: {text!r:.100}")
        check_unicode(text, f"`texts`, number {number} from 0")
