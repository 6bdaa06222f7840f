"""Wrong calls raise errors in terms of Python: the argument, its value, and what is accepted."""

import pytest
from conftest import MACHINES

import plimsoll

#: The arguments of a correct replay.
REPLAY = {"trace": "trace.csv", "machines": MACHINES, "policies": "drf", "quiet": True}


#: A correct plan.
PLAN = {"name": "x", "policies": ["drf"], "cluster": {"machines": MACHINES}, "workload": {"trace": "trace.csv"}}

#: A correct instance.
INSTANCE = {"capacity": {"cpu": 2}, "user": [{"name": "a", "demand": {"cpu": 1}}]}


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
    (lambda: replay(ties=["lowest-id", "highest-id"]), TypeError, "ties: a value of type list is not accepted; expected text"),
    (lambda: replay(restart_delay=5), TypeError, "restart_delay: a value of type int is not accepted; expected text"),
    (lambda: replay(restart_delay="soon"), plimsoll.InputError, "restart_delay: 'soon'.*such as 0s"),
    (lambda: replay(preempt_for="share"), plimsoll.InputError, "preempt_for is accepted only with preempt"),
    (lambda: replay(hoard="5s", placement="pooled"), plimsoll.InputError, "hoard: placement 'pooled'"),
    (lambda: replay(jobs=0), plimsoll.InputError, "jobs"),
    (lambda: replay(jobs="many"), TypeError, "jobs: a value of type str is not accepted; expected a whole number"),
    (lambda: replay(jobs=2.5), TypeError, "jobs: a value of type float"),
    (lambda: replay(jobs=True), TypeError, "jobs: a value of type bool"),
    (lambda: replay(jobs=-1), plimsoll.InputError, "jobs: -1 is not accepted; expected a whole number from 0 on"),
    (lambda: replay(seed=3), plimsoll.InputError, "seed is accepted only with thin, resample or estimates"),
    (lambda: replay(thin=0.5, resample="1d"), plimsoll.InputError, "thin is not accepted with resample"),
    (lambda: replay(thin="half"), TypeError, "thin: a value of type str is not accepted; expected a number"),
    (lambda: replay(load=float("nan")), plimsoll.InputError, "load: NaN is not accepted; expected a finite number"),
    (lambda: replay(tasks="yes"), TypeError, "tasks: a value of type str is not accepted; expected True or False"),
    (lambda: replay(quiet=1), TypeError, "quiet: a value of type int is not accepted; expected True or False"),
    (lambda: replay(format="json"), TypeError, "unexpected keyword argument 'format'"),
    (lambda: replay(policy="drf"), TypeError, "unexpected keyword argument 'policy'"),
    (lambda: replay(output="mine"), TypeError, "unexpected keyword argument 'output'"),
    (lambda: replay(help=True), TypeError, "unexpected keyword argument 'help'"),
    (lambda: replay(out="mine", save_every="-1s"), plimsoll.InputError, "above 0"),
    (lambda: replay(resource=["a", 3]), TypeError, "resource: a value of type int"),
    (lambda: replay(thin=2.0), plimsoll.InputError, "thin: 2"),
    (lambda: replay(sample="0s"), plimsoll.InputError, "sample: '0s'"),
    (lambda: replay(weights="no.csv"), plimsoll.InputError, "no.csv"),
    (lambda: replay(devices={"gpu"}), TypeError, "devices: a value of type set is not accepted; expected text, or a list"),
    (lambda: replay(machines="4x"), plimsoll.InputError, "machines: '4x'"),
    (lambda: replay(machines=4), TypeError, "machines: a value of type int is not accepted; expected text"),
    (lambda: replay(machines=None), TypeError, "machines: a value of type NoneType"),
    (lambda: replay(policies="dfr"), plimsoll.InputError, "'dfr'.*'drf'"),
    (lambda: replay(policies=[]), plimsoll.InputError, "policies: no value is given; expected at least one"),
    (lambda: replay(policies=3), TypeError, "policies: a value of type int"),
    (lambda: replay(trace="no.csv"), plimsoll.InputError, "no.csv"),
    (lambda: replay(trace=3), TypeError, "trace: a value of type int"),
    (lambda: plimsoll.run(3), TypeError, "plan: a value of type int"),
    (lambda: plimsoll.run({"name": "x", "polcies": ["drf"]}), plimsoll.InputError, "polcies"),
    (lambda: plimsoll.run({"name": "x", "policies": ["drf"]}), plimsoll.InputError, "^<plan>: missing field `cluster`$"),
    (lambda: plimsoll.run({**PLAN, "workload": {"trace": 3}}), plimsoll.InputError, "^workload"),
    (lambda: plimsoll.solve(INSTANCE, "drf", ties="lowest-id"), plimsoll.InputError, "ties is accepted only with whole_tasks"),
    (lambda: plimsoll.solve(INSTANCE, "drf", whole_tasks=True, ties="low"), plimsoll.InputError, "ties: 'low'.*did you mean 'lowest-id'"),
    (lambda: plimsoll.solve({**INSTANCE, "user": [{"demand": {"cpu": "x"}}]}, "drf"), plimsoll.InputError, r"^user\[0\]"),
    (lambda: plimsoll.check("drf", accelerators=True, figure="a.svg"), plimsoll.InputError, "accelerators is not accepted with figure"),
    (lambda: plimsoll.court(search=True), plimsoll.InputError, "search is accepted only with policies"),
    (lambda: plimsoll.court("kueue-14543", rounds=2**40), plimsoll.InputError, "rounds: 1099511627776 .*up to 4294967295"),
    (lambda: plimsoll.plot("nowhere", width="wide"), TypeError, "width: a value of type str is not accepted; expected a number"),
    (lambda: plimsoll.plot("nowhere", width=3.0, preset="acm"), plimsoll.InputError, "width is not accepted with preset"),
    (lambda: replay().why("etl-1", policy="drf", shakes=3), plimsoll.InputError, "shakes is accepted only with without"),
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
