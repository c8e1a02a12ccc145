"""Takes the documentation's pictures of the demo in Chromium, light and dark: the built-in model, and an edit by FSET.

python scripts/screenshots.py runs/fset-synthetic model_cards/pictures
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from hf_paraphrase.released import RELEASED
from hf_paraphrase.serving.demo import launch_demo

SENTENCE = "Researchers measured the temperature of the lake every hour for three years."
QUESTION = "How can I learn Spanish quickly?"
EDIT = ".answer details[open]"


def main(model: str, folder: str) -> None:
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for scheme, page in answered_pages(browser, RELEASED, SENTENCE):
            page.screenshot(path=Path(folder) / f"space-{scheme}.png")
        for scheme, page in answered_pages(browser, model, QUESTION):
            page.locator(EDIT).last.screenshot(path=Path(folder) / f"edit-{scheme}.png")
        browser.close()


def answered_pages(browser: Browser, model: str, text: str) -> Iterator[tuple[str, Page]]:
    """The demo of a model with the paraphrases of a text, in each colour scheme."""
    with running_demo(model) as address:
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1080, "height": 600}, color_scheme=scheme)
            page.goto(address)
            page.get_by_role("textbox", name="Text").fill(text)
            page.get_by_role("button", name="Paraphrase", exact=True).click()
            page.get_by_text("novelty").first.wait_for(timeout=120_000)
            page.wait_for_timeout(1000)
            yield scheme, page
            page.close()


@contextmanager
def running_demo(model: str) -> Iterator[str]:
    app = launch_demo(model, prevent_thread_lock=True, quiet=True)
    yield app.local_url
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
