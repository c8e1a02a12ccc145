"""Takes the documentation's pictures of the demo, light and dark, by Chromium:

python scripts/screenshots.py runs/fset-synthetic "How can I learn Spanish quickly?" model_cards/pictures
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from hf_paraphrase.serving.demo import launch_demo


def main(model: str, text: str, folder: str) -> None:
    app = launch_demo(model, prevent_thread_lock=True, quiet=True)
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1080, "height": 600}, color_scheme=scheme)
            page.goto(app.local_url)
            page.get_by_role("textbox", name="Text").fill(text)
            page.get_by_role("button", name="Paraphrase", exact=True).click()
            page.wait_for_selector(".answer details[open] td", timeout=120_000)
            page.wait_for_timeout(1000)
            page.screenshot(path=Path(folder) / f"space-{scheme}.png")
            page.locator(".answer details[open]").last.screenshot(path=Path(folder) / f"edit-{scheme}.png")
            page.close()
        browser.close()
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
