# SPDX-License-Identifier: Apache-2.0
"""The nodes on real ROS 2: in processes of their own, fed by a player in another one."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from recordings import BAG

from prime_ros import sources
from prime_ros.config import load_estimator_config
from prime_ros.config.loading import shipped_folder
from prime_ros.estimation.full_information import solve
from prime_ros.measurements import align
from prime_ros.robot import load_robot

live = pytest.importorskip("live_session")
ours = pytest.importorskip("prime_ros.msg")
diagnostic_msgs = pytest.importorskip("diagnostic_msgs.msg")
nav_msgs = pytest.importorskip("nav_msgs.msg")
visualization_msgs = pytest.importorskip("visualization_msgs.msg")
std_srvs = pytest.importorskip("std_srvs.srv")

PLAYED = 3.0  # [s] of the recording, twice
LOST = (1.5, 0.6)  # [s] begin and length of a loss of motion capture
NODE = "prime_ros.nodes.mhe_node"


@pytest.fixture(scope="module")
def session():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        session = live.Session()
        yield session
        session.close()


@pytest.fixture(scope="module")
def recording():
    return sources.load(BAG).cropped(2.0, PLAYED)


@pytest.fixture(scope="module")
def table(recording, tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / "recording.npz"
    sources.write_table(recording, path)
    return path


@pytest.fixture(scope="module")
def node(session):
    """mhe_node, active."""
    with session.process("-m", NODE, "--ros-args", "-p", "config:=mhe"):
        live.until(lambda: state(session) == "active", "active node")
        yield


@pytest.fixture(scope="module")
def heard(session, node, table, recording):
    """What mhe_node published while the recording was played twice, motion capture missing for a while."""
    lists = SimpleNamespace(
        contacts=session.listen("/prime/contacts", ours.ContactForceArray),
        lagged=session.listen("/prime/lagged/contacts", ours.ContactForceArray),
        odometry=session.listen("/prime/odometry", nav_msgs.Odometry),
        joints=session.listen("/prime/joint_states", live.JointState),
        markers=session.listen("/prime/markers", visualization_msgs.MarkerArray),
        inertia=session.listen("/prime/inertia", ours.InertiaEstimate, live.LATCHED),
        status=session.listen("/prime/status", ours.EstimatorStatus, live.LATCHED),
        diagnostics=session.listen("/diagnostics", diagnostic_msgs.DiagnosticArray),
    )
    lost = ("--fault", "no-mocap", "--at", str(LOST[0]), "--for", str(LOST[1]))
    session.play(table, "--loops", "2", *lost)
    live.until(lambda: is_over(lists.contacts, recording), "estimate of the last samples", timeout=120.0)
    return lists


def is_over(contacts, recording):
    """Whether the end of the recording has come twice; a slow machine takes its time."""
    stamps = np.array([live.stamp(message) for message in contacts])
    again = np.flatnonzero(np.diff(stamps) < -1e9)
    return len(again) > 0 and stamps[again[0] + 1 :].max() > recording.joints.stamp_ns[-1] - 50_000_000


def state(session):
    return session.call("/prime/get_state", live.GetState).current_state.label


def change(session, transition):
    request = live.Transition(id=transition)
    return session.call("/prime/change_state", live.ChangeState, transition=request).success


def set_parameter(session, name, value):
    parameter = live.Parameter(name, value=value).to_parameter_msg()
    return session.call("/prime/set_parameters", live.SetParameters, parameters=[parameter]).results[0]


def faults(heard, entry):
    """What diagnostics said was wrong with an entry."""
    return {
        status.message
        for message in heard.diagnostics
        for status in message.status
        if status.name == f"/prime: {entry}" and status.level != status.OK
    }


def forces(messages):
    return np.array([[[c.force.x, c.force.y, c.force.z] for c in message.contacts] for message in messages])


def test_outputs_are_stamped_with_the_time_of_measurement(heard, recording):
    joints = set(recording.joints.stamp_ns.tolist())
    for messages in (heard.contacts, heard.odometry, heard.joints, heard.lagged):
        assert len(messages) > 50  # however slow the machine
        assert {live.stamp(message) for message in messages} <= joints
    assert heard.odometry[0].header.frame_id == "world"
    assert heard.odometry[0].child_frame_id == "base"
    assert tuple(heard.joints[0].name) == load_robot("go2").joint_names
    assert [contact.contact for contact in heard.contacts[0].contacts] == list(
        load_robot("go2").contact_names
    )


def test_outputs_go_on_and_stay_finite_without_motion_capture(heard, recording):
    assert all(np.isfinite(forces([message])).all() for message in heard.contacts)
    since = (np.array([live.stamp(message) for message in heard.contacts]) - recording.start_ns) / 1e9
    assert ((since > LOST[0] + 0.2) & (since < LOST[0] + LOST[1])).sum() > 5
    assert any("mocap" in text or "silent" in text for text in faults(heard, "mocap"))


def test_forces_are_those_of_the_full_information_estimate(heard, recording):
    robot = load_robot("go2")
    config = load_estimator_config("pfie")
    reference = solve(align(recording, robot, config), robot, config)
    stamps = np.array([live.stamp(message) for message in heard.contacts])
    settled = (stamps - recording.start_ns > 1e9) & (stamps <= reference.stamp_ns[-2])
    tracked = np.abs((stamps - recording.start_ns) / 1e9 - LOST[0] - LOST[1] / 2) > LOST[1] / 2 + 0.2
    chosen = settled & tracked
    assert chosen.sum() > 30
    expected = np.stack(
        [
            np.interp(stamps[chosen], reference.stamp_ns, reference.contact_force_W[:, c, axis])
            for c in range(4)
            for axis in range(3)
        ],
        axis=1,
    )
    error = forces(heard.contacts)[chosen].reshape(-1, 12) - expected
    assert np.sqrt(np.mean(error**2)) < 4.0  # [N]
    mass = heard.inertia[-1].estimate[0].mass
    assert mass == pytest.approx(reference.links["base"].estimate.mass, abs=0.3)  # after some 3 s
    assert heard.inertia[-1].std[0].mass < 0.3


def test_markers_are_as_frequent_as_a_screen_shows_them(heard):
    first_turn = heard.markers[: len(heard.markers) // 3]
    stamps = [live.stamp(message.markers[0]) for message in first_turn]
    assert len(stamps) > 10
    assert np.diff(stamps).min() > 19e6  # [ns]


def test_a_clock_that_goes_back_starts_the_window_anew_and_is_told(heard):
    stamps = np.array([live.stamp(message) for message in heard.contacts])
    assert (np.diff(stamps) < -1e9).sum() == 1
    assert any("clock" in text for text in faults(heard, "window"))


def test_diagnostics_have_figures_and_come_once_per_second(heard):
    names = {status.name.removeprefix("/prime: ") for status in heard.diagnostics[-1].status}
    assert names == {"joint_states", "imu", "mocap", "window", "sensors"}
    values = [
        {pair.key: pair.value for status in message.status for pair in status.values}
        for message in heard.diagnostics
    ]
    assert any("update p99 [ms]" in value for value in values)
    assert max(float(value.get("joints: used", 0)) for value in values) > 500
    assert 2 * PLAYED - 2 < len(heard.diagnostics) < 60


def test_missing_publishers_are_named(session, heard):
    heard.diagnostics.clear()
    live.until(lambda: heard.diagnostics, "diagnostics")
    assert any("no publisher" in text for text in faults(heard, "joint_states"))


def test_parameters_have_descriptions_and_ranges(session, node):
    names = ["slack.normal", "horizon.steps", "mocap_type", "robot", "links"]
    described = session.call("/prime/describe_parameters", live.DescribeParameters, names=names).descriptors
    slack, steps, mocap, robot, _ = described
    assert "[m/s]" in slack.description
    assert (slack.floating_point_range[0].from_value, slack.read_only) == (0.0, False)
    assert steps.integer_range[0].from_value >= 1
    assert "odometry" in mocap.additional_constraints
    assert robot.read_only
    values = session.call("/prime/get_parameters", live.GetParameters, names=names).values
    assert values[0].double_value == load_estimator_config("mhe").slack.normal
    assert values[4].string_array_value == ["base"]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("slack.normal", -1.0, "range"),
        ("slack.normal", 0.0, "greater than 0"),
        ("slack.normal", "much", "type"),
        ("robot", "g1", "read-only"),
        ("sampling.clock_offset.estimate", "perhaps", "'auto'"),
    ],
)
def test_wrong_values_are_refused_and_told_why(session, node, name, value, reason):
    result = set_parameter(session, name, value)
    assert not result.successful
    assert reason.lower() in result.reason.lower()


def test_settings_change_while_it_runs(session, node):
    assert set_parameter(session, "slack.normal", 0.5).successful
    assert set_parameter(session, "marker_rate", 10.0).successful
    (value,) = session.call("/prime/get_parameters", live.GetParameters, names=["slack.normal"]).values
    assert value.double_value == 0.5


def test_reset_by_service(session, node):
    answer = session.call("/prime/reset", std_srvs.Trigger)
    assert answer.success
    assert "anew" in answer.message


def test_lifecycle(session, heard):
    assert change(session, live.Transition.TRANSITION_DEACTIVATE)
    assert state(session) == "inactive"
    assert session.node.count_subscribers("/joint_states") == 0
    assert change(session, live.Transition.TRANSITION_CLEANUP)
    assert state(session) == "unconfigured"
    live.until(lambda: session.node.count_publishers("/prime/contacts") == 0, "withdrawal of the topics")
    assert change(session, live.Transition.TRANSITION_CONFIGURE)
    assert change(session, live.Transition.TRANSITION_ACTIVATE)
    assert state(session) == "active"
    heard.diagnostics.clear()
    live.until(lambda: heard.diagnostics, "diagnostics")


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("config:=nonsense", "no estimator 'nonsense'"),
        ("robot:=go3", "no robot 'go3'"),
        ("slack.normal:=-1.0", "slack.normal"),
    ],
)
def test_bad_settings_end_it_with_one_line(session, option, told):
    command = [sys.executable, "-m", NODE, "--ros-args", "-p", option]
    result = subprocess.run(
        command,
        env=session.environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=live.TIMEOUT,
        check=False,
    )
    assert result.returncode == 2
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_a_model_that_does_not_exist_leaves_it_unconfigured(session, node):
    command = ("-m", NODE, "--ros-args", "-p", "urdf:=/nowhere.urdf", "-r", "__ns:=/other")
    with session.process(*command):
        label = live.until(
            lambda: session.call("/other/prime/get_state", live.GetState).current_state.label,
            "state of the node",
        )
        assert label == "unconfigured"


def test_whole_recording_is_solved_written_and_replayed(session, recording, tmp_path):
    bag, out = tmp_path / "walk.npz", tmp_path / "results"
    sources.write_table(recording.cropped(0.0, 1.0), bag)
    contacts = session.listen("/whole/prime/contacts", ours.ContactForceArray)
    status = session.listen("/whole/prime/status", ours.EstimatorStatus, live.LATCHED)
    clock = session.listen("/clock", live.Clock)
    options = [f"bag:={bag}", f"out:={out}", "rate:=2.0", "loop:=true"]
    parameters = [part for option in options for part in ("-p", option)]
    with session.process("-m", "prime_ros.nodes.pfie_node", "--ros-args", *parameters, "-r", "__ns:=/whole"):
        live.until(lambda: len(contacts) > 150, "replay")
        assert session.call("/whole/prime/solve", std_srvs.Trigger).success  # a replay makes way
    assert (out / "estimate.npz").is_file()
    with np.load(out / "estimate.npz") as estimate:
        assert {live.stamp(message) for message in contacts} <= set(estimate["stamp_ns"].tolist())
        first = list(estimate["stamp_ns"]).index(live.stamp(contacts[0]))
        np.testing.assert_allclose(forces(contacts[:1])[0], estimate["contact_force_W"][first])
    assert any(message.converged for message in status)
    assert len(clock) > 100


def test_live_topics_are_solved_on_request(session, recording, tmp_path):
    table = tmp_path / "short.npz"
    sources.write_table(recording.cropped(0.0, 1.0), table)
    status = session.listen("/asked/prime/status", ours.EstimatorStatus, live.LATCHED)
    topics = [part for name in ("joint_states", "imu", "mocap") for part in ("-r", f"{name}:=/{name}")]
    with session.process("-m", "prime_ros.nodes.pfie_node", "--ros-args", "-r", "__ns:=/asked", *topics):
        assert session.call("/asked/prime/solve", std_srvs.Trigger).success
        live.until(
            lambda: any("so far" in message.reason for message in status), "complaint that nothing came"
        )
        session.play(table)
        told = len(status)
        assert session.call("/asked/prime/solve", std_srvs.Trigger).success
        live.until(lambda: any(is_verdict(message) for message in status[told:]), "verdict")
        assert status[-1].converged, status[-1].reason


def is_verdict(message):
    return not message.reason.startswith(("collecting", "stage"))


def test_transforms_end_when_somebody_else_moves_the_base(session, recording, tmp_path):
    tf2_msgs = pytest.importorskip("tf2_msgs.msg")
    bag = tmp_path / "walk.npz"
    sources.write_table(recording.cropped(0.0, 0.5), bag)
    heard = session.listen("/tf", tf2_msgs.TFMessage)
    described = session.listen("/robot_description", live.String, live.LATCHED)
    parameters = [
        part for option in (f"bag:={bag}", "loop:=true", "transforms:=robot") for part in ("-p", option)
    ]
    with session.process("-m", "prime_ros.nodes.pfie_node", "--ros-args", *parameters, "-r", "__ns:=/shown"):
        live.until(lambda: heard, "transforms")
        parents = {t.child_frame_id: t.header.frame_id for t in heard[0].transforms}
        assert parents["base"] == "world"
        assert parents["FL_calf"] == "FL_thigh"
        assert "<robot" in live.until(lambda: described, "description")[0].data
        rival = live.TransformStamped(child_frame_id="base")
        rival.header.frame_id = "odom"
        publisher = session.node.create_publisher(tf2_msgs.TFMessage, "/tf", 10)

        def given_up():
            before = sum(message.transforms[0].header.frame_id == "world" for message in heard)
            publisher.publish(tf2_msgs.TFMessage(transforms=[rival]))
            time.sleep(0.5)
            return before == sum(message.transforms[0].header.frame_id == "world" for message in heard)

        live.until(given_up, "silence on tf")


def test_launch_files():
    pytest.importorskip("launch_ros")
    launch = pytest.importorskip("launch.launch_description_sources")
    declared = pytest.importorskip("launch.actions").DeclareLaunchArgument
    context = pytest.importorskip("launch.launch_context").LaunchContext()
    files = sorted(shipped_folder("launch", "go2_mhe.launch.py").glob("*.launch.py"))
    assert len(files) >= 3
    for file in files:
        description = launch.get_launch_description_from_python_launch_file(str(file))
        arguments = [e for e in description.entities if isinstance(e, declared)]
        assert {"robot", "config", "namespace", "rviz", "use_sim_time"} <= {a.name for a in arguments}
        assert all(len(argument.description) > 10 for argument in arguments)
        for argument in arguments:
            argument.visit(context)


@pytest.mark.skipif(shutil.which("ros2") is None, reason="needs ros2 launch")
def test_ros2_launch_starts_robot_and_estimator_and_ends_both(session, tmp_path):
    pytest.importorskip("mujoco")
    contacts = session.listen("/launched/prime/contacts", ours.ContactForceArray)
    command = ["ros2", "launch", "prime_ros", "go2_sim.launch.py", "namespace:=launched", "gait:=stand"]
    log = tmp_path / "log"
    with log.open("w") as out:
        program = subprocess.Popen(
            command, env=session.environment, cwd="/", stdout=out, stderr=subprocess.STDOUT
        )
        try:
            live.until(lambda: len(contacts) > 20, "estimates")
            weight = forces(contacts[-1:])[0, :, 2].sum()
            program.send_signal(signal.SIGINT)
            assert program.wait(live.TIMEOUT) == 0
        finally:
            program.kill()
    assert 0.7 * 16.085 * 9.81 < weight < 1.3 * 16.085 * 9.81
    assert log.read_text().count("process has finished cleanly") == 2, log.read_text()
    assert "Traceback" not in log.read_text()
