"""Training tokenizers whose files load by AutoTokenizer alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Literal

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from ..common.errors import InputError

# Their order gives the ids 0 to 3.
SPECIAL_TOKENS = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}

# Hyphens and dashes next to a space become separate symbols, so that decoding knows which ones join two words.
BESIDE_SPACE = {"-": "⁃", "–": "‒", "—": "―"}  # hyphen bullet, figure dash, horizontal bar: hardly anyone types them
# Curly apostrophes become straight, and straight quotation marks curly, since only curly ones show their side.
# Decoding makes quotation marks straight again.
CHARACTERS: tuple[tuple[str | Regex, str], ...] = (
    ("’", "'"),
    (Regex(r"(?<![^\s(\[{])\""), "“"),
    ('"', "”"),
    *((Regex(rf"(?<!\S){sign}|{sign}(?!\S)"), own) for sign, own in BESIDE_SPACE.items()),
)

LETTER = r"[\p{L}\p{M}\p{N}_]"
TOKEN = "|".join(
    (
        rf"(?<!{LETTER})\p{{L}}(?:\.\p{{L}})+\.?(?!{LETTER})",  # p.m., e.g.
        rf"'s(?!{LETTER})",  # the ending of dog's and of what's
        rf"{LETTER}+(?:(?:'(?!s(?!{LETTER}))|(?<=\p{{N}})[.,:](?=\p{{N}})){LETTER}+)*",  # a word, don't, 4:30, 1,000
        rf"[^\s{LETTER[1:-1]}]",
    )
)
NO_SPACE = (
    r" (?=[.,!?;:%)\]}…”/–—-])|(?<=[(\[{$#“/–—-]) ",
    r" (?='s(?: |$))|(?<=s) (?=' )",  # dog's, the dogs' toys
)


def train_word_tokenizer(
    texts: Iterable[str], vocab_size: int, lowercase: bool = True, sentence_pairs: bool = False
) -> PreTrainedTokenizerFast:
    """Train a tokenizer of whole words: the most frequent ones of `texts`, `<unk>` for all others.

    Texts are normalised (NFC), split at white space and around punctuation, and encoded as `words </s>`; decoders
    start from `<s>`. Contractions (don't), numbers (4:30, 1,000) and abbreviations (p.m.) are one word; hyphens and
    the 's of dog's are words of their own, so that rare compounds and possessives need no `<unk>`. Decoding joins all
    of it again; a hyphen or dash beside a space is another word than one between letters, and gets its spaces back.
    The strings `<s>`, `</s>` and so on in a text are punctuation like any other, never control tokens. Words of equal
    frequency are taken in the order of their characters, so the same texts give the same vocabulary.

    Args:
        texts: Training texts; read once, in order.
        vocab_size: Maximum number of words, with four special tokens (`<pad>` 0, `<s>` 1, `</s>` 2, `<unk>` 3).
        lowercase: Whether to lower-case everything.
        sentence_pairs: Whether to return `token_type_ids` too, 1 for the words of a second text and its `</s>`, as
            the models need that match two sentences. A pair is encoded as `words </s> words </s>` in any case.

    Returns:
        A fast tokenizer. What it saves is loaded by `AutoTokenizer` without this package.

    Raises:
        InputError: A text is not a string, there are no words, or `vocab_size` is too small for any.
    """
    tokenizer = Tokenizer(models.WordLevel(unk_token=SPECIAL_TOKENS["unk_token"]))
    steps = [normalizers.NFC(), *(normalizers.Replace(*change) for change in CHARACTERS)]
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Lowercase()] if lowercase else steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(TOKEN), behavior="removed", invert=True)
    tokenizer.decoder = decoders.Sequence(
        [
            # It puts a space before every token that lacks its prefix: no token starts with two NULs.
            decoders.WordPiece(prefix="\0\0", cleanup=False),
            decoders.Fuse(),
            decoders.Replace(Regex("|".join(NO_SPACE)), ""),
            decoders.Replace(Regex("[“”]"), '"'),
            *(decoders.Replace(own, sign) for sign, own in BESIDE_SPACE.items()),
        ]
    )
    return train_fast(tokenizer, trainers.WordLevelTrainer, texts, vocab_size, sentence_pairs)


def train_fast(
    tokenizer: Tokenizer,
    make_trainer: Callable[..., trainers.Trainer],
    texts: Iterable[str],
    vocab_size: int,
    sentence_pairs: bool = False,
    alphabet: Sequence[str] = (),
) -> PreTrainedTokenizerFast:
    """The common part of training all kinds of tokenizers.

    `alphabet` has characters that the vocabulary has whether `texts` have them or not.

    Raises:
        InputError: A text is not a string, there is no word at all, or `vocab_size` has no room for one.
    """
    if isinstance(texts, str):
        raise InputError("`texts` is one string; pass a list of strings")
    special, options = list(SPECIAL_TOKENS.values()), {"initial_alphabet": list(alphabet)} if alphabet else {}
    given = len(special) + len(alphabet)
    if vocab_size <= given:
        names = "special tokens and single bytes" if alphabet else "special tokens"
        raise InputError(f"`vocab_size` is {vocab_size}, of which {given} are {names}; give it room for words")
    trainer = make_trainer(vocab_size=vocab_size, special_tokens=special, show_progress=False, **options)
    has_words = False

    def read() -> Iterator[str]:
        nonlocal has_words
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"`texts` must be strings, but item {index} is {text!r}")
            try:
                text.encode()
            except UnicodeEncodeError as error:
                problem = f"holds half a character at {error.start}: {text!r}"
                raise InputError(f"`texts`: item {index} {problem}") from None
            has_words = has_words or bool(text.strip())
            yield text

    tokenizer.train_from_iterator(read(), trainer)
    if tokenizer.get_vocab_size() == given and not has_words:
        raise InputError("`texts` hold no word to make a vocabulary of")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B:1 </s>:1", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "attention_mask", *(["token_type_ids"] if sentence_pairs else [])],
        clean_up_tokenization_spaces=False,
        split_special_tokens=True,
        **SPECIAL_TOKENS,
    )


BYTES = pre_tokenizers.ByteLevel.alphabet()
# The parts of `tokenizers` that make each kind of sub-words.
SUBWORDS: dict[str, tuple[Callable[[], models.Model], Callable[..., trainers.Trainer]]] = {
    "bpe": (models.BPE, trainers.BpeTrainer),
    "unigram": (models.Unigram, partial(trainers.UnigramTrainer, unk_token=SPECIAL_TOKENS["unk_token"])),
}


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int,
    model: Literal["word", "bpe", "unigram"] = "word",
    lowercase: bool = True,
    sentence_pairs: bool = False,
) -> PreTrainedTokenizerFast:
    """Train a tokenizer of whole words, or of sub-words that need no `<unk>` for any text.

    Words are those of `train_word_tokenizer`. Sub-words are made of the bytes of UTF-8, all 256 of which are in the
    vocabulary: what was never seen is spelt, and decoding gives the normalised text back, character by character. That
    text is in NFC and, unless `lowercase=False`, in lower case, with one space for any white space and none at its
    ends.

    Args:
        texts: Training texts; read once, in order.
        vocab_size: Maximum number of tokens, with four special ones (`<pad>` 0, `<s>` 1, `</s>` 2, `<unk>` 3).
        model: Its kind, as `tokenizers` spells it: "word"; "bpe", which joins the most frequent pairs of neighbours
            (Sennrich et al. 2016); or "unigram", which keeps the pieces that make the texts most probable (Kudo 2018).
            The same texts give the same words and the same BPE; unigram sums floats in no fixed order, so pieces of
            nearly equal probability may swap.
        lowercase: Whether to lower-case everything.
        sentence_pairs: Whether to return `token_type_ids` too, as `train_word_tokenizer` does.

    Returns:
        A fast tokenizer. What it saves is loaded by `AutoTokenizer` without this package.

    Raises:
        InputError: Unknown kind, a text that is not a string, no words, or a `vocab_size` too small for any word or
            for all bytes.
    """
    if model == "word":
        return train_word_tokenizer(texts, vocab_size, lowercase, sentence_pairs)
    if model not in SUBWORDS:
        raise InputError(f"`model` must be one of word, {', '.join(SUBWORDS)}, not {model!r}")
    make_model, make_trainer = SUBWORDS[model]
    tokenizer = Tokenizer(make_model())
    steps = [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Lowercase()] if lowercase else steps)
    # A word is the same behind a space and at the beginning. No special token can come of a text: bytes of letters and
    # of punctuation are never joined.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    return train_fast(tokenizer, make_trainer, texts, vocab_size, sentence_pairs, BYTES)


END_OF_SENTENCE = "\n"
"""A document is a text with a sentence a line: the end of a line is the end-of-sentence mark, a word like others."""

# White space behind a sentence's last mark, and the quotes it closes, where a capital follows. Not behind titles and
# initials; sentences that are tokenised already ("was nice . we") never match.
TITLES = "".join(rf"(?<!\b{title}\.)" for title in ("Mr", "Mrs", "Ms", "Dr", "St", "Jr", "Sr", "Prof", "No", "vs"))
BETWEEN_SENTENCES = rf"(?<=[^\s.][.!?…]|[.!?…][”\"')\]])(?<!\b\p{{Lu}}\.){TITLES}[ \t]+(?=[“\"'(\[]?\p{{Lu}})"


def train_document_tokenizer(
    documents: Iterable[Sequence[str]], vocab_size: int, lowercase: bool = True
) -> PreTrainedTokenizerFast:
    r"""Train a word tokenizer of documents: one flat stream of words, with marks that close sentences and documents.

    A document is a list of sentences (`tokenizer(sentences, is_split_into_words=True)`) or a text with one sentence
    per line; inside a line, a sentence also ends at a full stop followed by white space and a capital, so ordinary
    text works. Either becomes `words \n words \n </s>`, and decoding writes one sentence a line again. Words are those
    of `train_word_tokenizer`.

    Args:
        documents: Lists of sentences to count words in; read once.
        vocab_size: Maximum number of words, the special tokens and the end-of-sentence mark included (`<pad>` 0,
            `<s>` 1, `</s>` 2, `<unk>` 3, `\n` 4).

    Returns:
        A fast tokenizer. `AutoTokenizer` loads it without this package.

    Raises:
        InputError: A sentence is not a string, there are no words, or `vocab_size` is too small for any.
    """
    tokenizer = train_word_tokenizer(_sentences(documents), vocab_size - 1, lowercase)
    backend = tokenizer.backend_tokenizer
    vocabulary = backend.get_vocab()
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    words.insert(len(SPECIAL_TOKENS), END_OF_SENTENCE)
    backend.model = models.WordLevel(
        {word: number for number, word in enumerate(words)}, unk_token=SPECIAL_TOKENS["unk_token"]
    )
    lines = (
        normalizers.Strip(),
        normalizers.Replace(Regex(BETWEEN_SENTENCES), END_OF_SENTENCE),
        normalizers.Replace(Regex(r"\s*[\r\n]\s*"), END_OF_SENTENCE),
        # After the last character, so that a blank text has no sentence.
        normalizers.Replace(Regex(r"(?<=\S)\z"), END_OF_SENTENCE),
    )
    backend.normalizer = normalizers.Sequence([*lines, backend.normalizer])
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(rf"\n|{TOKEN}"), behavior="removed", invert=True)
    ends = (decoders.Replace(Regex(r" ?\n ?"), "\n"), decoders.Replace(Regex(r"\n\z"), ""))
    backend.decoder = decoders.Sequence([backend.decoder, *ends])
    return tokenizer


def join_sentences(sentences: Sequence[str]) -> str:
    """Make the text of a document: one sentence per line."""
    return END_OF_SENTENCE.join(" ".join(sentence.split()) for sentence in sentences)


def _sentences(documents: Iterable[Sequence[str]]) -> Iterator[str]:
    for index, sentences in enumerate(documents):
        if isinstance(sentences, str):
            raise InputError(f"`documents` must be lists of sentences, but item {index} is the text {sentences!r}")
        yield from sentences
