"""The commands that share a model, show one, and show the machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import cast

from ..common.errors import InputError
from ..common.fields import option
from ..common.installation import require
from ..released import RELEASED
from .terminal import echo
from .verbs import Verb, verb


@verb("push")
class Push(Verb):
    """Push a model, a decoding or a metric to the Hub.

    \b
    hf-paraphrase push runs/first --repo-id you/first
    hf-paraphrase push runs/first --repo-id you/first --create-pr
    hf-paraphrase push runs/first --repo-id you/first --with-handler
    hf-paraphrase push runs/first --repo-id you/first --dry-run > runs/first/README.md
    hf-paraphrase push diverse_beam --repo-id you/diverse-beam
    hf-paraphrase push pinc --repo-id you/pinc

    For a model, one commit contains weights, tokenizer, code, recipe, results and card. The token comes from `hf auth
    login` or HF_TOKEN. Failed requests are retried; if the push still fails, run the same command again to finish it
    without uploading anything twice. A README.md in the folder is used as the card; otherwise the card is generated
    from the checkpoint's files. --dry-run prints the generated card. --with-handler adds handler.py and its
    requirements.txt; add hf-paraphrase to requirements.txt if the endpoint must retrieve pairs or score candidates.

    For a decoding, diverse_beam or dips, the push contains code, requirements and a card. Afterwards
    `model.generate(**inputs, custom_generate="you/diverse-beam", trust_remote_code=True, num_beams=6,
    num_return_sequences=3)` uses it with T5, BART, our models and any other model for which transformers supports beam
    search, even where hf_paraphrase is not installed.

    For a metric listed by `hf_paraphrase.list_metrics()`, the push contains its module, a card and a demo page.
    Afterwards `evaluate.load("you/pinc")` loads it where hf_paraphrase is installed.
    """

    what: str = option(
        "Checkpoint folder, such as the output folder of `train`; or the name of a decoding or a metric.",
        positional=True,
    )
    repo_id: str | None = option("Repository on the Hub, created if missing: you/your-model.", None)
    private: bool = option("Create the repository as private.", False)
    dry_run: bool = option("Push nothing: print the generated card.", False)
    revision: str | None = option("Branch to push to, created if missing; or refs/pr/1.", None)
    create_pr: bool = option("Open a pull request, or push to the one an earlier push opened.", False)
    replace_card: bool = option("Replace the card even if a person has edited it.", False)
    with_handler: bool = option("Add handler.py for Inference Endpoints.", False)
    dataset_id: str | None = option("The corpus on the Hub, for the card.  [default: its name here]", None)
    license: str | None = option("Licence of the weights, as the Hub spells it.  [default: the training data's]", None)
    language: str | None = option("Language code of the texts.  [default: en for a published corpus]", None)

    def run(self) -> str:
        """Push, and return the address; or return the card."""
        from ..hub import push
        from ..metrics import list_metrics
        from ..models.search.generation_request import DECODINGS

        if self.repo_id is None and not self.dry_run:
            raise InputError("--repo-id is missing: the repository to push to, such as you/your-model")
        is_decoding, is_metric = self.what in DECODINGS, self.what in list_metrics()
        if not Path(self.what).is_dir() and (is_decoding or is_metric):
            plain = Push(what=self.what, repo_id=self.repo_id, private=self.private)
            if plain != self:
                raise InputError(f"{self.what} is not a model: only --repo-id and --private are for it")
            if is_decoding:
                return push.push_decoding(self.what, cast(str, self.repo_id), private=self.private)
            require("gradio", "demo", "a metric's page")
            return push.push_metric(self.what, cast(str, self.repo_id), private=self.private)
        if self.dry_run:
            from ..hub.card import make_card
            from ..hub.checkpoint import read_checkpoint

            checkpoint = read_checkpoint(self.what)
            return str(make_card(checkpoint, self.repo_id, self.dataset_id, self.license, self.language)).rstrip("\n")
        if self.what != RELEASED and not Path(self.what).exists() and "/" not in self.what:
            names = f"a metric: {', '.join(list_metrics())}; or a decoding: {', '.join(DECODINGS)}"
            raise InputError(f"{self.what} is not a checkpoint folder; nor is it {names}")
        return self.call(push.push_to_hub, folder=Path(self.what))


def push_trained(folder: Path, repo_id: str, private: bool) -> None:
    """Push the output of a training run; a failure is reported and does no harm."""
    from accelerate import PartialState

    from ..common.hub_access import PushError
    from ..hub.push import push_to_hub

    if not PartialState().is_main_process:
        return
    try:
        echo(push_to_hub(folder, repo_id, private=private))
    except (PushError, InputError) as error:
        command = ["hf-paraphrase", "push", str(folder), "--repo-id", repo_id, *(["--private"] if private else [])]
        echo(f"warning: {folder} is trained but not pushed: {error}\nto push it: {shlex.join(command)}", err=True)


@verb("info")
class DescribeCheckpoint(Verb):
    """Describe a checkpoint: size, training, results.

    \b
    hf-paraphrase info runs/first
    hf-paraphrase info you/first

    Its weights are not loaded.
    """

    model: str = option("Checkpoint folder or Hub repository.", positional=True)
    revision: str | None = option("Branch, tag or commit of a repository.", None)

    def run(self) -> str:
        from ..hub.card import describe_checkpoint
        from ..hub.checkpoint import read_checkpoint

        return describe_checkpoint(read_checkpoint(self.model, self.revision))


@verb("env")
class DescribeMachine(Verb):
    """Print versions and devices, for a bug report.

    \b
    hf-paraphrase env
    """

    def run(self) -> str:
        from ..common.environment import report_environment

        return "\n".join(f"- {name}: {value}" for name, value in report_environment().items())
