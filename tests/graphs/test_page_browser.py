# SPDX-License-Identifier: GPL-2.0-or-later
"""index.html in a real Chromium: it opens, zooms, answers clicks and keys, and runs no label."""

import json
import shutil
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    FloatRect,
    Locator,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from analysis.reading.load import load_campaign
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results import hostile
from benchmarks.synthetic_results.make import make_campaign
from graphs.page import page
from graphs.page.run_data import run_block
from tests.support.mixed import mixed_campaign

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
WIDE: ViewportSize = {"width": 1366, "height": 768}
PATIENCE = 60_000  # ms: other tests may run on this machine too
expect.set_options(timeout=PATIENCE)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium"),
    pytest.mark.timeout(300),
    # On a busy host Chromium sometimes stops drawing a page whose size was changed.
    pytest.mark.flaky(reruns=1, only_rerun=["TimeoutError"]),
]
DRAWS = """() => new Promise((answer) => {
  requestAnimationFrame(() => requestAnimationFrame(() => answer(true)));
  setTimeout(() => answer(false), 20_000);
})"""
# The page's own functions; the chosen run is drawn anew if it was another one.
RESET = """() => {
  document.activeElement.blur();
  document.querySelectorAll('details').forEach((one) => { one.open = false; });
  $('stall-order').value = 'length';
  current = -1;
  openRun(0);
  scrollTo(0, 0);
}"""
RANGE = "document.getElementById('run-chart').layout.xaxis.range"
DRAWN = "document.querySelector('#run-chart').classList.contains('js-plotly-plot')"
# What plotly itself would make bold, a link, a figure and an ampersand of.
PSEUDO = "<b>b</b><a href='javascript:window.owned = 5'>%{y}</a>&amp;"
# Whether plotly knows that the mouse is over the mark of the stall at this place, or over the
# point of the curve that it marks: what it has not seen hovered, it hears no click on.
HOVERED = """(place) => {
  const chart = document.getElementById('run-chart');
  const trace = chart.data.find((one) => one.stalls?.includes(place));
  const x = trace.x[trace.stalls.indexOf(place)];
  return (chart._hoverdata ?? []).some(
    (one) => one.yaxis?._id === trace.yaxis && Math.abs(one.x - x) < 0.5);
}"""
# Pixels of a stall's mark in the run's chart, by its place in the run's list.
MARK = """(place) => {
  const chart = document.getElementById('run-chart');
  const trace = chart.data.find((one) => one.stalls?.includes(place));
  const point = trace.stalls.indexOf(place), layout = chart._fullLayout;
  const y = layout['yaxis' + trace.yaxis.slice(1)], box = chart.getBoundingClientRect();
  return [box.left + layout.xaxis._offset + layout.xaxis.l2p(trace.x[point]),
          box.top + y._offset + y.l2p(trace.y[point])];
}"""


class Watched:
    """A file opened in the browser, and whatever it did that it must not do."""

    def __init__(self, browser: Browser, path: Path) -> None:
        self.browser, self.path = browser, path
        self.complaints: list[str] = []
        self._open()

    def be_alive(self) -> None:
        """Open the file again if Chromium has stopped drawing its page."""
        if not self.page.evaluate(DRAWS):
            self.page.close()
            self._open()

    def _open(self) -> None:
        self.page = self.browser.new_page(viewport=WIDE)
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda asked: self._asked(asked.url, self.path.as_uri()))
        self.page.goto(self.path.as_uri())
        self.page.wait_for_selector("#sawtooth.js-plotly-plot")

    def _asked(self, url: str, own: str) -> None:
        if url.partition("?")[0] != own and not url.startswith(("data:", "blob:")):
            self.complaints.append(f"request: {url}")


def until(opened: Page, expression: str) -> None:
    """Wait until it is true (playwright's own wait evaluates strings, which the policy forbids)."""
    end = time.monotonic() + PATIENCE / 1000
    while not opened.evaluate(expression):
        if time.monotonic() > end:
            raise TimeoutError(f"never true: {expression}")
        opened.wait_for_timeout(50)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def index(folder: Path) -> Path:
    """Three variants, two runs each; the last one's last run hangs."""
    campaign = load_campaign(make_campaign(folder / "c", 3, 2))
    return page.write(compare(campaign), folder / "index.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def watched(browser: Browser, index: Path) -> Watched:
    return Watched(browser, index)


@pytest.fixture
def opened(watched: Watched) -> Iterator[Page]:
    """The page as at first, for opening it takes seconds; in the end nothing complained."""
    watched.be_alive()
    opened = watched.page
    opened.set_viewport_size(WIDE)
    opened.emulate_media(media="screen", color_scheme="light")
    opened.evaluate(RESET)
    yield opened
    assert watched.complaints == []


def box_of(where: Locator) -> FloatRect:
    """Where the element is on the screen."""
    box = where.bounding_box()
    assert box
    return box


def show_run(opened: Page) -> None:
    opened.locator("#run").scroll_into_view_if_needed()
    until(opened, DRAWN)


def figures_of(path: Path, run: int, place: int) -> dict[str, Any]:
    """What the card must say of the stall at this place of the run's list."""
    part = run_block(load_campaign(path.parent / "c").runs[run], True)
    found = {key: values[place] for key, values in part["stalls"].items()}
    return found | {"name": part["streams"][found["stream"]]["name"]}


def expect_card(opened: Page, figures: dict[str, Any]) -> None:
    card = opened.locator("#card")
    expect(card).to_contain_text(f"{figures['name']} silent for {figures['length'] / 1000:.3f} s")
    expect(card).to_contain_text(f"From {figures['begin'] / 1000:.3f} s")
    moved, rate = figures["counters"][0]
    expect(card.locator("tr", has_text="swap in")).to_contain_text(
        f"{moved:.1f} MiB, {rate:.2f} MiB/s"
    )
    expect(card.locator("tr", has_text="nr_writeback")).to_contain_text(
        f"{figures['counters'][4]:,} pages"
    )
    expect(card).to_contain_text(str(figures["after"]))


def test_the_first_screen_has_the_answer_the_table_and_the_sawtooth(opened: Page) -> None:
    for what in (".answers", "#verdicts", "#sawtooth .main-svg"):
        box = box_of(opened.locator(what).first)
        assert box["y"] >= 0 and box["y"] + box["height"] <= 768, what
    assert opened.locator(".answers li").count() == 3
    assert opened.evaluate("document.getElementById('sawtooth').data.length") >= 3
    panels = (
        "Object.keys(document.getElementById('sawtooth').layout).filter((k) => /^yaxis/.test(k))"
    )
    assert len(opened.evaluate(panels)) == 3


def test_every_chart_is_drawn_when_it_is_reached(opened: Page) -> None:
    for name in ("run-chart", "curves", "order-chart"):
        opened.locator(f"#{name}").scroll_into_view_if_needed()
        opened.wait_for_selector(f"#{name}.js-plotly-plot")
    titles = opened.locator("#run-chart .annotation-text").all_text_contents()
    for name in ("gitk-4", "heartbeat", "nr_writeback", "swap IO", "page IO", "memory pressure"):
        assert any(name in title for title in titles), name
    # Runs in the order in which they ran, the hung one above all others, with a word.
    runs = opened.evaluate("document.getElementById('order-chart').data.map((t) => [t.x, t.y])")
    assert [x for x, _ in runs] == [[1, 4], [2, 5], [3, 6]]
    hung = runs[2][1][1]
    assert hung > max(y for _, ys in runs for y in ys if y != hung)
    assert "hung" in opened.locator("#order-chart .annotation-text").all_text_contents()
    assert opened.evaluate("document.getElementById('curves').layout.xaxis.type") == "log"


def test_a_drag_zooms_all_rows_and_a_button_shows_the_whole_run(opened: Page) -> None:
    show_run(opened)
    whole = opened.evaluate(RANGE)
    box = box_of(opened.locator("#run-chart .nsewdrag").nth(1))
    middle = box["y"] + box["height"] / 2
    opened.mouse.move(box["x"] + box["width"] * 0.25, middle)
    opened.mouse.down()
    opened.mouse.move(box["x"] + box["width"] * 0.4, middle, steps=5)
    opened.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=5)
    opened.mouse.up()
    until(opened, f"{RANGE}[0] > 1")
    begin, end = opened.evaluate(RANGE)
    assert begin == pytest.approx(0.25 * whole[1], rel=0.05)
    assert end == pytest.approx(0.5 * whole[1], rel=0.05)
    axes = "new Set(document.getElementById('run-chart').data.map((trace) => trace.xaxis)).size"
    assert opened.evaluate(axes) == 1  # one time axis for all of them
    opened.get_by_role("button", name="Whole run").click()
    until(opened, f"{RANGE}[0] === 0")
    assert opened.evaluate(RANGE) == pytest.approx(whole)
    opened.locator("#run-chart").focus()
    opened.keyboard.press("+")
    until(opened, f"{RANGE}[0] > 1")


def click_mark(opened: Page, place: int) -> None:
    """Click on a stall's mark, as a user does whose page may still be moving under the mouse."""
    give_up = time.monotonic() + PATIENCE / 1000
    x, y = opened.evaluate(MARK, place)
    while not opened.evaluate(HOVERED, place):
        assert time.monotonic() < give_up, "plotly does not see the mouse over the mark"
        x, y = opened.evaluate(MARK, place)
        opened.mouse.move(x - 2, y)
        opened.mouse.move(x, y)
        opened.wait_for_timeout(200)
    opened.mouse.click(x, y)


def test_a_click_on_a_stall_shows_its_card(opened: Page, index: Path) -> None:
    show_run(opened)
    run = int(opened.locator("#run-choice").input_value())
    for place in (9, 10):
        figures = figures_of(index, run, place)
        click_mark(opened, place)
        expect_card(opened, figures)
        chosen = opened.locator("#stalls tr[aria-selected=true]")
        expect(chosen).to_contain_text(f"{figures['begin'] / 1000:.1f} s")
        band = opened.evaluate("document.getElementById('run-chart').layout.shapes.at(-1)")
        assert [band["x0"], band["x1"]] == pytest.approx(
            [figures["begin"] / 1000, (figures["begin"] + figures["length"]) / 1000]
        )


def test_the_keyboard_opens_each_stall(opened: Page, index: Path) -> None:
    show_run(opened)
    run = int(opened.locator("#run-choice").input_value())
    opened.locator("#stall-order").select_option("time")
    rows = opened.locator("#stalls tbody tr")
    part = run_block(load_campaign(index.parent / "c").runs[run], True)
    assert rows.count() == len(part["stalls"]["begin"])
    opened.locator("#stall-order").focus()
    opened.keyboard.press("Tab")  # the list, which scrolls
    for place in range(2):
        opened.keyboard.press("Tab")
        opened.keyboard.press("Enter")
        expect_card(opened, figures_of(index, run, place))
    assert opened.locator("#card").get_attribute("aria-live") == "polite"
    opened.locator("#card").get_by_role("button", name="Later stall").focus()
    opened.keyboard.press("Enter")
    expect_card(opened, figures_of(index, run, 2))
    assert opened.evaluate("document.activeElement.textContent") == "Later stall"


def test_another_run_is_chosen_and_a_hung_one_says_so(opened: Page) -> None:
    show_run(opened)
    opened.locator("#run-choice").select_option("5")
    expect(opened.locator("#run-words")).to_contain_text("7.2, run 2: hung")
    expect(opened.locator("#stalls tbody tr").first).to_contain_text("s+")
    opened.locator("#stalls tbody button").first.click()
    expect(opened.locator("#card")).to_contain_text("its end was not seen")
    opened.locator("#ends-table [data-open-run='0']").click()
    expect(opened.locator("#run-words")).to_contain_text("6.1, run 1: completed")
    expect(opened.locator("#card")).to_contain_text("No stall chosen")


def test_of_two_workloads_one_is_shown_and_the_other_a_click_away(
    browser: Browser, folder: Path
) -> None:
    campaign = load_campaign(mixed_campaign(folder / "m", {"a": [50.0]}, {"c": [4.0], "d": [5.0]}))
    watched = Watched(browser, page.write(compare(campaign), folder / "mixed.html"))
    opened = watched.page
    metric = opened.locator("#metric option").first
    expect(metric).to_have_text("stalled seconds per run, s")
    expect(opened.locator("#workloads tbody tr")).to_have_count(2)
    opened.get_by_role("link", name="memcg-dirty").click()
    opened.wait_for_selector("#sawtooth.js-plotly-plot")
    expect(metric).to_have_text("both dd inside the cgroup, s")
    expect(opened.locator('[aria-current="true"]')).to_have_text("memcg-dirty")
    expect(opened.locator("#run-choice option")).to_have_count(2)
    opened.get_by_role("link", name="Machine").click()
    opened.reload()
    expect(metric).to_have_text("both dd inside the cgroup, s")
    assert opened.evaluate("document.querySelectorAll('#answer').length") == 1
    assert watched.complaints == []
    opened.close()


def test_what_the_kernel_did_differently_is_read_by_keyboard_on_any_screen(
    browser: Browser, folder: Path
) -> None:
    campaign = load_campaign(make_campaign(folder / "k", 5, 2, all_counters=True))
    watched = Watched(browser, page.write(compare(campaign), folder / "kernel.html"))
    opened = watched.page
    opened.set_viewport_size({"width": 400, "height": 800})
    opened.get_by_role("link", name="Kernel").click()
    part = opened.locator("#kernel")
    expect(part.locator("table")).to_have_count(4)
    expect(part.locator("table").first).not_to_be_visible()
    part.locator("summary").first.focus()
    opened.keyboard.press("Enter")
    expect(part.locator("table").first).to_be_visible()
    expect(part.locator("tbody tr:visible")).to_have_count(12)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 400
    assert watched.complaints == []
    opened.close()


def test_dark_and_light_follow_the_system_also_while_it_is_open(opened: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    tick = "getComputedStyle(document.querySelector('#sawtooth .ytick text')).fill"

    def brightness(colour: str) -> float:
        return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) / 3

    opened.emulate_media(color_scheme="dark")
    until(opened, f"{tick} === 'rgb(228, 231, 234)'")
    assert brightness(opened.evaluate(ground)) < 60 and brightness(opened.evaluate(tick)) > 180
    opened.emulate_media(color_scheme="light")
    assert brightness(opened.evaluate(ground)) > 240
    until(opened, f"{tick} === 'rgb(27, 31, 35)'")


def test_paper_is_light_and_open_and_has_no_controls(opened: Page) -> None:
    opened.emulate_media(media="print", color_scheme="dark")
    for name in ("sawtooth", "run-chart", "curves", "order-chart"):
        until(opened, f"document.getElementById('{name}')._fullLayout?.width === 690")
    assert (
        opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    assert not opened.locator("nav").is_visible() and not opened.locator("#run-choice").is_visible()
    assert opened.locator("#metrics").is_visible()
    opened.emulate_media(media="screen")
    until(opened, "document.getElementById('sawtooth')._fullLayout.width !== 690")
    assert not opened.locator("#metrics").is_visible() and opened.locator("nav").is_visible()


def test_a_narrow_screen_does_not_scroll_sideways(opened: Page) -> None:
    opened.set_viewport_size({"width": 400, "height": 800})
    show_run(opened)
    opened.locator("#stalls tbody button").first.click()
    opened.locator("details summary").first.click()
    for name in ("curves", "order-chart"):
        opened.locator(f"#{name}").scroll_into_view_if_needed()
        opened.wait_for_selector(f"#{name}.js-plotly-plot")
    until(opened, "document.documentElement.scrollWidth <= 400")


def test_a_table_that_is_wider_than_the_screen_says_so(opened: Page) -> None:
    hint = opened.locator(".wider:has(+ .scroll #verdicts)")
    expect(hint).to_have_count(1)
    for size, is_wider in ((390, True), (1200, False)):
        opened.set_viewport_size({"width": size, "height": 800})
        hint.wait_for(state="visible" if is_wider else "hidden")
        box = "document.querySelector('#verdicts').closest('.scroll')"
        assert opened.evaluate(f"{box}.scrollWidth > {box}.clientWidth + 1") == is_wider
        until(opened, f"document.documentElement.scrollWidth <= {size}")


def test_every_control_has_a_name_and_every_table_a_caption(opened: Page) -> None:
    show_run(opened)
    opened.locator("#stalls tbody button").first.click()
    first = "document.querySelector('a, button, select, input, [tabindex]')"
    assert opened.evaluate(f"{first}.textContent") == "Skip to the answer"
    nameless = opened.evaluate(
        """[...document.querySelectorAll('button, select, input, summary')].filter((one) =>
             !(one.textContent.trim() && one.tagName !== 'SELECT')
             && !one.labels?.length && !one.ariaLabel).map((one) => one.outerHTML)"""
    )
    assert nameless == []
    assert (
        opened.evaluate("[...document.querySelectorAll('table')].filter((t) => !t.caption).length")
        == 0
    )
    headless = "[...document.querySelectorAll('main th')].filter((th) => !th.scope).length"
    assert opened.evaluate(headless) == 0
    levels = opened.evaluate("[...document.querySelectorAll('h1,h2,h3')].map((h) => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_hostile_labels_are_shown_and_run_nothing(browser: Browser, folder: Path) -> None:
    results = make_campaign(folder / "h", 7, is_hostile=True)
    meta = results / hostile.folder_name(hostile.UNICODE) / "1" / "meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"label": PSEUDO}))
    campaign = load_campaign(results)
    path = page.write(compare(campaign, force=True), folder / "hostile.html")
    watched = Watched(browser, path)
    opened = watched.page
    assert not opened.evaluate("document.getElementById('order-chart').data")  # not yet reached
    for name in ("run-chart", "curves", "order-chart"):
        opened.locator(f"#{name}").scroll_into_view_if_needed()
        opened.wait_for_selector(f"#{name}.js-plotly-plot")
    expect(opened.locator("#verdicts tbody th").nth(0)).to_have_text(hostile.SCRIPT)
    expect(opened.locator("#verdicts tbody th").nth(1)).to_have_text(hostile.IMAGE)
    legend = opened.locator("#order-chart .legendtext").all_text_contents()
    assert len(legend) == 7 and legend[0].startswith("</script><script>window")
    assert legend[1].startswith("\"'><img src=x onerror") and legend[5].startswith("<b>b</b><a ")
    titles = opened.locator("#sawtooth .annotation-text").all_text_contents()
    assert titles[0].startswith("</script><scr") and titles[5].startswith("<b>b</b><")
    for place, label in ((1, hostile.IMAGE), (5, PSEUDO)):
        box = box_of(opened.locator("#order-chart .points path").nth(place))
        opened.mouse.move(box["x"] + 4, box["y"] + 4)
        opened.mouse.move(box["x"] + 5, box["y"] + 5)
        expect(opened.locator("#order-chart .hoverlayer text").first).to_contain_text(label)
    opened.locator("#config-variant").select_option("1")
    assert opened.locator("main img").count() == 0 and opened.locator("svg a").count() == 0
    assert opened.locator("main script").count() == 0
    assert opened.evaluate("window.owned") is None and watched.complaints == []
    opened.close()


def test_the_policy_stops_a_script_that_gets_in_all_the_same(browser: Browser, index: Path) -> None:
    opened = browser.new_page()
    opened.goto(index.as_uri(), timeout=PATIENCE)
    with opened.expect_console_message(
        lambda message: "Content Security Policy" in message.text, timeout=PATIENCE
    ):
        opened.evaluate(
            """document.body.append(Object.assign(document.createElement('script'),
                 {textContent: 'window.owned = 1'}))"""
        )
    assert opened.evaluate("window.owned") is None
    opened.close()
