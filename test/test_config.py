# SPDX-License-Identifier: Apache-2.0
import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from prime_ros.config import EstimatorConfig, RobotConfig, available, load_estimator_config, load_robot_config
from prime_ros.config.units import UNITS, to_si
from prime_ros.exceptions import ConfigError, PrimeError


def robot_yaml(folder: Path, **changes: object) -> Path:
    content: dict[str, object] = {"name": "test", "model": "test.urdf", "contacts": [{"name": "foot"}]}
    path = folder / "robot.yaml"
    path.write_text(yaml.safe_dump({**content, **changes}))
    return path


def sections(model: type[BaseModel], prefix: str = "") -> list[tuple[str, str | None]]:
    """Dotted key and description of every field of a configuration."""
    found = []
    for name, field in model.model_fields.items():
        found.append((prefix + name, field.description))
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += sections(field.annotation, f"{prefix}{name}.")
    return found


def test_the_shipped_estimator_states_every_default():
    assert load_estimator_config("pfie") == EstimatorConfig()
    shipped = load_estimator_config("pfie").model_dump()

    def keys(mapping: dict, prefix: str = "") -> set[str]:
        return {
            key
            for name, value in mapping.items()
            for key in (
                {prefix + name} | (keys(value, f"{prefix}{name}.") if isinstance(value, dict) else set())
            )
        }

    text = Path(__file__).parent.parent / "config" / "estimators" / "pfie.yaml"
    assert keys(yaml.safe_load(text.read_text())) == keys(shipped)


@pytest.mark.parametrize("model", [EstimatorConfig, RobotConfig])
def test_every_field_has_a_description(model):
    assert [key for key, description in sections(model) if not description] == []


def test_every_shipped_robot_can_be_read():
    for name in available("robots"):
        assert load_robot_config(name).name == name


def test_configurations_are_frozen():
    with pytest.raises(ValidationError):
        load_estimator_config("pfie").dt = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "solver.max_iteration=3",
            ["solver.max_iteration", "did you mean 'max_iterations'", "gap_tolerance"],
        ),
        ("prior.foo.bar=1", ["prior.foo", "unknown key 'foo'", "base_position"]),
        ("solver=3", ["solver", "got 3", "mapping"]),
        ("dt=fast", ["dt", "got 'fast'", "[s]"]),
        ("dt=-1", ["dt", "got -1.0", "greater than"]),
        ("dt=.inf", ["dt", "got inf", "finite"]),
        ("dt=true", ["dt", "got True", "number"]),
        ("slack.normal=2 kg", ["slack.normal", "'2 kg'", "m/s", "mm/s"]),
        ("solver.name=newton", ["solver.name", "'newton'", "gauss-newton", "fddp"]),
        ("solver.max_iterations=2.5", ["solver.max_iterations", "2.5", "integer"]),
        ("contact.kappa_stages=[20, -1]", ["contact.kappa_stages", "> 0"]),
        ("contact.kappa_stages=[20, soft]", ["contact.kappa_stages[1]", "'soft'"]),
        ("contact.kappa_stages=[]", ["contact.kappa_stages", "at least one"]),
        ("links=base", ["links", "'base'", "list"]),
        ("dt", ["dt", "KEY=VALUE"]),
        ("dt=[1, 2", ["dt=[1, 2", "line 1"]),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_got_and_what_is_valid(override, words):
    with pytest.raises(ConfigError) as error:
        load_estimator_config("pfie", [override])
    assert [word for word in words if word not in str(error.value)] == []


def test_overrides_win_over_the_file_in_order():
    config = load_estimator_config("pfie", ["dt=0.02", "solver.gap_tolerance=1e-8", "links=[]", "dt=5 ms"])
    assert config.dt == 0.005
    assert config.solver.gap_tolerance == 1e-8
    assert config.links == ()
    assert config.solver.max_iterations == EstimatorConfig().solver.max_iterations


def test_a_file_needs_only_what_differs(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("slack: {normal: 0.5}\n")
    assert load_estimator_config(path).slack.normal == 0.5
    assert load_estimator_config(path).slack.tangential == EstimatorConfig().slack.tangential
    path.write_text("")
    assert load_estimator_config(path) == EstimatorConfig()


def test_every_wrong_key_of_a_file_is_reported_at_once(tmp_path):
    contacts = [{"name": "a", "radus": 0.1}, {"name": "b", "offset": [1, 2]}]
    path = robot_yaml(
        tmp_path, contacts=contacts, noise={"mocap_position": "2 deg"}, imu={"quat_xyzw": [0, 0, 0, 2]}
    )
    with pytest.raises(ConfigError) as error:
        load_robot_config(path)
    lines = str(error.value).splitlines()
    assert len(lines) == 4
    assert all(line.startswith(str(path)) for line in lines)
    assert "contacts[0].radus: unknown key 'radus' (did you mean 'radius'?)" in lines[0]
    assert "contacts[1].offset: got [1, 2], expected a list of 3 numbers [m]" in lines[1]
    assert "imu.quat_xyzw" in lines[2]
    assert "norm 2" in lines[2]
    assert "noise.mocap_position: got '2 deg'" in lines[3]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"contacts": []}, ["contacts", "at least one"]),
        ({"contacts": [{"name": "foot"}, {"name": "foot"}]}, ["contacts", "foot occurs more than once"]),
        ({"friction": 0}, ["friction", "got 0", "> 0"]),
        ({"friction": [1, 2, 3]}, ["friction", "world x"]),
        ({"joints": {"armature": {"hip": -1}}}, ["joints.armature", "'hip': -1", ">= 0"]),
        ({"noise": {"joint_torque": 0}}, ["noise.joint_torque", "> 0"]),
        ({"contacts": [{"name": "foot", "radius": -0.1}]}, ["contacts[0].radius", "-0.1"]),
    ],
)
def test_a_wrong_robot_is_refused(tmp_path, changes, words):
    with pytest.raises(ConfigError) as error:
        load_robot_config(robot_yaml(tmp_path, **changes))
    assert [word for word in words if word not in str(error.value)] == []


def test_a_missing_key_is_named(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text("name: test\n")
    with pytest.raises(ConfigError, match=r"model: missing \(URDF or MJCF"):
        load_robot_config(path)


def test_friction_is_one_number_or_one_for_each_axis(tmp_path):
    assert load_robot_config(robot_yaml(tmp_path, friction=0.5)).friction == (0.5, 0.5)
    assert load_robot_config(robot_yaml(tmp_path, friction=[0.5, 0.6])).friction == (0.5, 0.6)


def test_a_model_beside_the_yaml_is_found_from_anywhere(tmp_path):
    (tmp_path / "test.urdf").write_text("<robot/>")
    assert load_robot_config(robot_yaml(tmp_path)).model == str((tmp_path / "test.urdf").resolve())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dt: 0.01\ndt: 0.02\n", "line 2: key 'dt' is given twice"),
        ("dt: [\n", "line"),
        ("- dt\n", "got list, expected a mapping"),
        ("1: 2\n", "expected a mapping"),
    ],
)
def test_bad_yaml_is_a_config_error(tmp_path, text, words):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        load_estimator_config(path)


def test_an_unknown_name_is_answered_with_the_names_there_are(tmp_path):
    with pytest.raises(ConfigError, match=r"no robot 'g02' \(did you mean 'go2'\?\).*go2"):
        load_robot_config("g02")
    with pytest.raises(ConfigError, match="no such file"):
        load_estimator_config(tmp_path / "none.yaml")
    with pytest.raises(PrimeError, match="no estimator"):
        load_estimator_config("go2")


@given(st.floats(-1e6, 1e6), st.sampled_from([(si, unit) for si, units in UNITS.items() for unit in units]))
def test_a_quantity_with_a_unit_is_the_number_times_the_unit(number, units):
    si, unit = units
    assert to_si(f"{number!r} {unit}", si) == pytest.approx(number * UNITS[si][unit])
    assert to_si(number, si) == number


@given(st.sampled_from(list(UNITS)), st.sampled_from(list(UNITS)))
def test_a_unit_of_another_dimension_is_refused(si, other):
    for unit in set(UNITS[other]) - set(UNITS[si]):
        with pytest.raises(ValueError, match="units"):
            to_si(f"1 {unit}", si)


def test_degrees_are_exact():
    assert to_si("0.5 deg", "rad") == pytest.approx(math.radians(0.5), rel=1e-15)
    assert load_robot_config("go2").noise.mocap_rotation == pytest.approx(math.radians(0.5), rel=1e-15)
