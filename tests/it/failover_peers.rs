//! The rules of the Fuxi control plane on single steps of Tubos and application masters: caps, plans and workers.

use plimsoll::control::app::{self, AppMaster};
use plimsoll::control::message::{Bar, Endpoint, Message, Note, Output, Position, Units};
use plimsoll::control::rules::{Rule, Rules};
use plimsoll::control::setup::{AppId, Blacklist, Setup};
use plimsoll::control::tubo::{self, Tubo};

use crate::failover_rules::{HERE, WEB, on, setup};

/// R2: a restarted Tubo reads from disk the caps that it last applied. Without these caps it stops no worker before new caps arrive.
#[test]
fn a_tubo_reads_its_caps_from_disk_or_waits() {
    for (rules, caps) in [(Rules::ALL, 1), (Rules::ALL.without(Rule::CapCheckpoint), 0)] {
        let setup = setup(rules);
        let tubo = running(&setup);
        let (tubo, said) = tubo.restart(rules);
        assert_eq!((tubo.caps.get(WEB), tubo.running.get(WEB)), (caps, 1));
        let asks = |o: &Output| matches!(o, Output::Send(Endpoint::Master, Message::TuboBeat { restarted: true, .. }));
        assert!(said.iter().any(asks));
        let plan = Message::Plan { at: Position { epoch: 1, number: 2 }, role: WEB, count: 1 };
        let (tubo, _) = tubo.step(&setup, tubo::TuboInput::Message(plan));
        assert_eq!(tubo.running.get(WEB), 1, "no worker is stopped before caps arrive");
    }
}

/// Returns a Tubo with a cap and a plan for one worker.
fn running(setup: &Setup) -> Tubo {
    let plan = Message::Plan { at: Position { epoch: 1, number: 1 }, role: WEB, count: 1 };
    let caps = Message::Caps { at: Position { epoch: 1, number: 1 }, full: true, list: vec![(WEB, 1)] };
    [plan, caps]
        .into_iter()
        .fold(Tubo::new(HERE), |tubo, message| tubo.step(setup, tubo::TuboInput::Message(message)).0)
}

/// R3: neither a plan nor a cap alone starts a worker.
#[test]
fn a_worker_needs_plan_and_cap() {
    let setup = setup(Rules::ALL);
    let plan = Message::Plan { at: Position { epoch: 1, number: 1 }, role: WEB, count: 2 };
    let caps = Message::Caps { at: Position { epoch: 1, number: 1 }, full: true, list: vec![(WEB, 1)] };
    for order in [[plan.clone(), caps.clone()], [caps, plan]] {
        let [first, second] = order;
        let (tubo, _) = Tubo::new(HERE).step(&setup, tubo::TuboInput::Message(first));
        assert!(tubo.running.is_empty());
        let (tubo, said) = tubo.step(&setup, tubo::TuboInput::Message(second));
        assert_eq!(tubo.running.get(WEB), 1);
        assert!(said.contains(&Output::Note(Note::Started(on(HERE, WEB, 1)))));
    }
}

/// A plan becomes void together with its cap. Random schedules had found this fault: a new cap and an old plan started a worker, and then
/// a plan that had been in transit since the return of the old unit stopped that worker.
#[test]
fn a_plan_dies_with_its_cap() {
    let setup = setup(Rules::ALL);
    let cap = |number, change| {
        let at = Position { epoch: 1, number };
        tubo::TuboInput::Message(Message::Caps { at, full: false, list: vec![(WEB, change)] })
    };
    let plan =
        |number, count| tubo::TuboInput::Message(Message::Plan { at: Position { epoch: 1, number }, role: WEB, count });
    let (tubo, _) = running(&setup).step(&setup, cap(2, -1));
    let (tubo, said) = tubo.step(&setup, cap(3, 1));
    assert_eq!((tubo.caps.get(WEB), tubo.running.get(WEB), said.len()), (1, 0, 0));
    let (tubo, said) = tubo.step(&setup, tubo::TuboInput::Beat);
    let need = Message::NeedPlan { machine: HERE, role: WEB };
    assert!(said.contains(&Output::Send(Endpoint::App(AppId(0), 0), need)), "{said:?}");
    let (tubo, said) = tubo.step(&setup, plan(2, 0));
    assert_eq!((tubo.running.get(WEB), said.len()), (0, 0), "the old plan finds no worker");
    let (tubo, _) = tubo.step(&setup, plan(3, 1));
    assert_eq!(tubo.running.get(WEB), 1);
}

/// A Tubo that loses units acknowledges the loss at once. A Tubo that gains units waits for its next heartbeat.
#[test]
fn a_tubo_acknowledges_what_it_loses() {
    let setup = setup(Rules::ALL);
    let beat = |number| {
        let at = Position { epoch: 1, number };
        Output::Send(Endpoint::Master, Message::TuboBeat { machine: HERE, at, restarted: false })
    };
    for (number, full, change, said_so) in [(2, false, -1, true), (2, false, 1, false), (5, true, 0, true)] {
        let at = Position { epoch: 1, number };
        let caps = Message::Caps { at, full, list: vec![(WEB, change)] };
        let (_, said) = running(&setup).step(&setup, tubo::TuboInput::Message(caps));
        assert_eq!(said.contains(&beat(number)), said_so, "{said:?}");
    }
}

/// R13: an increment that is late, duplicate or early is not applied.
#[test]
fn increments_are_applied_once_and_in_order() {
    let caps = |number, full, count| {
        let list = vec![(WEB, count)];
        tubo::TuboInput::Message(Message::Caps { at: Position { epoch: 1, number }, full, list })
    };
    let run = |rules: Rules, inputs: Vec<tubo::TuboInput>| {
        let setup = setup(rules);
        inputs.into_iter().fold(Tubo::new(HERE), |tubo, input| tubo.step(&setup, input).0).caps.get(WEB)
    };
    let without = Rules::ALL.without(Rule::SequenceNumbers);
    let double = || vec![caps(1, true, 0), caps(2, false, 1), caps(2, false, 1)];
    assert_eq!((run(Rules::ALL, double()), run(without, double())), (1, 2));
    let late = || vec![caps(3, true, 1), caps(2, false, 1)];
    assert_eq!((run(Rules::ALL, late()), run(without, late())), (1, 2));
    let early = || vec![caps(1, true, 0), caps(3, false, 1)];
    assert_eq!((run(Rules::ALL, early()), run(without, early())), (0, 1));
}

/// An application master returns the units of workers with completed tasks and reduces its request by the same count. It does this only
/// once, because it accepts only reports of a Tubo that has received its last plan.
#[test]
fn what_is_done_is_given_back_once() {
    let setup = setup(Rules::ALL);
    let (own, _) = AppMaster::start(AppId(0)).0.step(&setup, app::AppInput::Want(WEB, 2));
    let at = Position { epoch: 1, number: 1 };
    let list = vec![Units { machine: HERE, role: WEB, count: 2 }];
    let hints = Message::Hints { at, heard: 1, full: true, list, away: Vec::new(), back: Vec::new() };
    let (own, said) = own.step(&setup, app::AppInput::Message(hints));
    let plan = said.into_iter().find_map(|output| match output {
        Output::Send(Endpoint::Tubo(HERE), plan @ Message::Plan { .. }) => Some(plan),
        _ => None,
    });
    let caps = Message::Caps { at, full: true, list: vec![(WEB, 2)] };
    let messages = [caps, plan.expect("a plan for what it has")];
    let tubo = messages.into_iter().fold(Tubo::new(HERE), |tubo, message| {
        let (tubo, _) = tubo.step(&setup, tubo::TuboInput::Message(message));
        tubo
    });
    let (tubo, said) = tubo.step(&setup, tubo::TuboInput::Done(WEB, 1));
    let done = Message::Done { machine: HERE, at, role: WEB, count: 1 };
    assert_eq!(said, [Output::Send(Endpoint::App(AppId(0), 0), done.clone())]);
    let (own, said) = own.step(&setup, app::AppInput::Message(done.clone()));
    assert_eq!((own.want.get(WEB), own.hint(HERE, WEB)), (1, 1));
    let returned = vec![on(HERE, WEB, 1)];
    let is_change = |output: &&Output| {
        matches!(output, Output::Send(Endpoint::Master, Message::AppChange { request, returned: back, .. })
            if *request == [(WEB, -1)] && *back == returned)
    };
    assert!(said.iter().any(|output| is_change(&output)), "{said:?}");
    let plan = said.into_iter().find_map(|output| match output {
        Output::Send(Endpoint::Tubo(HERE), plan @ Message::Plan { .. }) => Some(plan),
        _ => None,
    });
    let plan = plan.expect("a plan for what is left");
    // This report has already been processed. The plan is sent again, since it may have been lost.
    let (own, again) = own.step(&setup, app::AppInput::Message(done));
    assert_eq!((own.want.get(WEB), again), (1, vec![Output::Send(Endpoint::Tubo(HERE), plan.clone())]));
    // The next plan stops the worker that is done.
    let (tubo, said) = tubo.step(&setup, tubo::TuboInput::Message(plan));
    assert_eq!((tubo.running.get(WEB), tubo.done.get(WEB)), (1, 0));
    assert_eq!(said, [Output::Note(Note::Stopped(on(HERE, WEB, 1)))]);
}

/// A failed worker is restarted on the same machine. After too many failures of its role on that machine, its unit is returned, and the
/// machine is barred for the role. If enough roles bar the machine, it is barred for all roles.
#[test]
fn workers_that_fail_often_bar_their_machine() {
    let limits = Blacklist { role: 2, app: 1, cluster: 2, most: 1 };
    let mut setup = setup(Rules::ALL);
    setup.blacklist = Some(limits);
    let (own, _) = AppMaster::start(AppId(0)).0.step(&setup, app::AppInput::Want(WEB, 1));
    let at = Position { epoch: 1, number: 1 };
    let list = vec![Units { machine: HERE, role: WEB, count: 1 }];
    let hints = Message::Hints { at, heard: 1, full: true, list, away: Vec::new(), back: Vec::new() };
    let (mut own, mut said) = own.step(&setup, app::AppInput::Message(hints));
    let caps = Message::Caps { at, full: true, list: vec![(WEB, 1)] };
    let (mut tubo, _) = Tubo::new(HERE).step(&setup, tubo::TuboInput::Message(caps));
    for number in 1..=2 {
        let plan = said.into_iter().find_map(|output| match output {
            Output::Send(Endpoint::Tubo(HERE), plan @ Message::Plan { .. }) => Some(plan),
            _ => None,
        });
        tubo = tubo.step(&setup, tubo::TuboInput::Message(plan.expect("a plan"))).0;
        assert_eq!(tubo.running.get(WEB), 1);
        let (lost, heard) = tubo.step(&setup, tubo::TuboInput::Fail(WEB));
        assert_eq!((lost.running.get(WEB), lost.caps.get(WEB)), (0, 1));
        let at = Position { epoch: 1, number };
        let failed = Message::Failed { machine: HERE, at, role: WEB };
        let note = Output::Note(Note::Failed(on(HERE, WEB, 1)));
        assert_eq!(heard, [note, Output::Send(Endpoint::App(AppId(0), 0), failed.clone())]);
        // If that message is lost, the Tubo requests a plan.
        let (_, beat) = lost.clone().step(&setup, tubo::TuboInput::Beat);
        assert!(
            beat.contains(&Output::Send(Endpoint::App(AppId(0), 0), Message::NeedPlan { machine: HERE, role: WEB }))
        );
        let (after, said_now) = own.step(&setup, app::AppInput::Message(failed.clone()));
        // A duplicate message does not count as a second failure.
        let (again, _) = after.clone().step(&setup, app::AppInput::Message(failed));
        assert_eq!((again.failed.get(&(HERE, WEB)), again.hints == after.hints), (Some(&number), true));
        (tubo, own, said) = (lost, after, said_now);
    }
    let bars = vec![Bar { machine: HERE, role: None }, Bar { machine: HERE, role: Some(WEB) }];
    let says = |said: &[Output], bars: &[Bar]| {
        let tells = |output: &Output| matches!(output, Output::Send(Endpoint::Master, Message::AppBars { bars: told, .. }) if told == bars);
        said.iter().any(tells)
    };
    let returns = |output: &Output| {
        matches!(output, Output::Send(Endpoint::Master, Message::AppChange { returned, request, .. })
            if *returned == [on(HERE, WEB, 1)] && request.is_empty())
    };
    assert!(says(&said, &bars) && said.iter().any(returns), "{said:?}");
    assert_eq!((own.hint(HERE, WEB), own.want.get(WEB)), (0, 1));
    let (own, said) = own.step(&setup, app::AppInput::Forgive(HERE));
    assert!(says(&said, &[]) && own.bars.is_empty() && own.failed.is_empty(), "{said:?}");
}
