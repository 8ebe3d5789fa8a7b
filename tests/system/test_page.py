"""The report page in a real browser: from disk, offline, with whatever agents wrote in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.needs import needs
from tests.reporting.page.batches import Batch, Several, stream

pytestmark = [pytest.mark.slow, needs("chromium"), needs("chromedriver")]

HOSTILE = (
    "</script><script>window.ran=1</script><!--<script>"
    "<img src=https://example.com/x onerror=window.ran=1>"
    "{{ 7 * 7 }} \u202e \x00 javascript:window.ran=1"
)
SWITCHES = (
    "--headless=new",
    # Whoever runs the tests as root, or in a container, has no sandbox of the browser's own.
    *("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"),
    *("--disable-background-networking", "--disable-component-update", "--no-first-run"),
    "--window-size=1280,900",
)


class Browser:
    """A headless Chromium, and all that it complains of or asks for."""

    def __init__(self, home: Path) -> None:
        options = ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for switch in (*SWITCHES, f"--user-data-dir={home}"):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        environ = {**os.environ, "HOME": str(home)}
        service = Service(shutil.which("chromedriver") or "", env=environ)
        self.driver = Chrome(options, service)

    def open(self, page: Path, fragment: str = "") -> None:
        # A fragment alone would not load the page again.
        self.driver.get("about:blank")
        self.driver.get_log("performance")
        self.driver.get_log("browser")
        self.driver.get(f"{page.as_uri()}{fragment}")

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    @property
    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    @property
    def requests(self) -> list[str]:
        messages = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def wait_for(self, script: str) -> None:
        WebDriverWait(self.driver, 60).until(lambda _: self.run(f"return {script}"))

    @property
    def focused(self) -> str:
        return self.driver.switch_to.active_element.text

    def text(self, css: str) -> str:
        return self.driver.find_element(By.CSS_SELECTOR, css).text


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.driver.quit()


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    found = Batch(tmp_path, with_={"succeeded": 2, "failed": 1}, without={"failed": 3})
    found.write_audit()
    return found


@pytest.fixture
def page(batch: Batch) -> Path:
    file = batch.root / "page.html"
    batch.write_page(file)
    return file


TRIAL = "#trial:tiny/oracle/trial-1-with-skills"


def test_the_page_opens_from_disk_and_asks_for_nothing(browser: Browser, page: Path) -> None:
    """No error in the console, and not one request beyond the file itself."""
    browser.open(page)
    browser.run(f"location.hash = {json.dumps(TRIAL)}")
    browser.wait_for("!document.getElementById('trial').hidden")

    assert browser.complaints == []
    asked = {url.partition("#")[0] for url in browser.requests if not url.startswith("data:")}
    assert asked == {page.as_uri()}


def test_numbers_in_the_browser_are_those_of_the_json(
    browser: Browser, page: Path, batch: Batch
) -> None:
    """What is read is what was counted, through template, parser and script."""
    document = batch.document()
    browser.open(page)

    shown = browser.run(
        "return [...document.querySelectorAll('tr.lead data')].map((d) => Number(d.value))"
    )

    sides = document["configurations"]
    rates = [sides[name]["success_rate"] for name in ("without-skills", "with-skills")]
    assert shown == [*rates, document["delta"]["success_rate"]]


def test_the_answer_over_all_tasks_is_that_of_the_summary(browser: Browser, tmp_path: Path) -> None:
    """It stands first, is seen without scrolling, and each of its numbers is the document's."""
    tasks = {"a": (9, 2), "b": (8, 4), "c": (10, 5), "d": (7, 5), "e": (9, 6)}
    batch = Several(tmp_path, tasks)
    (across,) = batch.summary()["across_tasks"]
    file = tmp_path / "page.html"
    batch.write_page(file)
    browser.open(file)

    numbers = browser.run(
        "return Object.fromEntries([...document.querySelectorAll('.answer dl div')].map("
        "(d) => [d.querySelector('dt').textContent, Number(d.querySelector('data').value)]))"
    )
    first = browser.text(".answer")
    bottom = browser.run("return document.querySelector('.answer').getBoundingClientRect().bottom")

    rates = across["configurations"]
    assert numbers == {
        "mean difference": across["delta"],
        "95 % interval from": across["delta_ci95"]["low"],
        "95 % interval to": across["delta_ci95"]["high"],
        "mean rate without-skills": rates["without-skills"]["success_rate"],
        "mean rate with-skills": rates["with-skills"]["success_rate"],
        "tasks that count": across["tasks"],
        "eligible trials": 20 * len(tasks),
    }
    assert first.startswith("helped All tasks with oracle: skills helped, success rate +42 points")
    assert bottom < browser.run("return innerHeight")


@pytest.mark.parametrize("fragment", ["", "#trial:tiny/oracle/trial-1-with-skills"])
def test_nothing_is_cut_off_on_a_narrow_screen(browser: Browser, page: Path, fragment: str) -> None:
    """What is too wide scrolls in a place of its own, and the text beside it stays readable."""
    narrow = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    try:
        browser.open(page, fragment)

        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_trial_opens_by_its_link_alone(browser: Browser, page: Path, batch: Batch) -> None:
    """A colleague is sent a link to the trial, not to the table."""
    result = json.loads((batch.folder / "trial-1-with-skills/result.json").read_text())

    browser.open(page, TRIAL)

    assert browser.text("#trial-title") == "tiny, oracle: with-skills, trial 1"
    facts = dict(
        browser.run(
            "return [...document.querySelectorAll('#trial dl div')].map("
            "(d) => [d.querySelector('dt').textContent, d.querySelector('dd').textContent])"
        )
    )
    assert float(facts["session seconds"]) == result["elapsed_secs"]
    usage = result["usage"]
    assert facts["tokens"] == f"{usage['input_tokens'] + usage['output_tokens']:,}"
    assert "I add them up." in browser.text("#trial")
    assert "+    return sum(values)" in browser.text("#trial .diff")
    assert not browser.driver.find_element(By.ID, "overview").is_displayed()


def test_the_keyboard_reaches_a_trial_and_leads_back(browser: Browser, page: Path) -> None:
    """No step needs a mouse, and none loses the reader's place."""
    browser.open(page)
    browser.run("document.querySelector('.grid a').focus()")
    link = browser.focused

    browser.press(Keys.ENTER)
    browser.wait_for("document.activeElement.id === 'trial-title'")
    browser.driver.back()
    browser.wait_for("document.getElementById('trial').hidden")

    assert browser.focused == link
    assert browser.run("return document.activeElement.closest('#overview') !== null")


def test_the_first_key_offers_to_skip_to_the_content(browser: Browser, page: Path) -> None:
    """Who goes through a page key by key does not want the same links each time."""
    browser.open(page)
    browser.press(Keys.TAB)

    assert browser.focused == "Skip to the content"
    browser.press(Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "main"


def test_every_control_can_be_reached_and_shows_that_it_has_the_focus(
    browser: Browser, page: Path
) -> None:
    """A focus that nobody sees is none."""
    browser.open(page, TRIAL)
    browser.run("document.getElementById('trial-title').focus()")
    seen = []
    for _ in range(12):
        browser.press(Keys.TAB)
        seen.append(
            browser.run(
                "const at = document.activeElement;"
                "return [at.tagName, getComputedStyle(at).outlineStyle]"
            )
        )

    assert {name for name, _ in seen} >= {"DIV", "SUMMARY"}
    assert {outline for _, outline in seen} == {"solid"}


def test_hostile_text_is_shown_and_does_not_run(browser: Browser, tmp_path: Path) -> None:
    """The page is made of what agents wrote, and its reader has other tabs open."""
    batch = Batch(
        tmp_path,
        with_={"succeeded": 1},
        without={"failed": 1},
        events=stream(said=HOSTILE, result=HOSTILE),
        solution=f"{HOSTILE}\n".replace("\x00", ""),
        output=HOSTILE,
        evidence=HOSTILE,
    )
    file = tmp_path / "page.html"
    batch.write_page(file)

    browser.open(file, TRIAL)
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")

    assert browser.run("return window.ran") is None
    assert browser.complaints == []
    assert browser.text("#trial").count("<img src=https://example.com/x onerror=") == 5
    assert "{{ 7 * 7 }} \\u202e \\x00 javascript:" in browser.text("#trial")
    assert browser.run("return document.querySelectorAll('img, #trial script').length") == 0
    assert {url.partition("#")[0] for url in browser.requests} <= {file.as_uri(), "data:,"}


def test_text_can_be_read_in_the_dark_as_in_the_light(browser: Browser, page: Path) -> None:
    """Contrast of 4.5 to 1 is what the guidelines for accessible pages ask for."""
    for scheme in ("light", "dark"):
        emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
        browser.open(page)
        grounds = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert (luminance(grounds) < 0.5) is (scheme == "dark")
        pairs = browser.run(COLOURS)
        assert len(pairs) > 5
        poor = {
            (css, front, back): contrast(front, back)
            for css, front, back in pairs
            if contrast(front, back) < 4.5
        }
        assert poor == {}, scheme


COLOURS = """
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const found = getComputedStyle(at).backgroundColor;
    if (found !== 'rgba(0, 0, 0, 0)') return found;
  }
  return 'rgb(255, 255, 255)';
};
const wanted = 'a, p, td, th, dt, dd, .badge, .quiet, caption, summary, figcaption';
return [...document.querySelectorAll(wanted)].map(
  (each) => [each.className, getComputedStyle(each).color, ground(each)]);
"""


def luminance(colour: str) -> float:
    """Return the relative luminance of an `rgb()`, as WCAG 2 defines it."""
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_trials_are_rendered_one_at_a_time(browser: Browser, tmp_path: Path) -> None:
    """A thousand sessions laid out at once would keep their reader waiting."""
    batch = Batch(tmp_path, with_={"succeeded": 200}, without={"failed": 200}, has_sessions=False)
    file = tmp_path / "page.html"
    batch.write_page(file)

    browser.open(file)

    assert browser.run("return document.querySelectorAll('script.trial-data').length") == 400
    assert browser.run("return document.getElementById('trial').childElementCount") == 0
    browser.run(f"location.hash = {json.dumps(TRIAL)}")
    browser.wait_for("document.getElementById('trial-title')")
    browser.run("history.back()")
    browser.wait_for("document.getElementById('trial').hidden")
    assert browser.run("return document.getElementById('trial').childElementCount") == 0
