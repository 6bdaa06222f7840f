"""Explanations of waits, and policies that installed packages register."""

import sys
from pathlib import Path

import pytest
from conftest import rows

import plimsoll

WAITS = """job,user,submit_s,duration_s,cpu,memory_gib
big,holder,0,100,1,8
small,victim,10,5,1,4
"""


@pytest.fixture
def results(folder):
    """Returns results in which a job waits for the memory of another user."""
    Path("waits.csv").write_text(WAITS)
    return plimsoll.replay("waits.csv", "1x4c10g", "drf", out="out", placement="pooled", quiet=True)


def test_a_wait_is_explained_with_its_holders(results):
    explained = results.why("small")["jobs"][0]
    assert explained["wait_us"] == 90_000_000
    [interval] = explained["before_start"]
    assert (interval["reason"], interval["holders_mean"]) == ("resources", {"holder": 8192})
    assert any("holder" in sentence for sentence in explained["explanation"])


def test_a_wait_without_its_cause_is_gone(results):
    attribution = results.why("small", without="user=holder", shakes=3)["attribution"]
    [cause] = attribution["causes"]
    assert (cause["wait_us"], cause["share_s"], cause["robust"]) == (0, 90.0, True)
    assert attribution["remainder_us"] == 0
    # Two combinations, and two runs for each of three perturbations.
    assert attribution["runs"] == 8


def test_wrong_requests_are_refused_in_terms_of_python(results):
    with pytest.raises(plimsoll.InputError, match="'nobody'"):
        results.why("nobody")
    with pytest.raises(plimsoll.InputError, match="without.*'users=1'"):
        results.why("small", without="users=1")
    with pytest.raises(TypeError, match="job: a value of type int"):
        results.why(7)


@pytest.fixture
def package(folder, monkeypatch):
    """Installs a package that registers two policies, of which one has another name."""
    Path("waits.csv").write_text(WAITS)
    site = folder / "site"
    about = site / "shares-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shares\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[plimsoll.policies]\nfewest-tasks = shares:fewest\nwrong = shares:fewest\n")
    (site / "shares.py").write_text("import plimsoll\n\ndef fewest():\n    return plimsoll.policy('running', name='fewest-tasks')\n")
    monkeypatch.syspath_prepend(str(site))
    yield site
    sys.modules.pop("shares", None)


def test_policies_of_installed_packages_have_names(package):
    found = plimsoll.replay("waits.csv", "1x4c10g", ["drf", "fewest-tasks"], quiet=True)
    assert {row["policy"] for row in rows(found, "runs")} == {"drf", "fewest-tasks"}
    plan = {"name": "p", "policies": ["fewest-tasks"], "cluster": {"machines": "1x4c10g"}, "workload": {"trace": "waits.csv"}}
    assert [row["policy"] for row in rows(plimsoll.run(plan, quiet=True), "runs")] == ["fewest-tasks"]
    Path("p.toml").write_text('name = "p"\npolicies = ["fewest-tasks"]\ncluster.machines = "1x4c10g"\nworkload.trace = "waits.csv"\n')
    assert [row["policy"] for row in rows(plimsoll.run("p.toml", out="q", quiet=True), "runs")] == ["fewest-tasks"]


def test_a_registered_policy_has_its_own_name(package):
    with pytest.raises(plimsoll.InputError, match="'wrong'.*'fewest-tasks'"):
        plimsoll.replay("waits.csv", "1x4c10g", ["wrong"], quiet=True)
