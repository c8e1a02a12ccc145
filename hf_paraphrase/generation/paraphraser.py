"""What a person reaches for who wants paraphrases: several of each text, scored, filtered and unlike each other."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TextClassificationPipeline

from ..common.checks import whole_number
from ..errors import InputError
from ..models.layers.layer_weights import input_device
from ..models.layers.portable import can
from ..models.search.argument_types import check_argument_names
from ..models.search.pipeline_checks import read_array
from ..models.search.retrieved_pairs import load_retriever
from ..models.text.surface import drop_invisible
from ..progress import is_watched
from ..released import RELEASED
from .adequacy import Adequacy, Judged, check_adequacy, load_adequacy
from .backends import load_writer
from .documents import SentenceChange, rewrite_document
from .engine import load_paraphraser
from .fluency import CausalFluency, OwnFluency, load_causal_fluency
from .keep import DEFAULT_KEEP, check_keep
from .limits import SourceCutter, WholeTexts, check_each_is_text
from .loading import check_loading_arguments
from .open_judge import OpenJudge
from .own_text import OwnText
from .paraphrase_choice import MIN_ADEQUACY, MIN_NOVELTY, MIN_OPEN_ADEQUACY, WEIGHTS, Choice, Paraphrase, find_preset
from .paraphrase_table import ParaphrasedTexts, Paraphrases
from .prompts import Prompt
from .server_writer import is_address
from .set_selection import normal_form
from .strength import read_strength, strengthen
from .writers import Ask, write

if TYPE_CHECKING:
    import pandas

    from ..retrieval import ParaphraseRetriever

__all__ = ["Paraphrase", "Paraphraser"]

logger = logging.getLogger(__name__)

# Batches of a list that are sorted by length together.
BATCHES_AT_ONCE = 64
# Nobody looks at each sentence of a document.
DOCUMENT_OPTIONS = {"keep": (*DEFAULT_KEEP, "code", "quotes"), "min_adequacy": 0.1, "min_novelty": 0.1}


class _Call(NamedTuple):
    """What a call of a paraphraser has made of its arguments."""

    choice: Choice
    ask: Ask
    cutter: SourceCutter
    judge: Adequacy
    reader: OwnFluency | CausalFluency

    @property
    def believes_search(self) -> bool:
        """Whether the score of the search is the fluency."""
        return isinstance(self.reader, OwnFluency)


class Paraphraser:
    """Writes paraphrases of texts with any model that generates, with scores to filter them by.

    ```python
    paraphraser = Paraphraser()  # the model that comes with the package; any other by `Paraphraser.from_pretrained`
    paraphraser("Where can I buy a cheap keyboard in Stockholm?", n=3)
    paraphraser(texts, n=5, min_adequacy=0.3, min_novelty=0.3, diversity=0.5, keep=("names", "numbers"), seed=1)
    ```

    Args:
        model: Any encoder-decoder that can generate: those of this package, T5, BART, Marian, Pegasus; or a causal
            language model, which a prompt asks. None for the model that comes with the package.
        tokenizer: Its tokenizer.
        retriever: Finds the pairs of a model that edits by them (FSET); None for that of its checkpoint.
        prefix: What the model reads before every text, such as "paraphrase: "; None for what its config says.
        trust_remote_code: Let what is loaded by its name (encoders, matchers, judges of fluency) run its own code.
        backend: "ctranslate2" to have candidates and scores from CTranslate2, several times as fast on a CPU, for
            BART, Marian, T5 and Pegasus (see `CTranslate2Engine`) and for Llama, Qwen and other causal models (see
            `CTranslate2Generator`); or the address of a server with a language model, such as
            "http://localhost:8080/v1", where `model` is its name there (see `ServerWriter`); None for `generate()`.
        compute_type: The numbers of a backend: "int8", "float32" and so on.
        strength: Of all calls that do not give their own; None for the `default_strength` of the model's config.
        prompt: What a language model is told: a YAML file (see `Prompt`); None for that of the package.

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
        options = {"retriever": retriever, "prefix": prefix, "prompt": prompt, "trust_remote_code": trust_remote_code}
        self.writer = load_writer(model, tokenizer, **options, backend=backend, compute_type=compute_type)
        self.model, self.tokenizer, self.trust_remote_code = (
            self.writer.model,
            self.writer.tokenizer,
            trust_remote_code,
        )
        self.prefix, self.retriever = self.writer.prefix, self.writer.retriever
        strength = getattr(getattr(model, "config", None), "default_strength", None) if strength is None else strength
        self.own_text = OwnText(self.writer)
        self.strength = read_strength(strength)
        self._judges: dict[tuple, Any] = {}

    def __repr__(self) -> str:
        if self.model is None:
            return f"Paraphraser({self.writer.name!r}, {self.writer.address})"
        name = str(self.model.name_or_path)
        name = RELEASED if Path(name).name == RELEASED else name or type(self.model).__name__
        return f"Paraphraser({name!r}, {self.model.num_parameters():,} parameters, {input_device(self.model)})"

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
        """Load a model with its tokenizer, and the retriever that lies beside it where it needs one.

        Args:
            path: A checkpoint folder or Hub repository; by default the model that comes with the package.
            device: Where to put the model; -1 for the CPU, None for the GPU where there is one.
            device_map: Which parts of the model go where, as transformers takes it, in place of `device`.
            retriever: In place of the checkpoint's.
            prefix: As above.
            trust_remote_code: Let the checkpoint's own code run, and as above.
            dtype: Of the model's numbers, as `load_paraphraser` takes it.
            backend: As above.
            compute_type: As above.
            strength: As above.
            prompt: As above.
            revision: A branch, tag or commit of the repository.
            token: For a repository that is not public.
            cache_dir: Where downloads are kept.
            local_files_only: Use what was downloaded before, without a network.
            model_kwargs: Further arguments of the model's `from_pretrained`, such as `offload_folder`, or
                `gguf_file`, a file in `path` with a quantised language model (needs the package gguf).

        Raises:
            InputError: The folder holds no model or no tokenizer, or there is no such device or precision.
            FileNotFoundError: There is no such checkpoint.
        """
        check_loading_arguments(model_kwargs, inspect.signature(cls.from_pretrained).parameters)
        if is_address(backend):
            options = {"prompt": prompt, "strength": strength, "trust_remote_code": trust_remote_code}
            return cls(os.fspath(path), backend=backend, **options)
        hub = {"revision": revision, "token": token, "cache_dir": cache_dir, "local_files_only": local_files_only}
        hub = {name: value for name, value in hub.items() if value is not None}
        model, tokenizer = load_paraphraser(
            path, device, trust_remote_code, dtype, device_map=device_map, causal=True, hub=hub, **model_kwargs
        )
        if retriever is None and can(model.config, "reads_pairs"):
            retriever = load_retriever(model, trust_remote_code, **hub)
        options = {"retriever": retriever, "prefix": prefix, "trust_remote_code": trust_remote_code}
        options |= {"strength": strength, "prompt": prompt}
        return cls(model, tokenizer, **options, backend=backend, compute_type=compute_type)

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
        weights: Sequence[float] = WEIGHTS,
        decoding: str | None = None,
        num_candidates: int | None = None,
        num_neighbors: int | None = None,
        adequacy: str | Callable[[list[str], list[str]], Sequence[float]] = "round_trip",
        select: str | None = None,
        encoder: Any = None,
        matcher: str | os.PathLike | TextClassificationPipeline | None = None,
        fluency: str | os.PathLike | CausalFluency | None = None,
        seed: int = 0,
        batch_size: int = 16,
        max_source_length: int | SourceCutter | WholeTexts | None = None,
        return_rejected: bool = False,
        **generate_kwargs: Any,
    ) -> Paraphrases | ParaphrasedTexts | pandas.Series | Iterator[Paraphrases]:
        """Paraphrase one text or several.

        The paraphrases of a text depend on it, the options and `seed` alone, not on the texts beside it nor on
        `batch_size` (but for the last digits of scores, as batches add floats in another order). None of them is the
        text itself, or twice the same, case, spacing and punctuation aside.

        Args:
            texts: A text; a list, array, pandas Series or DataFrame of texts; or anything else that gives texts, such
                as a generator, which is read a batch at a time. A missing cell has no paraphrases.
            column: Of a DataFrame, the column that holds the texts.
            n: How many paraphrases of each text; fewer come back where no more pass. Of a blank text there are none.
            strength: How far paraphrases are to differ from the text, from 0, as little as may be, to 1, as freely as
                may be. It raises `min_novelty` and `diversity` (see `strengthen`), and a model with control tokens
                reads the one of this strength. None for that of the constructor.
            min_adequacy: Reject what has less adequacy, from 0 to 1. None for 0.1 by "open" and 0.03 by any other
                judge. Look at some scores first: those of "round_trip" depend on the model.
            min_fluency: The same of fluency.
            min_novelty: The same of novelty, PINC against the text: see `score_novelty`.
            diversity: From 0, the best by score, to 1, those least like the text and each other: see
                `choose_diverse`.
            keep: Reject what loses or invents one of these: names, numbers, urls, addresses (of e-mail), placeholders,
                mentions, terms, code and quotes, and words of your own: `keep=("numbers", "umbrella")`, in double
                quotes if a kind has such a name: `keep=['"name"']`. See `find_kept`. By default all but code and
                quotes. A path is a file of terms, one a line. With a model that knows no case, in any case.
            language: The code of the texts' language: in German not every capital makes a name (see `check_keep`).
            weights: Of adequacy, fluency and novelty in `score`, their weighted geometric mean.
            decoding: How candidates are found: "beam" (the default for one paraphrase), "diverse_beam" (for several),
                "dips", "sample" (of language models; with `temperature`, `top_k`, `top_p`), or "noise" (of models that
                embed sentences; with `temperature` and `noise`). CTranslate2 has "beam" alone.
            num_candidates: Candidates of each text; None for 3 times `n`, and 10 at least.
            num_neighbors: Of a model that edits by retrieved pairs, the pairs of each text, which share out the
                candidates; None for 5.
            adequacy: "open", "round_trip", "embedding", "matcher", "jaccard", "mbr", or a function from a list of
                sources and one of candidates to numbers from 0 to 1: see `generation.adequacy`.
            select: Order what passes by one rule, as the pipeline's `select`, in place of `adequacy` and `weights`:
                "score" (fluency alone), "jaccard", "mbr", "embedding" or "matcher" (that adequacy alone).
            encoder: The model that "embedding" asks: see `load_adequacy`.
            matcher: The model that "matcher" asks: a classifier of sentence pairs, also of inference.
            fluency: None to ask the model itself (`OwnFluency`), or the folder or Hub repository of a causal language
                model (`CausalFluency`), such as "gpt2".
            seed: Of all that is drawn at random.
            batch_size: Texts, and then candidates, in a batch; halved where memory is short.
            max_source_length: Most tokens of a text, prefix included; a warning counts the texts that are cut. None
                for `tokenizer.model_max_length`, the model's positions or 1,024, whichever is least.
            return_rejected: Return rejected candidates too, last, each with its `reason`; a refused text is its own.
            generate_kwargs: Arguments of `generate()`, such as `num_beams`, `max_new_tokens`, `diversity_penalty`.

        Returns:
            For a text its paraphrases, the best first; for a list or an array a list of such lists; for a Series, or a
            column of a DataFrame, a Series of them with the same index; for anything else an iterator over them.

        Raises:
            InputError: An argument that cannot be, or a model that cannot be loaded, said before any text is read; or
                something among the texts is none.
        """
        try:
            check_argument_names(generate_kwargs, inspect.signature(Paraphraser.__call__).parameters, self.model)
        except ValueError as error:
            raise InputError(str(error)) from None
        n, batch_size = whole_number("n", n, 1), whole_number("batch_size", batch_size, 1)
        strength = read_strength(self.strength if strength is None else strength)
        num_candidates = max(10, 3 * n) if num_candidates is None else num_candidates
        num_candidates = whole_number("num_candidates", num_candidates, 1)
        if num_candidates < n:
            raise InputError(f"`num_candidates` must be at least `n`, {n}, not {num_candidates}")
        if select is not None:
            adequacy, weights = find_preset(select, adequacy, weights)
        choice = Choice(
            n=n,
            min_adequacy=MIN_ADEQUACY if min_adequacy is None else min_adequacy,
            min_fluency=min_fluency,
            min_novelty=min_novelty,
            diversity=diversity,
            keep=check_keep(keep, language),
            weights=weights,
            return_rejected=return_rejected,
        )
        if strength is not None:
            choice = strengthen(choice, strength)
        num_neighbors = None if num_neighbors is None else whole_number("num_neighbors", num_neighbors, 1)
        seed = whole_number("seed", seed)
        check_adequacy(adequacy, encoder, matcher)
        cutter = max_source_length
        if not isinstance(cutter, SourceCutter | WholeTexts):
            cutter = self.writer.cutter(max_source_length)
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
        judge = self._judge_of(adequacy, encoder, matcher)
        if min_adequacy is None and isinstance(judge, OpenJudge):
            choice = replace(choice, min_adequacy=MIN_OPEN_ADEQUACY)
        call = _Call(choice, ask, cutter, judge, self._reader_of(fluency))
        index = texts.index if hasattr(texts, "iloc") else None
        try:
            texts = read_array(texts, column)
        except ValueError as error:
            raise InputError(f"`texts`: {error}") from None
        if isinstance(texts, str):
            check_each_is_text([texts], 0)
            (found,) = self._paraphrase([texts], call)
            _warn_of_cut(cutter)
            return found
        if not isinstance(texts, Iterable):
            raise InputError(f"`texts` must be a text or give texts, not a {type(texts).__name__}")
        is_list = isinstance(texts, Sequence)
        if is_list:
            check_each_is_text(texts, 0)
        total = len(texts) if is_list else None
        stream = self._stream(iter(texts), total, call)
        if index is not None:
            import pandas  # which the caller has

            return pandas.Series(list(stream), index=index, dtype=object)
        return ParaphrasedTexts(stream) if is_list else stream

    def document(
        self,
        text: str | bytes,
        format: str = "auto",
        return_changes: bool = False,
        language: str = "en",
        **options: Any,
    ) -> str | bytes | tuple[str | bytes, list[SentenceChange]]:
        """Rewrite the sentences of a document; all else stays byte for byte: see `rewrite_document`.

        Args:
            text: The document; of a .docx its bytes.
            format: "markdown", "plain", "subtitles", "html", "docx", or "auto" to tell the first two apart.
            return_changes: Return what became of every sentence too, and why one was left.
            language: The code of its language, by which abbreviations and names are known.
            options: As a call takes them, but for `return_rejected`. By default three candidates of each sentence may
                be tried; all that `keep` knows is kept; and a sentence is left whose candidates have
                less than 0.1 of adequacy or novelty. A sentence longer than the model reads is left too.

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

        rewritten = rewrite_document(text, rewrite, format, return_changes, language)
        if not return_changes:
            return rewritten
        document, changes = rewritten
        return document, [one._replace(reason=refusals.get(one.before) or one.reason) for one in changes]

    def _stream(self, texts: Iterator[str], total: int | None, call: _Call) -> Iterator[Paraphrases]:
        """Paraphrase many texts at a time; of an endless generator no more is read than a batch."""
        batch_size, batches = call.ask.batch_size, 1 if total is None else BATCHES_AT_ONCE
        # Of one batch there is no progress to show, nor by whoever hands over one after the other.
        is_shown = is_watched() and (total is None or total > batch_size)
        if is_shown and total is not None:  # the bar is to move, ten times at least
            batches = min(batches, max(1, total // (10 * batch_size)))
        at_once = batch_size * batches
        with tqdm(total=total, desc="paraphrasing", unit="text", disable=not is_shown) as progress:
            done = 0
            while part := list(islice(texts, at_once)):
                check_each_is_text(part, done)
                yield from self._paraphrase(part, call)
                done += len(part)
                progress.update(len(part))
        _warn_of_cut(call.cutter)

    def _paraphrase(self, texts: list[str], call: _Call) -> list[Paraphrases]:
        """Write, sift, judge and choose, all texts at a time, so that batches are of like lengths."""
        choice, batch_size = call.choice, call.ask.batch_size
        texts = [drop_invisible(text) for text in texts]
        refusals = self.own_text.find_refusals(texts, batch_size)
        worded = [place for place, text in enumerate(texts) if normal_form(text) and refusals[place] is None]
        # What models read; what is kept, and what the paraphrases are to differ from, is the whole text.
        read = [call.cutter(texts[place]) for place in worded]
        groups, judged = [], []
        for place, source, written in zip(worded, read, write(self.writer, read, call.ask), strict=True):
            first = {one.text: one for one in reversed(written)}
            known = {text: one.fluency for text, one in first.items()} if call.believes_search else {}
            outputs = [one.text for one in written]
            options = {"fluency": known, "ignore_case": self.writer.ignores_case}
            options["reasons"] = {text: one.reason for text, one in first.items()}
            groups.append(choice.sift(texts[place], outputs, **options))
            judged += [
                Judged(source, one.text, first[one.text].pair, one.fluency) for one in groups[-1] if one.reason is None
            ]
        fluencies = call.reader(judged, batch_size)
        if choice.min_fluency and None in fluencies:
            raise InputError("`min_fluency`: the server gives no log-probabilities; name a model by `fluency=`")
        scores = zip(call.judge(judged, batch_size), fluencies, strict=True)
        found = [
            Paraphrases([Paraphrase(text, reason=refusal)] * bool(refusal and choice.return_rejected), text, refusal)
            for text, refusal in zip(texts, refusals, strict=True)
        ]
        for place, group in zip(worded, groups, strict=True):
            scored = [
                one
                if one.reason is not None
                else one._replace(**dict(zip(("adequacy", "fluency"), next(scores), strict=True)))
                for one in group
            ]
            found[place] += choice.choose(texts[place], scored)
        return found

    def _judge_of(self, adequacy: Any, encoder: Any, matcher: Any) -> Adequacy:
        """What judges adequacy; models that are named are loaded once."""

        def load() -> Adequacy:
            options = {"encoder": encoder, "matcher": matcher, "trust_remote_code": self.trust_remote_code}
            return load_adequacy(adequacy, self.writer, **options)

        named = (adequacy, encoder, matcher)
        is_named = all(value is None or isinstance(value, str | os.PathLike) for value in named)
        return self._loaded(named, load) if is_named else load()

    def _reader_of(self, fluency: Any) -> OwnFluency | CausalFluency:
        if fluency is None:
            return OwnFluency(self.writer)
        if isinstance(fluency, CausalFluency):
            return fluency
        if not isinstance(fluency, str | os.PathLike):
            raise InputError(f"`fluency` must be the name of a causal language model, not {fluency!r:.100}")
        return self._loaded(
            ("fluency", fluency),
            lambda: load_causal_fluency(fluency, self.writer.device, self.trust_remote_code),
        )

    def _loaded(self, name: tuple, load: Callable[[], Any]) -> Any:
        if name not in self._judges:
            self._judges[name] = load()
        return self._judges[name]


def _warn_of_cut(cutter: SourceCutter) -> None:
    if cutter.cut and not cutter.quiet:
        logger.warning(cutter.describe())
