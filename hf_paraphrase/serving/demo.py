"""An app in which people try a model out: the one that runs here, and that a Space runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from ..errors import InputError
from ..generation.engine import load_pair_model
from ..generation.keep import DEFAULT_KEEP, KEPT
from ..generation.paraphraser import Paraphraser
from ..models.coupled_lstm.modeling_coupled_lstm import CoupledLstmForSequenceClassification
from ..pretrained import read_config
from .demo_pages import format_edits, format_match, format_paraphrases

__all__ = ["launch_demo", "make_demo"]

STYLE = Path(__file__).with_name("demo.css")
LONGEST_TEXT = 1000  # characters
LEAST = {"adequacy": 0.1, "fluency": 0.0, "novelty": 0.1}
OWN_TEXT = "It paraphrases English sentences, and refuses other languages, code, lists and single words."
TEXTS = [
    ["How can I learn Spanish quickly?"],
    ["Where can I buy a cheap keyboard in Stockholm?"],
    ["A man is riding a wave on a surfboard."],
]
PAIRS = [
    ["Rain is on the way", "It is going to rain"],
    ["How can I learn Spanish quickly?", "What does it cost to learn Spanish?"],
]


def launch_demo(
    path: str | os.PathLike,
    trust_remote_code: bool = False,
    prompt: str | None = None,
    backend: str | None = None,
    **kwargs: Any,
) -> gr.Blocks:
    """Load a model and serve its app until the process is stopped; it asks nobody else for anything.

    Args:
        path: A checkpoint folder or Hub repository.
        trust_remote_code: Let code beside it run, and read weights that are a pickle.
        prompt: As `Paraphraser` takes it.
        backend: As `Paraphraser` takes it.
        kwargs: Arguments of `gradio.Blocks.launch`, such as `server_name` and `server_port`.

    Returns:
        The app, where `prevent_thread_lock` lets it run beside the caller.

    Raises:
        InputError: The folder holds no model or no tokenizer.
        FileNotFoundError: There is no such checkpoint.
        OSError: The port is taken.
    """
    demo = make_demo(path, trust_remote_code, prompt, backend)
    demo.launch(theme=make_theme(), css_paths=STYLE, footer_links=["api", "settings"], run_history=False, **kwargs)
    return demo


def make_theme() -> gr.Theme:
    """Gradio's own, with a font that lies within Gradio: no page asks for one elsewhere."""
    # Of its semibold font Gradio has a few letters only.
    font = (gr.themes.LocalFont("IBM Plex Sans", weights=(400, 700)), "system-ui", "sans-serif")
    return gr.themes.Default(primary_hue="blue", secondary_hue="blue", neutral_hue="slate", font=font)


def make_demo(
    path: str | os.PathLike, trust_remote_code: bool = False, prompt: str | None = None, backend: str | None = None
) -> gr.Blocks:
    """Build the app of a model: text in and paraphrases out, or two sentences in and how they match out.

    Args:
        path: A checkpoint folder or Hub repository, of any encoder-decoder or any classifier of sentence pairs.
        trust_remote_code: As `launch_demo` takes it.
        prompt: As `Paraphraser` takes it.
        backend: As `Paraphraser` takes it.

    Raises:
        InputError: The folder holds no model or no tokenizer.
        FileNotFoundError: There is no such checkpoint.
    """
    name = Path(path).resolve().name if Path(path).is_dir() else str(path)
    labels_pairs = backend is None and _labels_pairs(path)
    with gr.Blocks(title=name, analytics_enabled=False) as demo:
        gr.Markdown(f"# {name}")
        if labels_pairs:
            _match_app(path, trust_remote_code)
        else:
            options = {"prompt": prompt, "backend": backend}
            _paraphrase_app(Paraphraser.from_pretrained(path, trust_remote_code=trust_remote_code, **options))
    return demo


def _labels_pairs(path: str | os.PathLike) -> bool:
    """Whether a checkpoint is a classifier."""
    return any(name.endswith("ForSequenceClassification") for name in read_config(path).get("architectures") or [])


def _paraphrase_app(paraphraser: Paraphraser) -> None:
    def paraphrase(text: str, n: int, strength: float, diversity: float, *thresholds_and_keep: Any) -> tuple[str, str]:
        *thresholds, keep = thresholds_and_keep
        least = dict(zip(("min_adequacy", "min_fluency", "min_novelty"), thresholds, strict=True))
        options = {"strength": strength, "diversity": diversity, "keep": keep, **least}
        found = paraphraser(text, int(n), return_rejected=True, **options)
        return format_paraphrases(text, found), format_edits(paraphraser, text)

    if paraphraser.own_text.limits is not None:
        gr.Markdown(OWN_TEXT)
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            text = gr.Textbox(label="Text", lines=3, max_length=LONGEST_TEXT, placeholder=TEXTS[0][0])
            n = gr.Slider(1, 10, 3, step=1, label="Paraphrases, at most")
            strength = gr.Slider(
                0, 1, paraphraser.strength or 0, step=0.05, label="Strength", info="How far from the text"
            )
            diversity = gr.Slider(0, 1, 0, step=0.05, label="Diversity", info="What likeness to each other costs")
            with gr.Accordion("What must pass", open=False):
                thresholds = [
                    gr.Slider(0, 1, least, step=0.05, label=f"Least {score}") for score, least in LEAST.items()
                ]
                keep = gr.CheckboxGroup(list(KEPT), value=list(DEFAULT_KEEP), label="Kept as they are")
            button = gr.Button("Paraphrase", variant="primary")
            gr.Examples(TEXTS, [text], label="For example")
        with gr.Column(scale=3, min_width=300):
            found, edits = (gr.HTML(apply_default_css=False, elem_classes="answer") for _ in range(2))
    _answer(paraphrase, button, [text], [n, strength, diversity, *thresholds, keep], [found, edits])


def _match_app(path: str | os.PathLike, trust_remote_code: bool) -> None:
    model, tokenizer = load_pair_model(path, trust_remote_code=trust_remote_code)

    def match(text: str, text_pair: str, unit: int) -> str:
        return format_match(model.eval(), tokenizer, text, text_pair, None if unit < 0 else unit)

    is_coupled = isinstance(model, CoupledLstmForSequenceClassification)
    units = [("the one with the widest range", -1)]
    units += [(str(unit), unit) for unit in range(model.config.grid_size if is_coupled else 0)]
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            labels = ("First sentence", "Second sentence")
            texts = [gr.Textbox(label=label, lines=2, max_length=LONGEST_TEXT) for label in labels]
            unit = gr.Dropdown(units, value=-1, label="Unit to look at", visible=is_coupled)
            button = gr.Button("Match", variant="primary")
            gr.Examples(PAIRS, texts, label="For example")
        with gr.Column(scale=3, min_width=300):
            answer = gr.HTML(apply_default_css=False, elem_classes="answer")
    _answer(match, button, texts, [unit], [answer])


def _answer(
    ask: Callable[..., Any], button: gr.Button, texts: list[gr.Textbox], options: list[Any], outputs: list[gr.HTML]
) -> None:
    """Have a question asked by the button and by the return key; what the user can mend is said in a box."""

    def ask_politely(*values: Any) -> Any:
        if not all(value.strip() for value in values[: len(texts)]):
            raise gr.Error("There is no text yet.", print_exception=False)
        try:
            return ask(*values)
        except InputError as error:
            raise gr.Error(str(error), print_exception=False) from error

    asked = gr.on(
        [button.click, *(text.submit for text in texts)],
        ask_politely,
        [*texts, *options],
        outputs,
        api_name=ask.__name__,
    )
    # An error leaves the outputs as they are, which would then seem to answer the new text.
    asked.failure(lambda: dict.fromkeys(outputs, ""), None, outputs, api_visibility="private")
