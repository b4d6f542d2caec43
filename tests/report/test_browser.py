"""The report in a real browser: what is seen, pressed and heard.

Without Chromium these tests are skipped, unless ``BEZOAR_REQUIRE_BROWSER`` is set, as in CI.
"""

import os
import re
import shutil

import numpy as np
import pytest
from playwright import sync_api
from report_results import HOSTILE, hostile_results

from bezoar.experiments import Store, expand, run_key
from bezoar.report import write_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

#: It may run as root, and must not look for updates.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium():
    if CHROMIUM is None:
        if os.environ.get("BEZOAR_REQUIRE_BROWSER"):
            pytest.fail("BEZOAR_REQUIRE_BROWSER is set, and no Chromium is installed")
        # Reason: a browser is no Python package, so "make test" cannot bring one along. CI installs
        # Chromium and sets BEZOAR_REQUIRE_BROWSER, so that there these tests always run.
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(swept, reproduced, tmp_path_factory):
    """A report of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    hostile = hostile_results(tmp_path_factory.mktemp("hostile"))
    kinds = {"swept": swept, "reproduced": reproduced, "hostile": hostile}
    return {kind: write_report(results, folder / f"{kind}.html") for kind, results in kinds.items()}


@pytest.fixture
def open_page(chromium, pages):
    """Opens a report offline; whatever it asks the network for or complains about is an error."""
    contexts, problems = [], []

    def open_(kind, width=1280, height=900, scheme="light", **options):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
            offline=True,
            **options,
        )
        contexts.append(context)
        page = context.new_page()
        url = pages[kind].as_uri()
        page.on("request", lambda request: _check_request(request.url, url, problems))
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert problems == []


def _check_request(asked, own, problems):
    if asked != own and not asked.startswith("data:"):
        problems.append(f"asked for {asked}")


def shown(value):
    """A number as the page shows it, read back."""
    digits, _, power = value.partition("×10")
    exponent = power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return float(digits) * 10.0 ** int(exponent or 0)


def tip(plot):
    """The tooltip of a panel: the iteration, and for each rule its texts of numbers."""
    iteration = int(plot.locator(".tip strong").inner_text().removeprefix("iteration "))
    rows = {
        row.get_attribute("data-rule"): re.findall(
            r"[\d.]+(?:×10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?|–", row.locator(".value").inner_text()
        )
        for row in plot.locator(".tip > div").all()
    }
    return iteration, rows


def point_at(plot, share):
    """Move the mouse to a share of the way along the iterations."""
    box = plot.bounding_box()
    left, right = 72, 14  # the margins of the axes
    plot.hover(position={"x": left + share * (box["width"] - left - right), "y": 60})


def stored(swept, network, partition, rule):
    fields = {"network": network, "partition": partition, "iterations": 4, "every": 2}
    if rule == "baseline":
        fields |= {"poisoned": []}
    else:
        fields |= {"aggregator": rule}
    seeds = [0, 1] if partition == "iid" else [0]
    return [
        Store(swept / "store").load(run_key(spec)) for spec in expand({**fields, "seed": seeds})
    ]


@pytest.mark.parametrize("kind", ["swept", "reproduced"])
def test_it_opens_from_the_disk_without_network_or_complaint(open_page, kind):
    page = open_page(kind)
    assert page.locator("h1").count() == 1
    for plot in page.locator(".plot").all():
        assert plot.locator("g.curve").count() >= 3
    assert page.locator("img").evaluate_all("all => all.every((one) => one.complete)")


@pytest.mark.parametrize(("share", "place"), [(0.02, 0), (0.45, 1), (0.98, 2)])
def test_pointing_at_a_panel_shows_what_was_stored(open_page, swept, share, place):
    page = open_page("swept")
    for panel, network, partition in (
        (0, "two_castle", "by_class"),
        (1, "fan", "iid"),
        (2, "fan", "by_class"),
    ):
        plot = page.locator(".plot").nth(panel)
        plot.scroll_into_view_if_needed()
        point_at(plot, share)
        iteration, rows = tip(plot)
        assert iteration == 2 * place
        assert len(rows) == (3 if partition == "iid" else 5)
        for rule, texts in rows.items():
            values = [
                run["accuracy_mean"][place] for run in stored(swept, network, partition, rule)
            ]
            expected = [np.mean(values), min(values), max(values)][: 1 if len(values) == 1 else 3]
            assert [shown(text) for text in texts] == pytest.approx(expected, abs=5.1e-5)
        page.mouse.move(0, 0)
        assert plot.locator(".tip").is_hidden()


def test_another_metric_is_drawn_everywhere(open_page, swept):
    page = open_page("swept")
    before = page.locator(".plot").first.locator("svg > g.curve path").first.get_attribute("d")
    page.get_by_label("Metric").select_option("consensus_error")
    plot = page.locator(".plot").first
    assert plot.locator("svg > g.curve path").first.get_attribute("d") != before
    assert "logarithmic axis" in page.locator(".about").inner_text()
    ticks = [
        (np.log10(shown(text.text_content())), text.bounding_box()["y"])
        for text in plot.locator('svg > text[text-anchor="end"]').all()
    ]
    assert len(ticks) >= 2
    powers, heights = np.array(ticks).T
    assert np.ptp(np.diff(heights) / np.diff(powers)) < 1  # the same way for every factor
    point_at(plot, 0.98)
    _, rows = tip(plot)
    for rule, [text] in rows.items():
        [run] = stored(swept, "two_castle", "by_class", rule)
        assert shown(text) == pytest.approx(run["consensus_error"][-1], rel=0.006, abs=5.1e-5)


def test_the_table_has_the_metric_that_is_chosen(open_page):
    page = open_page("swept")
    tables = page.locator("[data-metric]:visible")
    for metric in ("accuracy_mean", "consensus_error", "accuracy_worst"):
        page.get_by_label("Metric").select_option(metric)
        assert [table.get_attribute("data-metric") for table in tables.all()] == [metric]
        columns = tables.locator("thead th").count() - 1
        assert tables.locator("td.best").count() >= columns


def test_panels_are_aligned_and_say_what_they_show(open_page):
    page = open_page("swept")
    plots = page.locator(".plot").all()
    assert len(plots) == 3
    first, second = (plot.bounding_box() for plot in plots[:2])
    assert first["x"] < second["x"]
    assert first["y"] == pytest.approx(second["y"], abs=0.5)  # however long their titles are
    for plot in plots:
        assert plot.locator("text.y").text_content() == "test accuracy (mean over agents)"
    ticks = [plot.locator('svg > text[text-anchor="end"]').all_text_contents() for plot in plots]
    assert ticks[0] == ticks[1] == ticks[2]


def test_curves_with_few_points_have_a_marker_at_each(open_page):
    page = open_page("swept")
    for curve in page.locator("g.curve").all():
        assert curve.locator(".marker").count() == 3


def test_rules_are_named_as_they_are_typed(open_page):
    page = open_page("swept")
    button = page.locator('.legend button[data-rule="clipped_gossip:threshold=0.1"]')
    assert button.locator("code").text_content() == "clipped_gossip:threshold=0.1"
    assert page.locator('.legend button[data-rule="baseline"] code').count() == 0
    assert page.locator("[data-metric]:visible tbody th code").first.is_visible()


def test_a_rule_is_hidden_and_shown_in_all_panels(open_page):
    page = open_page("reproduced")
    curves = page.locator('.curve[data-rule="ios"], .band[data-rule="ios"]')
    everything = curves.count()
    assert everything >= 3
    button = page.locator(".legend").first.get_by_role("button", name="IOS")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert curves.count() == 0
    others = page.locator('.legend button[data-rule="ios"]')
    assert {one.get_attribute("aria-pressed") for one in others.all()} == {"false"}
    point_at(page.locator(".plot").first, 0.5)
    assert "ios" not in tip(page.locator(".plot").first)[1]
    button.click()
    assert curves.count() == everything
    assert page.get_by_role("button", name="Show all").count() == 0
    button.click()
    page.get_by_role("button", name="Show all").first.click()
    assert curves.count() == everything


def test_hiding_everything_leaves_an_empty_panel(open_page):
    page = open_page("swept")
    for button in page.locator(".legend button[data-rule]").all():
        button.click()
    assert page.locator("g.curve").count() == 0
    assert "no curves shown" in page.locator(".plot").first.get_attribute("aria-valuetext")


def test_it_is_worked_with_the_keyboard_alone(open_page, swept):
    page = open_page("swept")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.get_by_label("Metric").focus()
    page.keyboard.press("ArrowDown")
    assert page.get_by_label("Metric").input_value() == "accuracy_worst"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    pressed = page.locator(".legend button").first
    assert pressed.get_attribute("aria-pressed") == "false"
    page.keyboard.press("Enter")
    assert pressed.get_attribute("aria-pressed") == "true"
    plot = page.locator(".plot").first
    plot.focus()
    assert plot.evaluate("one => one.matches(':focus-visible')")
    assert plot.get_attribute("role") == "slider"
    places = []
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "End", "PageDown"):
        page.keyboard.press(key)
        places.append(int(plot.get_attribute("aria-valuenow")))
        assert tip(plot)[0] == places[-1]
    assert places == [0, 2, 4, 4, 2, 4, 2]
    [run] = stored(swept, "two_castle", "by_class", "ios")
    assert f"IOS {run['accuracy_mean'][1]:.4f}" in plot.get_attribute("aria-valuetext")
    page.keyboard.press("Escape")
    assert plot.locator(".tip").is_hidden()


@pytest.mark.parametrize("kind", ["swept", "reproduced", "hostile"])
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_sticks_out_of_the_page(open_page, kind, width):
    page = open_page(kind, width=width, height=740)
    page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for button in page.locator(".legend button:visible").all():
        box = button.bounding_box()
        assert box["x"] + box["width"] <= width
    for title in page.locator(
        "caption span:visible"
    ).all():  # wide tables scroll, their titles do not
        box = title.bounding_box()
        assert box["x"] + box["width"] <= width
    plot = page.locator(".plot").last
    plot.scroll_into_view_if_needed()
    point_at(plot, 0.5)
    box = plot.locator(".tip").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_labels_of_axes_do_not_overlap(open_page):
    for width in (360, 1280):
        page = open_page("swept", width=width)
        for metric in ("accuracy", "consensus_error", "heterogeneity"):
            page.get_by_label("Metric").select_option(metric)
            for plot in page.locator(".plot").all():
                boxes = [text.bounding_box() for text in plot.locator("svg > text").all()]
                for place, one in enumerate(boxes):
                    assert not any(_overlap(one, other) for other in boxes[place + 1 :])


def _overlap(one, other):
    return (
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] + 2 < other["y"] + other["height"] - 2
        and other["y"] + 2 < one["y"] + one["height"] - 2
    )


@pytest.mark.parametrize(
    ("kind", "scheme", "width"),
    [
        ("swept", "light", 1280),
        ("swept", "dark", 360),
        ("reproduced", "light", 360),
        ("reproduced", "dark", 1280),
    ],
)
def test_axe_finds_nothing(open_page, kind, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(kind, width=width, scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach((one) => (one.open = true))")
    page.locator(".legend button").first.click()
    point_at(page.locator(".plot").first, 0.5)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_hostile_names_are_shown_and_do_nothing(open_page):
    page = open_page("hostile")
    assert page.evaluate("window.pwned") is None
    for place in ("h1", "figcaption", ".legend button", "#rerun code"):
        assert HOSTILE in page.locator(place).first.text_content()
    point_at(page.locator(".plot").first, 0.5)
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0


def test_commands_are_copied(open_page):
    page = open_page("reproduced", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").first.click()
    page.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "bezoar reproduce fig1 --iterations 4"


def test_in_print_it_is_light_and_whole(open_page):
    page = open_page("reproduced", scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert dark == "rgb(20, 23, 28)"
    assert page.locator("nav").is_hidden()
    assert page.locator("details img").first.is_visible()


def test_without_scripts_the_rest_can_be_read(open_page):
    page = open_page("reproduced", java_script_enabled=False)
    assert page.get_by_text("The curves are drawn by a script").first.is_visible()
    assert page.get_by_text("WeiMean 0.757, IOS 0.653.").first.is_visible()
    assert page.locator("svg.network").first.is_visible()


def test_a_window_that_changes_is_drawn_anew(open_page):
    page = open_page("swept", width=1280)
    svg = page.locator(".plot svg").first
    before = svg.get_attribute("viewBox")
    page.set_viewport_size({"width": 420, "height": 800})
    sync_api.expect(svg).not_to_have_attribute("viewBox", before)
    box = svg.bounding_box()
    assert box["width"] == pytest.approx(float(svg.get_attribute("viewBox").split()[2]), abs=1)
