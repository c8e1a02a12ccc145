"""CTranslate2 against `generate()`, and what it has not."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
from transformers import (
    MarianConfig,
    MarianMTModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from hf_paraphrase import Paraphraser
from hf_paraphrase.common import files
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.backends import CTranslate2Writer
from hf_paraphrase.generation.engine import generate_several
from hf_paraphrase.generation.writers import ModelWriter
from hf_paraphrase.models.text.encoded_inputs import find_control
from tests.generation.paraphrasers import make_paraphraser, random_sentences
from tests.models.tiny import SPECIAL_IDS, WORDS, tiny_bart, tiny_t5, word_tokenizer

SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
SIZES |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64, "init_std": 1.0}


def marian_tokenizer() -> PreTrainedTokenizerFast:
    """With the padding last, as Marian's have it: its decoder starts from it, and it is never written."""
    words = ["</s>", "<unk>", *(word for word in WORDS if not word.startswith("<")), "<pad>"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def make(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    if name == "marian":
        tokenizer = marian_tokenizer()
        pad = tokenizer.pad_token_id
        ids = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": None}
        model = MarianMTModel(MarianConfig(vocab_size=len(tokenizer), scale_embedding=True, **ids, **SIZES)).eval()
        model.generation_config.bad_words_ids = [[pad]]
        return model, tokenizer
    if name == "pegasus":
        config = PegasusConfig(vocab_size=len(WORDS), forced_eos_token_id=None, **SIZES, **SPECIAL_IDS)
        return PegasusForConditionalGeneration(config).eval(), word_tokenizer()
    return {"bart": tiny_bart, "t5": tiny_t5}[name](), word_tokenizer()


@pytest.mark.parametrize("name", ["bart", "marian", "t5", "pegasus"])
def test_outputs_and_scores_are_those_of_generate(name: str) -> None:
    model, tokenizer = make(name)
    writer, texts = CTranslate2Writer(model, tokenizer, compute_type="float32"), random_sentences(40)
    for options in ({"num_beams": 4}, {"num_beams": 1}, {"num_beams": 3, "length_penalty": 2.0}):
        count = min(options["num_beams"], 3)
        options["max_new_tokens"] = 7
        ours = writer.generate(texts, 8, num_return_sequences=count, **options)
        stopping = {"early_stopping": True} if count > 1 else {}
        theirs = generate_several(model, tokenizer, texts, count, **options, **stopping)
        assert ours == theirs
        assert len({text for group in ours for text in group}) > 5
    targets = texts[::-1]
    ours, theirs = (
        writer.mean_log_probs(texts, targets, 8),
        ModelWriter(model, tokenizer).mean_log_probs(texts, targets, 64),
    )
    # Marian's padding has a probability in `generate()` alone.
    assert ours == pytest.approx(theirs, abs=0.02 if name == "marian" else 1e-4)


def test_max_length_of_the_call_wins_over_the_checkpoint_s_max_new_tokens() -> None:
    model, tokenizer = tiny_bart(), word_tokenizer()
    model.generation_config.update(max_new_tokens=6, eos_token_id=None)
    writer = CTranslate2Writer(model, tokenizer, compute_type="float32")
    options = {"num_beams": 1, "bad_words_ids": [[number] for number in range(4)]}
    for asked, expected in (
        ({}, 6),
        ({"max_length": 4}, 3),
        ({"max_length": 9, "max_new_tokens": None}, 8),
        ({"max_length": 9, "max_new_tokens": 2}, 2),
    ):
        ((text,),) = writer.generate(["the cat"], 1, **options, **asked)
        assert len(text.split()) == expected


def test_a_tokenizer_without_an_end_mark() -> None:
    """Of the mark that nobody wrote there is no score."""
    model, tokenizer = tiny_bart(), word_tokenizer(end="")
    writer, texts = CTranslate2Writer(model, tokenizer, compute_type="float32"), random_sentences(10)
    ours, theirs = (
        writer.mean_log_probs(texts, texts, 4),
        ModelWriter(model, tokenizer).mean_log_probs(texts, texts, 64),
    )
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_a_paraphraser_with_the_backend() -> None:
    """The same paraphrases with the same scores, but for rounding; in int8 it writes too."""
    known = make_paraphraser("bart")
    floors = {"keep": [], "min_adequacy": 0.0, "min_novelty": 0.0}
    options = {"decoding": "beam", "replace_unknown": False, "return_rejected": True, "batch_size": 4, **floors}
    texts = random_sentences(12)
    theirs = known(texts, 2, early_stopping=True, **options)
    for compute_type in ("float32", "int8"):
        paraphraser = Paraphraser(known.model, known.tokenizer, backend="ctranslate2", compute_type=compute_type)
        ours = paraphraser(texts, 2, **floors)  # by beam search, as there is no other
        assert any(ours)
    ours = Paraphraser(known.model, known.tokenizer, backend="ctranslate2", compute_type="float32")(
        texts, 2, **options
    )
    for one, other in zip(ours, theirs, strict=True):
        assert [(p.text, p.reason) for p in one] == [(p.text, p.reason) for p in other]
        assert [p.score for p in one] == pytest.approx([p.score for p in other], abs=1e-4)


def test_a_model_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another model, or another kind of numbers, is another conversion; a config may lack what the converter asks."""
    model, tokenizer = tiny_bart(), word_tokenizer()
    made, write = [], files.write_directory
    monkeypatch.setattr(files, "write_directory", lambda *args: (made.append(args[0]), write(*args)))
    model.lm_head.weight.data[3, 0] += 0.25
    for _ in range(2):
        CTranslate2Writer(model, tokenizer, compute_type="float32")
    assert len(made) == 1 and (made[0] / "model.bin").is_file()
    assert not hasattr(model.config, "normalize_before")
    model.lm_head.weight.data[3, 0] += 0.25
    CTranslate2Writer(model, tokenizer, compute_type="float32")
    CTranslate2Writer(model, tokenizer, compute_type="int8")
    assert len(set(made)) == 3


@pytest.mark.parametrize("decoding", ["diverse_beam", "dips", "sample"])
def test_other_decodings_are_refused(decoding: str) -> None:
    known = make_paraphraser("bart")
    paraphraser = Paraphraser(known.model, known.tokenizer, backend="ctranslate2")
    with pytest.raises(InputError, match=f"`decoding='{decoding}'` is not available with `backend='ctranslate2'`"):
        paraphraser("the cat sat", 2, decoding=decoding)


@pytest.mark.parametrize(
    "option", [{"repetition_penalty": 2.0}, {"replace_unknown": True}, {"length_penalty": 0.0}, {"num_beam_groups": 2}]
)
def test_options_that_it_has_not_are_refused(option: dict) -> None:
    known = make_paraphraser("bart")
    paraphraser = Paraphraser(known.model, known.tokenizer, backend="ctranslate2")
    with pytest.raises(InputError, match=f"`{next(iter(option))}.* is not available with `backend='ctranslate2'`"):
        paraphraser([], 2, **option)


def test_what_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    known = make_paraphraser("residual_lstm")
    with pytest.raises(InputError, match="runs bart, marian, t5, pegasus, and no ResidualLstm"):
        Paraphraser(known.model, known.tokenizer, backend="ctranslate2")
    known = make_paraphraser("bart")
    with pytest.raises(InputError, match="`backend` must be ctranslate2, or None"):
        Paraphraser(known.model, known.tokenizer, backend="onnx")
    with pytest.raises(InputError, match="cannot run this model in int3"):
        Paraphraser(known.model, known.tokenizer, backend="ctranslate2", compute_type="int3")
    monkeypatch.setattr("hf_paraphrase.common.installation.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'hf-paraphrase\[ctranslate2\]'"):
        Paraphraser(known.model, known.tokenizer, backend="ctranslate2")


def test_the_first_word_that_a_config_forces() -> None:
    """As BART's own checkpoints do."""
    model, tokenizer = make("bart")
    model.generation_config.forced_bos_token_id = tokenizer.convert_tokens_to_ids("cat")
    texts = random_sentences(10)
    found = CTranslate2Writer(model, tokenizer, compute_type="float32").generate(texts, 4, num_beams=2, max_length=8)
    assert all(text.startswith("cat") for group in found for text in group)
    assert found == generate_several(model, tokenizer, texts, 1, num_beams=2, max_length=8, early_stopping=True)


def test_the_control_token_stands_before_each_text() -> None:
    tokenizer = word_tokenizer()
    tokens = [AddedToken(f"<novelty-{level}>", special=True, normalized=False) for level in range(2)]
    tokenizer.add_tokens(tokens, special_tokens=True)
    model = tiny_bart()
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.config.control_tokens = ["<novelty-0>", "<novelty-1>"]
    writer, texts = (
        CTranslate2Writer(model, tokenizer, compute_type="float32"),
        [*random_sentences(10), "<novelty-0> cat"],
    )
    options, written = {"num_beams": 4, "max_new_tokens": 7}, []
    for strength in (None, 0, 1):
        control = find_control(model.config, tokenizer, strength)
        ours = writer.generate(texts, 8, control=control, num_return_sequences=3, **options)
        theirs = generate_several(model, tokenizer, texts, 3, strength=strength, early_stopping=True, **options)
        assert ours == theirs
        written.append(str(ours))
    assert len({*written}) == 3
    paraphraser = Paraphraser(model, tokenizer, backend="ctranslate2", compute_type="float32")
    paraphraser.writer.generate = lambda read, *limits, **kwargs: written.append(limits) or [["cat"]] * len(read)
    paraphraser("the dog", 1, strength=1)
    assert written[-1][-1] == control
