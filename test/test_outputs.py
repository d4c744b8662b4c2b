# SPDX-License-Identifier: Apache-2.0
"""Results on disk and on the terminal: nothing is lost in the files, and every number states its unit."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console
from synthetic import KNOTS, assert_same_body, synthetic_estimate

from prime_ros.estimation.estimate import BodyInertia, Estimate, LinkEstimate, SensorReport
from prime_ros.exceptions import OutputError
from prime_ros.outputs import parquet
from prime_ros.outputs.advice import payload_line
from prime_ros.outputs.estimate_file import KEYS, MEASURED, load_estimate
from prime_ros.outputs.summary import print_summary
from prime_ros.outputs.write import write_results
from prime_ros.robot import Robot, load_robot


@pytest.fixture(scope="module")
def go2() -> Robot:
    return load_robot("go2")


# --- estimate.npz and inertia.yaml


def test_estimate_file_has_the_documented_keys_and_loses_nothing(tmp_path: Path, go2: Robot) -> None:
    estimate = synthetic_estimate()
    write_results(estimate, go2, tmp_path / "out")
    with np.load(tmp_path / "out" / "estimate.npz", allow_pickle=False) as archive:
        assert set(archive.files) == set(KEYS)
    loaded = load_estimate(tmp_path / "out")
    assert loaded["stamp_ns"].dtype == np.int64
    np.testing.assert_array_equal(loaded["stamp_ns"], estimate.stamp_ns)
    assert tuple(loaded["joint_names"]) == estimate.joint_names
    assert tuple(loaded["contact_names"]) == estimate.contact_names
    for name in MEASURED:
        np.testing.assert_array_equal(loaded[name], getattr(estimate, name))
        np.testing.assert_array_equal(loaded[f"{name}_std"], estimate.std[name])
    assert loaded["base_quat_xyzw_std"].shape == (KNOTS, 3)


def test_load_estimate_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no such file"):
        load_estimate(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(OutputError, match="not a readable"):
        load_estimate(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", stamp_ns=np.arange(3))
    with pytest.raises(OutputError, match="lacks joint_names"):
        load_estimate(tmp_path / "other.npz")


def test_inertia_file_loses_nothing_and_states_units(tmp_path: Path, go2: Robot) -> None:
    estimate = synthetic_estimate(converged=False)
    write_results(estimate, go2, tmp_path / "out")
    text = (tmp_path / "out" / "inertia.yaml").read_text()
    content = yaml.safe_load(text)
    assert content["converged"] is False
    assert content["ground_height"] == {"estimate": 0.0031, "std": 0.0004}
    assert list(content["links"]) == ["base"]
    for kind in ("nominal", "estimate", "std"):
        body = getattr(estimate.links["base"], kind)
        assert set(content["links"]["base"][kind]) == {"mass", "com", "inertia_com"}
        assert_same_body(BodyInertia(**content["links"]["base"][kind]), body, 0.0)
    assert all(unit in text for unit in ("[kg]", "[m]", "[kg m^2]"))


def test_without_identification_links_are_empty_and_no_urdf_is_written(tmp_path: Path, go2: Robot) -> None:
    written = write_results(synthetic_estimate(links={}), go2, tmp_path / "out")
    assert yaml.safe_load((tmp_path / "out" / "inertia.yaml").read_text())["links"] == {}
    assert "calibrated.urdf" not in written.files
    assert written.notes == ("no calibrated.urdf: no inertia was identified",)


# --- estimate.parquet


def entry(key: str, index: tuple[int, ...], estimate: Estimate) -> str:
    """Name of the column of one entry of an array."""
    xyz = "xyzw"
    if key.startswith("base_velocity_B"):
        return f"{key}.{('linear', 'angular')[index[0] // 3]}.{xyz[index[0] % 3]}"
    if key.startswith("base_"):
        return f"{key}.{xyz[index[0]]}"
    names = estimate.joint_names if key.startswith("joint_") else estimate.contact_names
    return ".".join([key, names[index[0]], *(xyz[axis] for axis in index[1:])])


@pytest.mark.parametrize("rows", [parquet.ROWS, 7], ids=["one group of rows", "several"])
def test_table_holds_every_number_under_its_name(
    tmp_path: Path, go2: Robot, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(parquet, "ROWS", rows)
    estimate = synthetic_estimate()
    parquet.save_parquet(estimate, go2, tmp_path / "e.parquet")
    table = pq.read_table(tmp_path / "e.parquet")
    expected = {"stamp_ns": estimate.stamp_ns, "time": 0.01 * np.arange(KNOTS)}
    for name in MEASURED:
        for key, array in ((name, getattr(estimate, name)), (f"{name}_std", estimate.std[name])):
            for index in np.ndindex(array.shape[1:]):
                expected[entry(key, index, estimate)] = array[(slice(None), *index)]
    assert set(table.column_names) == set(expected)
    for column, values in expected.items():
        if column == "time":
            np.testing.assert_allclose(table[column].to_numpy(), values, rtol=0, atol=1e-12)
        else:
            np.testing.assert_array_equal(table[column].to_numpy(), values)


def test_table_states_units_and_what_the_run_was(tmp_path: Path, go2: Robot) -> None:
    write_results(synthetic_estimate(converged=False), go2, tmp_path / "out")
    schema = pq.read_schema(tmp_path / "out" / "estimate.parquet")
    about = json.loads(schema.metadata[b"prime_ros"])
    assert about["schema_version"] == 1
    assert about["robot"] == "go2"
    assert about["converged"] is False
    assert about["dt"] == 0.01
    assert about["contact_names"] == ["FL_foot", "FR_foot", "RL_foot", "RR_foot"]
    units = {field.name: field.metadata[b"unit"].decode() for field in schema}
    assert units["stamp_ns"] == "ns"
    assert units["base_velocity_B.linear.x"] == "m/s"
    assert units["base_velocity_B_std.angular.z"] == "rad/s"
    assert units["base_quat_xyzw.w"] == "1"
    assert units["base_quat_xyzw_std.x"] == "rad"
    assert units["joint_torque_std.joint_3"] == "N m"
    assert units["contact_force_W.RL_foot.z"] == "N"


# --- summary


def summary_of(estimate: Estimate) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_summary(estimate, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_payload_line_shows_as_many_digits_as_are_known() -> None:
    nominal, estimate, std = (BodyInertia(m, np.zeros(3), np.eye(3)) for m in (7.277, 10.2803, 0.012))
    line = payload_line("base", LinkEstimate(nominal, estimate, std))
    assert line == "base: 7.277 -> 10.28 +- 0.01 kg (payload +3.00 kg)"


def test_summary_of_a_converged_estimate() -> None:
    text = summary_of(synthetic_estimate())
    assert "Converged in 14 iterations: the [reason]" in text
    assert "base: 7.277 -> 10.28 +- 0.01 kg (payload +3.00 kg)" in text
    assert "ground height: +3.1 +- 0.4 mm" in text
    assert all(name in text for name in ("FL_foot", "duty factor", "chi-square/dof"))
    assert "mocap_position: residuals exceed" in text
    assert "multiply its noise std by 1.41" in text
    assert "gyroscope: residuals are below" in text
    assert "joint_position: residuals" not in text
    assert "0.15 s for 0.29 s of recording, 0.52 x its length" in text


def test_summary_of_an_estimate_that_did_not_converge_says_so_first() -> None:
    text = summary_of(synthetic_estimate(converged=False))
    assert text.strip().startswith("NOT CONVERGED after 14 iterations")
    assert "Do not use" in text
    assert "Stages" in text


def test_summary_tells_what_share_of_a_sensor_was_rejected() -> None:
    estimate = synthetic_estimate()
    assert "Rejected" not in summary_of(estimate)
    gyroscope = replace(estimate.sensors["gyroscope"], count=97, rejected=3)
    text = summary_of(replace(estimate, sensors={**estimate.sensors, "gyroscope": gyroscope}))
    assert "Rejected because all others contradict: gyroscope 3.00%" in text


def test_summary_copes_with_an_unused_sensor_and_no_links() -> None:
    unused = {"imu": SensorReport(0, 0.0, 0.0, float("nan"), "rad/s")}
    text = summary_of(replace(synthetic_estimate(links={}), sensors=unused))
    assert "not used" in text
    assert "Inertia not identified" in text
