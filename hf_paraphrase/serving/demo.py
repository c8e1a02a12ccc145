"""The demo: a page to try a model on, served locally or by a Space."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import gradio as gr

from ..checkpoints.pretrained import read_config
from ..common.errors import InputError
from ..generation.loading import load_pair_model
from ..generation.paraphrase_table import Paraphrases
from ..generation.paraphraser import Paraphraser
from ..generation.protected_text import DEFAULT_KEEP, KEPT
from ..models.coupled_lstm.modeling_coupled_lstm import CoupledLstmForSequenceClassification
from .demo_pages import format_edits, format_match, format_paraphrases

STYLE = Path(__file__).with_name("demo.css")
LONGEST_TEXT = 1000  # characters
LEAST = {"adequacy": 0.1, "fluency": 0.0, "novelty": 0.1}
OWN_TEXT = "This model paraphrases English sentences. It refuses other languages, code, lists and single words."
SENTENCES = [
    ["Researchers measured the temperature of the lake every hour for three years."],
    ["The committee will decide next week whether the school stays open."],
    ["Most people who tried the new recipe said that it was too salty."],
]
# Questions and captions, as in the corpora of the papers.
TEXTS = [
    ["How can I learn Spanish quickly?"],
    ["Where can I buy a cheap keyboard in Stockholm?"],
    ["A man is riding a wave on a surfboard."],
]
PAIRS = [
    ["Rain is on the way", "It is going to rain"],
    ["How can I learn Spanish quickly?", "What does it cost to learn Spanish?"],
]


def launch_demo(path: str | os.PathLike, loading: Mapping[str, Any] | None = None, **kwargs: Any) -> gr.Blocks:
    """Load a model and serve its demo until the process is stopped. The page loads nothing from other hosts.

    Args:
        path: A checkpoint folder or Hub repository.
        loading: Further arguments of `make_demo`.
        kwargs: Arguments of `gradio.Blocks.launch`, such as `server_name` and `server_port`.

    Returns:
        The app, if `prevent_thread_lock` lets the caller continue.

    Raises:
        InputError: The folder holds no model or no tokenizer.
        FileNotFoundError: There is no such checkpoint.
        OSError: The port is taken.
    """
    demo = make_demo(path, **(loading or {}))
    demo.launch(theme=make_theme(), css_paths=STYLE, footer_links=["api", "settings"], run_history=False, **kwargs)
    return demo


def make_theme() -> gr.Theme:
    """Gradio's default theme with the font that it bundles, so that pages load no font from other hosts."""
    # Gradio bundles only a few letters of the semibold font.
    font = (gr.themes.LocalFont("IBM Plex Sans", weights=(400, 700)), "system-ui", "sans-serif")
    return gr.themes.Default(primary_hue="blue", secondary_hue="blue", neutral_hue="slate", font=font)


def make_demo(path: str | os.PathLike, trust_remote_code: bool = False, **loading: Any) -> gr.Blocks:
    """Build the app of a model: text in and paraphrases out, or two sentences in and how they match out.

    Args:
        path: A checkpoint folder or Hub repository, of any encoder-decoder or any classifier of sentence pairs.
        trust_remote_code: Run the code in the checkpoint, and read pickled weights.
        loading: `prompt`, `backend` and `dtype`, as `Paraphraser.from_pretrained` takes them.

    Raises:
        InputError: The folder holds no model or no tokenizer.
        FileNotFoundError: There is no such checkpoint.
    """
    name = Path(path).resolve().name if Path(path).is_dir() else str(path)
    architectures = [] if loading.get("backend") else read_config(path).get("architectures") or []
    with gr.Blocks(title=name, analytics_enabled=False) as demo:
        gr.Markdown(f"# {name}")
        if any(kind.endswith("ForSequenceClassification") for kind in architectures):
            _match_app(path, trust_remote_code)
        else:
            _paraphrase_app(Paraphraser.from_pretrained(path, trust_remote_code=trust_remote_code, **loading))
    return demo


def _paraphrase_app(paraphraser: Paraphraser) -> None:
    def paraphrase(text: str, n: int, strength: float, diversity: float, *thresholds_and_keep: Any) -> tuple[str, str]:
        *thresholds, keep = thresholds_and_keep
        least = dict(zip(("min_adequacy", "min_fluency", "min_novelty"), thresholds, strict=True))
        options = {"strength": strength, "diversity": diversity, "keep": keep, **least}
        found = paraphraser(text, int(n), return_rejected=True, **options)
        return format_paraphrases(text, cast(Paraphrases, found)), format_edits(paraphraser, text)

    examples = _find_examples(paraphraser)
    if paraphraser.own_text.limits is not None:
        gr.Markdown(OWN_TEXT)
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            text = gr.Textbox(label="Text", lines=3, max_length=LONGEST_TEXT, placeholder=examples[0][0])
            n = gr.Slider(1, 10, 3, step=1, label="Paraphrases")
            info = "0 stays close to the text, 1 rewords freely"
            strength = gr.Slider(0, 1, paraphraser.strength or 0, step=0.05, label="Strength", info=info)
            diversity = gr.Slider(0, 1, 0, step=0.05, label="Diversity", info="1 avoids similar paraphrases")
            with gr.Accordion("Thresholds and words to keep", open=False):
                thresholds = [
                    gr.Slider(0, 1, least, step=0.05, label=f"Minimum {score}") for score, least in LEAST.items()
                ]
                keep = gr.CheckboxGroup(list(KEPT), value=list(DEFAULT_KEEP), label="Keep unchanged")
            button = gr.Button("Paraphrase", variant="primary")
            gr.Examples(examples, [text], label="Examples")
        with gr.Column(scale=3, min_width=300):
            found, edits = (gr.HTML(apply_default_css=False, elem_classes="answer") for _ in range(2))
    _answer(paraphrase, button, [text], [n, strength, diversity, *thresholds, keep], [found, edits])


def _find_examples(paraphraser: Paraphraser) -> list[list[str]]:
    """Texts that fit the model: sources of its retrieval memory, general English, or questions and captions."""
    if paraphraser.retriever is not None:
        pairs = paraphraser.retriever.pairs
        return [[source] for source, _ in pairs[list(range(min(3, len(pairs))))]]
    return TEXTS if paraphraser.own_text.limits is None else SENTENCES


def _match_app(path: str | os.PathLike, trust_remote_code: bool) -> None:
    model, tokenizer = load_pair_model(path, trust_remote_code=trust_remote_code)

    def match(text: str, text_pair: str, unit: int) -> str:
        return format_match(model.eval(), tokenizer, text, text_pair, None if unit < 0 else unit)

    is_coupled = isinstance(model, CoupledLstmForSequenceClassification)
    units = [("widest range", -1)]
    units += [(str(unit), unit) for unit in range(model.config.grid_size if is_coupled else 0)]
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            labels = ("First sentence", "Second sentence")
            texts = [gr.Textbox(label=label, lines=2, max_length=LONGEST_TEXT) for label in labels]
            unit = gr.Dropdown(units, value=-1, label="Unit", visible=is_coupled)
            button = gr.Button("Match", variant="primary")
            gr.Examples(PAIRS, texts, label="Examples")
        with gr.Column(scale=3, min_width=300):
            answer = gr.HTML(apply_default_css=False, elem_classes="answer")
    _answer(match, button, texts, [unit], [answer])


def _answer(
    ask: Callable[..., Any], button: gr.Button, texts: list[gr.Textbox], options: list[Any], outputs: list[gr.HTML]
) -> None:
    """Run `ask` on the button and the return key, and show errors that the user can fix in a box."""

    def ask_politely(*values: Any) -> Any:
        if not all(value.strip() for value in values[: len(texts)]):
            raise gr.Error("Enter a text first.", print_exception=False)
        try:
            return ask(*values)
        except InputError as error:
            raise gr.Error(str(error), print_exception=False) from error

    triggers = [button.click, *(text.submit for text in texts)]
    asked = gr.on(triggers, ask_politely, [*texts, *options], outputs, api_name=ask.__name__)
    # Gradio leaves the outputs unchanged after an error; old answers would seem to belong to the new text.
    asked.failure(lambda: dict.fromkeys(outputs, ""), None, outputs, api_visibility="private")
