# SPDX-License-Identifier: Apache-2.0
"""report.html: complete, self-contained, small, true to the estimate, and safe with any name and number."""

from __future__ import annotations

import base64
import importlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from recordings import ROOT
from synthetic import KNOTS, synthetic_estimate, with_evidence

from prime_ros.config import load_estimator_config
from prime_ros.estimation.estimate import Direction, Estimate, SensorReport
from prime_ros.estimation.identifiability import motion_for, standing
from prime_ros.measurements import AlignmentDiagnostics, ClockOffset, Finding, StreamDiagnostics
from prime_ros.outputs.context import RunContext
from prime_ros.outputs.report import write_report
from prime_ros.outputs.report.actions import actions
from prime_ros.outputs.report.facts import measured, moment, text
from prime_ros.outputs.report.series import POINTS, intervals, kept_rows, packed
from prime_ros.outputs.report.tables import BASE, roll_pitch_yaw
from prime_ros.outputs.report.whiteness import autocorrelation, whiteness
from prime_ros.robot import Robot, load_robot

SECTIONS = {
    *("summary", "next", "forces", "motion", "inertia", "unknown", "residuals"),
    *("convergence", "samples", "settings"),
}
LARGEST = 6_000_000
LATE = Finding("clock", "warning", "motion capture is 31 ms late", "set sampling.clock_offset.mocap=-0.031")
HOSTILE = "</script><script>alert('x')</script>\"&$$"


@cache
def go2() -> Robot:
    return load_robot("go2")


def context(recording: str = "walk.mcap", **diagnostics: Any) -> RunContext:
    streams = {"joints": StreamDiagnostics(read=5000, used=4990, duplicate_stamps=10)}
    given = {"streams": streams, "knots_without": {"mocap": 14, "gyroscope": 0}, **diagnostics}
    return RunContext(
        recording, load_estimator_config("pfie"), AlignmentDiagnostics(**given), {"solve": 1.25}
    )


class Page(HTMLParser):
    """What a browser would see: ids, links, the text outside of scripts, cells of tables, and scripts."""

    def __init__(self, estimate: Estimate, run: RunContext, folder: Path) -> None:
        super().__init__()
        self.path = folder / "report.html"
        write_report(estimate, go2(), run, self.path)
        self.source = self.path.read_text(encoding="utf-8")
        self.ids: set[str] = set()
        self.references: list[str] = []
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.scripts: list[str] = []
        self._words: list[str] = []
        self._in_cell = False
        self.feed(self.source)
        self.text = " ".join(" ".join(self._words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        self.references += [given[key] or "" for key in ("src", "href") if key in given]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True
        elif tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        elif self.cdata_elem != "style":
            self._words.append(data)
            if self._in_cell:
                self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def row(self, name: str) -> list[str]:
        return next(row[1:] for row in self.rows if row and row[0] == name)

    @property
    def store(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    run = context(findings=(LATE,), clock=ClockOffset(-0.031, 0.002, True))
    return Page(with_evidence(synthetic_estimate()), run, tmp_path_factory.mktemp("report"))


def unpacked(entry: dict[str, Any]) -> NDArray[np.float64]:
    """As page.js does it."""
    codes = np.frombuffer(base64.b64decode(entry["data"]), f"<u{entry['bits'] // 8}").astype(float)
    return np.where(codes == 0, np.nan, entry["low"] + (codes - 1) * entry["step"])


# --- the page


def test_every_section_is_there_and_can_be_reached(page: Page) -> None:
    assert page.ids >= SECTIONS
    anchors = {link[1:] for link in page.references if link.startswith("#")}
    assert anchors == SECTIONS - {"summary"}


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    assert all(link.startswith(("#", "data:")) for link in page.references), page.references
    assert not {"iframe", "img", "object", "embed", "base"} & set(page.tags)
    assert page.tags.count("link") == 1  # the empty icon
    (style,) = re.findall(r"<style>(.*?)</style>", page.source, re.DOTALL)
    assert "@import" not in style
    assert "url(" not in style


def test_no_tag_is_left_open(page: Page) -> None:
    for tag in (
        "section",
        "div",
        "table",
        "tr",
        "td",
        "th",
        "ul",
        "li",
        "dl",
        "details",
        "select",
        "p",
        "svg",
    ):
        outside = re.sub(r"<script.*?</script>", "", page.source, flags=re.DOTALL)
        assert len(re.findall(rf"<{tag}[ >]", outside)) == outside.count(f"</{tag}>"), tag


def test_headline_says_what_was_found(page: Page) -> None:
    assert "go2 walk.mcap" in page.text
    assert "2023-11-14 22:13:20 UTC" in page.text
    assert f"{KNOTS} knots of 10 ms" in page.text
    assert "Converged in 14 iterations: the [reason]" in page.text
    assert "NOT CONVERGED" not in page.text


def test_numbers_are_those_of_the_estimate(page: Page) -> None:
    estimate = synthetic_estimate()
    link = estimate.links["base"]
    bodies = (link.nominal, link.estimate, link.std)
    expected = {"mass": [body.mass for body in bodies], "Iyz": [body.inertia_com[1, 2] for body in bodies]}
    expected |= {f"com {a}": [1e3 * body.com[i] for body in bodies] for i, a in enumerate("xyz")}
    for name, values in expected.items():
        shown = page.row(name)[:3]
        digits = len(shown[1].partition(".")[2])
        np.testing.assert_allclose(np.array(shown, dtype=float), values, atol=0.51 * 10.0**-digits)
    force = estimate.contact_force_W[..., 2]
    mean, peak, _, duty = page.row("RL_foot")
    assert float(mean) == pytest.approx(force[:, 2].mean(), abs=0.051)
    assert float(peak.split(" ± ")[0]) == pytest.approx(force[:, 2].max(), abs=0.51)
    assert float(duty) == pytest.approx((estimate.contact_probability[:, 2] > 0.5).mean(), abs=0.0051)
    assert "Ground height +3.1 ± 0.4 mm" in page.text
    assert page.row("mocap_position")[4:5] == ["2.00 high"]


def test_page_says_what_to_do(page: Page) -> None:
    assert "motion capture is 31 ms late → set sampling.clock_offset.mocap=-0.031" in page.text
    assert "Offset of the clock of motion capture: -31 ± 2 ms, added to its stamps." in page.text
    assert "gyroscope: residuals are below the stated noise → multiply its noise std by 0.50" in page.text
    assert "extent along y - extent along z rests on the prior (20 % learned)" in page.text
    assert page.row("joints") == ["5000", "4990", "10"]
    assert page.row("mocap") == ["14", f"{100 * 14 / KNOTS:.1f} %"]


def test_estimate_that_did_not_converge_is_flagged(tmp_path: Path) -> None:
    page = Page(with_evidence(synthetic_estimate(converged=False)), context(), tmp_path)
    assert "NOT CONVERGED: do not use these numbers." in page.text
    assert 'role="alert"' in page.source
    assert "(NOT CONVERGED)" in page.source.partition("</title>")[0]
    assert page.text.index("The solver did not converge") < page.text.index("residuals exceed")


def test_estimate_without_evidence_or_links_has_all_sections(tmp_path: Path) -> None:
    page = Page(synthetic_estimate(links={}), context(), tmp_path)
    assert page.ids >= SECTIONS
    assert "No inertia was identified; the nominal one was used." in page.text
    assert "The iterations were not kept." in page.text


def test_no_name_breaks_out_of_the_page(page: Page, tmp_path: Path) -> None:
    plain = with_evidence(synthetic_estimate())
    hostile = replace(
        plain,
        joint_names=tuple(f"{HOSTILE}{name}" for name in plain.joint_names),
        contact_names=tuple(f"{HOSTILE}{name}" for name in plain.contact_names),
        links={f"{HOSTILE}base": plain.links["base"]},
        sensors={f"{HOSTILE}{name}": report for name, report in plain.sensors.items()},
        residuals={f"{HOSTILE}{name}": values for name, values in plain.residuals.items()},
        directions=(Direction(HOSTILE, HOSTILE, 0.1),),
        certificate=replace(plain.certificate, reason=HOSTILE),
    )
    finding = Finding("check", "warning", HOSTILE, HOSTILE)
    found = Page(hostile, context(HOSTILE, findings=(finding,), ignored_joints=(HOSTILE,)), tmp_path)
    assert found.tags.count("script") == page.tags.count("script")
    assert "alert('x')</script>" not in found.source
    assert found.text.count(HOSTILE) > 20
    assert set(found.store["residuals"]) == set(hostile.residuals)


def test_numbers_that_are_not_finite_are_shown_as_dashes(tmp_path: Path) -> None:
    plain = with_evidence(synthetic_estimate())
    broken = {
        name: np.full_like(getattr(plain, name), np.nan)
        for name in ("base_quat_xyzw", "contact_force_W", "joint_torque")
    }
    base = plain.links["base"]
    link = replace(base, std=replace(base.std, mass=np.inf, com=np.full(3, np.nan)))
    sensor = SensorReport(0, 0.0, 0.0, np.nan, "m")
    estimate = replace(
        plain,
        **broken,
        std={name: np.full_like(values, np.inf) for name, values in plain.std.items()},
        links={"base": link},
        ground_height=np.nan,
        sensors={**plain.sensors, "mocap_position": sensor},
        history=(replace(plain.history[0], cost=np.nan, largest_gap=np.inf), *plain.history[1:]),
        certificate=replace(plain.certificate, cost=np.inf, largest_gap=np.nan),
    )
    page = Page(estimate, context(), tmp_path)
    assert page.ids >= SECTIONS
    assert not re.search(r"\b(nan|inf)\b", page.text, re.IGNORECASE)
    assert "Ground height – mm" in page.text


@pytest.mark.parametrize("knots", [1, 2, 3])
def test_short_estimates_are_reported(knots: int, tmp_path: Path) -> None:
    assert Page(with_evidence(synthetic_estimate(knots=knots)), context(), tmp_path).ids >= SECTIONS


def test_ten_minutes_of_a_humanoid_are_light_and_keep_every_peak(tmp_path: Path) -> None:
    knots, peak = 60_000, 4321.0
    small = with_evidence(synthetic_estimate(knots=knots))

    def widened(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        times = 3 if name.startswith("joint") else 2 if name.startswith("contact") else 1
        return np.repeat(values, times, axis=1)

    std = {name: widened(values, name) for name, values in small.std.items()}
    names = [name for name in std if name.startswith(("joint", "contact"))]
    estimate = replace(
        small,
        joint_names=tuple(f"{side}_{name}" for name in small.joint_names for side in "abc"),
        contact_names=tuple(f"{side}_{name}" for name in small.contact_names for side in "ab"),
        std=std,
        **{name: widened(getattr(small, name), name) for name in names},
    )
    estimate.contact_force_W[31415, 5, 2] = peak
    page = Page(estimate, context(), tmp_path)
    assert 3_000_000 < page.path.stat().st_size < LARGEST
    assert "Of 60000 knots" in page.text
    entry = page.store["plots"]["force_5"]["force"]
    assert np.nanmax(unpacked(entry)) == pytest.approx(peak, abs=entry["step"])
    assert len(unpacked(entry)) > 4 * POINTS


def test_long_recording_keeps_every_force_for_zooming(tmp_path: Path) -> None:
    estimate = with_evidence(synthetic_estimate(knots=3 * POINTS))
    forces = Page(estimate, context(), tmp_path).store["plots"]
    assert set(forces) == {*(f"force_{index}" for index in range(4)), *BASE}
    for index in range(4):
        entry = forces[f"force_{index}"]["force"]
        np.testing.assert_allclose(
            unpacked(entry), estimate.contact_force_W[:, index, 2], atol=0.51 * entry["step"]
        )


def test_plots_are_imported_only_when_a_report_is_written() -> None:
    code = "import sys; from prime_ros.outputs.report import write_report; print('bokeh' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert result.stdout == "False\n"


# --- its parts


def test_thinning_keeps_extremes_of_every_column_and_of_every_piece() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(50_017, 3))
    table[rng.uniform(size=table.shape) < 0.2] = np.nan
    table[100:9000, 1] = np.nan
    table[7, 0] = np.inf
    rows = kept_rows(table)
    assert np.all(np.diff(rows) > 0)
    assert len(rows) <= POINTS + 2
    assert (rows[0], rows[-1]) == (0, len(table) - 1)
    finite = np.where(np.isinf(table), np.nan, table)
    for start in range(0, len(table), 1000):
        piece = finite[start : start + 1000]
        kept = finite[rows[(rows >= start) & (rows < start + 1000)]]
        for column in range(3):
            if np.isfinite(piece[:, column]).sum() > 500:
                largest = np.sort(piece[:, column][np.isfinite(piece[:, column])])[-1]
                assert np.nanmax(kept[:, column]) == largest


def test_thinning_leaves_short_series_and_survives_empty_ones() -> None:
    np.testing.assert_array_equal(kept_rows(np.zeros(POINTS)), np.arange(POINTS))
    assert len(kept_rows(np.empty((0, 3)))) == 0
    assert len(kept_rows(np.full(10 * POINTS, np.nan))) <= POINTS + 2


@pytest.mark.parametrize("bits", [8, 16])
def test_packed_series_are_exact_to_half_a_step(bits: Any) -> None:
    values = np.random.default_rng(2).normal(size=1000)
    values[[3, 500]] = np.nan, np.inf
    entry = packed(values, bits)
    expected = np.where(np.isfinite(values), values, np.nan)
    np.testing.assert_allclose(unpacked(entry), expected, atol=0.501 * entry["step"])
    assert entry["step"] == pytest.approx((np.nanmax(expected) - np.nanmin(expected)) / (2**bits - 2))
    np.testing.assert_array_equal(unpacked(packed(np.full(4, 2.5), bits)), 2.5)
    assert np.isnan(unpacked(packed(np.full(4, np.nan), bits))).all()


def test_intervals_of_contact() -> None:
    active = np.array([1, 1, 0, 0, 1, 0, 1, 1], dtype=bool)
    start, end = intervals(active, 0.1 * np.arange(8), 0.1)
    np.testing.assert_allclose(start, [-0.05, 0.35, 0.55])
    np.testing.assert_allclose(end, [0.15, 0.45, 0.75])
    assert [len(edges) for edges in intervals(np.zeros(5, dtype=bool), np.arange(5.0), 1.0)] == [0, 0]
    chatter = np.arange(60_000) % 2 == 0
    assert len(intervals(chatter, 0.01 * np.arange(60_000), 0.01)[0]) < 6000


def test_autocorrelation_with_gaps_is_that_of_the_process() -> None:
    rng = np.random.default_rng(3)
    noise, values = rng.normal(size=(40_000, 2)), np.zeros((40_000, 2))
    for k in range(1, len(values)):
        values[k] = 0.8 * values[k - 1] + noise[k]
    values[rng.uniform(size=values.shape) < 0.3] = np.nan
    correlation, pairs = autocorrelation(values, 10)
    np.testing.assert_allclose(correlation, 0.8 ** np.arange(11), atol=0.04)
    assert pairs == pytest.approx(0.49 * 80_000, rel=0.02)


def test_residuals_are_compared_with_what_the_fit_should_leave() -> None:
    estimate = with_evidence(synthetic_estimate(knots=4000))
    residuals = estimate.residuals["mocap_position"]
    absorbed = replace(residuals, whitened=0.5 * residuals.whitened)
    result = whiteness(absorbed, SensorReport(100, 25.0, 25.0, 1.0, "m"))
    assert result is not None
    assert result.expected_std == pytest.approx(0.5)
    np.testing.assert_allclose(result.density, result.expected, atol=0.03)
    assert result.outside == pytest.approx(0.0027, abs=0.002)
    assert np.mean(np.abs(result.autocorrelation[1:]) < result.bound) > 0.85
    assert whiteness(replace(residuals, rejected=np.ones_like(residuals.rejected))) is None


def test_actions_come_worst_first_and_once() -> None:
    estimate = with_evidence(synthetic_estimate(converged=False))
    sensors = {**estimate.sensors, "mocap_position": SensorReport(80, 70.0, 70.0, 0.1, "m", rejected=20)}
    found = actions(replace(estimate, sensors=sensors), context(findings=(LATE,)), "base")
    severities = [action.severity for action in found]
    assert severities == sorted(severities, key=("error", "warning", "note").index)
    assert severities[0] == "error"
    assert sum("31 ms late" in action.what for action in found) == 1
    assert any("20 % of the measurements contradict all others" in action.what for action in found)


def test_nothing_to_do_is_said(tmp_path: Path) -> None:
    plain = synthetic_estimate()
    good = replace(plain, sensors={"gyroscope": SensorReport(90, 80.0, 81.0, 0.01, "rad/s")})
    clean = context(streams={"joints": StreamDiagnostics(read=10, used=10)}, knots_without={})
    assert "Nothing stands out" in Page(good, clean, tmp_path).text


@pytest.mark.parametrize(
    ("link", "description", "motion"),
    [
        ("base", "extent along y - extent along z", "turn on the spot and roll the base; roll and pitch"),
        ("base", "tilt of the axes in xz", "turn while rolling"),
        ("trunk", "centre of mass x - mass", "stand on all feet, then walk"),
        ("FL_calf", "mass", "swing FL_calf"),
        ("base", "anything", "record longer"),
    ],
)
def test_motion_that_would_tell(link: str, description: str, motion: str) -> None:
    assert motion_for(Direction(link, description, 0.1), "trunk").startswith(motion)


def test_standing_of_directions() -> None:
    assert [standing(learned) for learned in (0.95, 0.6, 0.2, float("nan"))] == [
        *("known", "partly", "prior", "prior")
    ]


def test_numbers_in_words() -> None:
    assert (text(-0.0001, 2), text(float("nan")), text(2.0, 1, True)) == ("0.00", "–", "+2.0")
    assert (measured(3.0, 0.008, True), measured(1.0, float("inf"))) == ("+3.000 ± 0.008", "1.000 ± –")
    assert (
        moment(replace(synthetic_estimate(), stamp_ns=5_000_000_000 + np.arange(30))) == "clock starts at 5 s"
    )


def test_yaw_does_not_jump() -> None:
    angle = np.linspace(0.0, 3.0 * np.pi, 200)
    quat = np.column_stack([0 * angle, 0 * angle, np.sin(angle / 2), np.cos(angle / 2)])
    expected = np.column_stack([0 * angle, 0 * angle, np.rad2deg(angle)])
    np.testing.assert_allclose(roll_pitch_yaw(quat), expected, atol=1e-9)


# --- in a browser

PROBE = """
<script>
window.addEventListener("error", (event) => console.log("FAILED " + event.message));
(function wait() {
  if (!document.documentElement.dataset.ready) return setTimeout(wait, 50);
  const sensor = document.getElementById("sensor");
  const joint = document.getElementById("joint");
  sensor.selectedIndex = 1;
  joint.selectedIndex = 7;
  for (const control of [sensor, joint]) control.dispatchEvent(new Event("change"));
  const find = (name) => Bokeh.documents[0].get_model_by_name("page:" + name);
  const before = find("force_0").data.time.length;
  find("time").setv({ start: 20, end: 21 });
  setTimeout(() => {
    const inside = (e) => (e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);
    const all = (root) => [...root.querySelectorAll("*")].flatMap(inside);
    const drawn = (e) => e.tagName === "CANVAS" && e.width > 100;
    console.log("PROBE " + JSON.stringify({
      canvases: all(document.body).filter(drawn).length,
      overflow: document.documentElement.scrollWidth - window.innerWidth,
      width: window.innerWidth,
      torque: [...find("joint_torque").data.value],
      yaw: [...find("base_orientation").data.yaw],
      residuals: find("used").data.time.length,
      before: before,
      zoomed: [...find("force_0").data.force],
    }) + " END");
  }, 500);
})();
</script>
"""


@pytest.mark.parametrize("width", [390, 1280])
def test_page_works_in_a_browser(width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    screenshots = importlib.import_module("make_screenshots")
    program = screenshots.browser()
    if program is None:
        pytest.skip("no Chromium")
    estimate = with_evidence(synthetic_estimate(knots=2 * POINTS))
    page = Page(replace(estimate, contact_names=("time", HOSTILE, "c", "d")), context(HOSTILE), tmp_path)
    page.path.write_text(page.source + PROBE)
    frame = screenshots.side_by_side(page.path, ("",), width, 2000)
    console = screenshots.picture(program, frame.as_uri(), tmp_path / "page.png", max(width, 600), 2000)
    lines = screenshots.complaints(console)
    assert len(lines) == 1, lines
    found = json.loads(re.search(r"PROBE (.*) END", lines[0].replace('\\"', '"'))[1])  # type: ignore[index]
    assert found["width"] == width
    assert found["overflow"] <= 0
    assert found["canvases"] >= 20
    assert found["residuals"] > 100
    assert found["before"] < 2 * POINTS
    part = slice(1999, 2101)  # every knot of the second that is shown, and one on either side
    np.testing.assert_allclose(found["zoomed"], estimate.contact_force_W[part, 0, 2], atol=1e-3)
    np.testing.assert_allclose(found["torque"], estimate.joint_torque[part, 7], atol=1e-3)
    yaw = roll_pitch_yaw(estimate.base_quat_xyzw)[:, 2]
    np.testing.assert_allclose(found["yaw"], yaw[part], atol=np.ptp(yaw) / 60_000)
