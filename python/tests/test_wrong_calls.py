"""Wrong calls raise errors in terms of Python: the argument, its value, and what is accepted."""

import pytest
from conftest import MACHINES

import plimsoll

#: The arguments of a correct replay.
REPLAY = {"trace": "trace.csv", "machines": MACHINES, "policies": "drf", "quiet": True}


def replay(**changes):
    return plimsoll.replay(**{**REPLAY, **changes})


CALLS = [
    (lambda: replay(placment="spread"), TypeError, "'placment'.*did you mean 'placement'"),
    (lambda: replay(onblocked="stop"), TypeError, "'onblocked'.*did you mean 'on_blocked'"),
    (lambda: replay(seeds=3), TypeError, "'seeds'"),
    (lambda: replay(form="swf"), TypeError, "'form'.*did you mean '(from_|format)'"),
    (lambda: replay(from_="swff"), plimsoll.InputError, "from_: 'swff'"),
    (lambda: replay(ties_="lowest-id"), TypeError, "'ties_'"),
    (lambda: replay(placement="sprea"), plimsoll.InputError, "placement: 'sprea'.*spread"),
    (lambda: replay(placement={"rule": "spread"}), TypeError, "placement: a value of type dict"),
    (lambda: replay(ties=["lowest-id", "highest-id"]), plimsoll.InputError, "ties"),
    (lambda: replay(restart_delay="soon"), plimsoll.InputError, "restart_delay: 'soon'.*such as 0s"),
    (lambda: replay(preempt_for="share"), plimsoll.InputError, "preempt"),
    (lambda: replay(hoard="5s", placement="pooled"), plimsoll.InputError, "hoard: placement 'pooled'"),
    (lambda: replay(jobs=0), plimsoll.InputError, "jobs"),
    (lambda: replay(jobs="many"), plimsoll.InputError, "'many'.*jobs"),
    (lambda: replay(thin=2.0), plimsoll.InputError, "thin: 2"),
    (lambda: replay(sample="0s"), plimsoll.InputError, "sample: '0s'"),
    (lambda: replay(weights="no.csv"), plimsoll.InputError, "no.csv"),
    (lambda: replay(devices={"gpu"}), TypeError, "devices: a value of type set"),
    (lambda: replay(machines="4x"), plimsoll.InputError, "machines: '4x'"),
    (lambda: replay(machines=4), plimsoll.InputError, "machines: '4'"),
    (lambda: replay(machines=None), TypeError, "machines: a value of type NoneType"),
    (lambda: replay(policies="dfr"), plimsoll.InputError, "'dfr'.*'drf'"),
    (lambda: replay(policies=[]), plimsoll.InputError, "policy"),
    (lambda: replay(policies=3), TypeError, "policies: a value of type int"),
    (lambda: replay(trace="no.csv"), plimsoll.InputError, "no.csv"),
    (lambda: replay(trace=3), TypeError, "trace: a value of type int"),
    (lambda: plimsoll.run(3), TypeError, "plan: a value of type int"),
    (lambda: plimsoll.run({"name": "x", "polcies": ["drf"]}), plimsoll.InputError, "polcies"),
    (lambda: plimsoll.solve("no.toml"), plimsoll.InputError, "no.toml"),
    (lambda: plimsoll.check("drf", effort="hard"), plimsoll.InputError, "effort.*quick"),
    (lambda: plimsoll.court("kueue-0"), plimsoll.InputError, "kueue-0"),
    (lambda: plimsoll.decide([], "drf"), TypeError, "state: a value of type list"),
    (lambda: plimsoll.read("nowhere"), plimsoll.InputError, "nowhere"),
    (lambda: replay().jbos, AttributeError, "no table 'jbos'; they have runs"),
    (lambda: plimsoll.compare(replay(), 3), TypeError, "after: a value of type int"),
    (lambda: plimsoll.plot("nowhere"), plimsoll.InputError, "nowhere"),
    (lambda: plimsoll.plot(replay(), only="compl"), plimsoll.InputError, "compl"),
    (lambda: plimsoll.trace_stats("trace.csv", machine=MACHINES), TypeError, r"trace_stats\(\).*'machine'.*'machines'"),
    (lambda: plimsoll.policies(3), TypeError, "name: a value of type int"),
    (lambda: plimsoll.schema(3), TypeError, "tables: a value of type int"),
    (lambda: plimsoll.policies("dfr"), plimsoll.InputError, "'dfr'"),
    (lambda: plimsoll.schema("job"), plimsoll.InputError, "'job'"),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_wrong_call_names_the_argument(folder, number):
    call, kind, message = CALLS[number]
    with pytest.raises(kind, match=f"(?s){message}") as raised:
        call()
    # No options of the command line, and no positions in generated text.
    assert " --" not in str(raised.value) and "Usage:" not in str(raised.value), raised.value
