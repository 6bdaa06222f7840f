"""Tests of decisions on a state, and of scenarios that run to a verdict."""

import json

import plimsoll
import pytest
from conftest import program

STATE = {
    "capacity": {"cpu": 6},
    "group": [
        {"name": "a", "within": "lower-priority", "reclaim": "any"},
        {"name": "b", "reclaim": "any"},
    ],
    "running": [
        {"name": "x", "group": "a", "demand": {"cpu": 2}},
        {"name": "v", "group": "b", "demand": {"cpu": 4}},
    ],
    "waiting": [{"name": "w", "group": "a", "demand": {"cpu": 3}, "priority": 1}],
}


def test_a_state_is_decided_as_on_the_command_line(root):
    path = root / "experiments/court/kueue-14543.toml"
    printed = json.loads(program("decide", path, "--policy", "kueue", "--format", "json").stdout)
    assert plimsoll.decide(path, "kueue") == [printed]
    [of_dict] = plimsoll.decide(STATE, "kueue")
    assert of_dict["evicted"] == printed["evicted"] and of_dict["evicted"][0]["name"] == "v"


def test_policies_of_ones_own_decide():
    state = {**STATE, "running": []}
    mine = plimsoll.policy(rank=lambda users: users.dominant_share, name="mine")
    [answer] = plimsoll.decide(state, mine)
    assert [one["name"] for one in answer["launched"]] == ["w"]


def test_a_livelock_shows_its_cycle():
    [verdict] = plimsoll.court(STATE, "kueue")
    assert verdict["verdict"] == "livelock" and verdict["ok"] is None
    assert [one["name"] for played in verdict["cycle"] for one in played["evicted"]] == ["v"]
    assert {one["policy"]: one["verdict"] for one in plimsoll.court("kueue-14543")} == {
        "kueue": "livelock",
        "kueue@guarded": "settled",
    }


def test_the_search_finds_it():
    [found] = plimsoll.court(policies="kueue", search=True, size=6)
    assert found["found"]["verdict"] == "livelock" and "cpu = 6" in found["found"]["state"]


def test_what_comes_out_otherwise_is_an_error():
    wrong = {**STATE, "expect": [{"policy": "kueue", "verdict": "settled"}]}
    with pytest.raises(plimsoll.RunError, match="expected settled, and it is livelock"):
        plimsoll.court(wrong)
    with pytest.raises(plimsoll.InputError, match="'grupo' is no key"):
        plimsoll.decide({**STATE, "grupo": []}, "kueue")
