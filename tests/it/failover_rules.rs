//! The rules of the Fuxi control plane, one by one, on single steps of FuxiMaster, application masters and Tubos.

use plimsoll::control::app::{self, AppMaster};
use plimsoll::control::counts::Counts;
use plimsoll::control::master::{Contact, Input, Master, Phase};
use plimsoll::control::message::{Message, Node, Note, Output, Position, Sender, Units, Why};
use plimsoll::control::rules::{Rule, Rules};
use plimsoll::control::setup::{AppId, RoleId, Setup};
use plimsoll::control::tubo::{self, Tubo};
use plimsoll::units::MachineId;

const WEB: RoleId = RoleId(0);
const SQL: RoleId = RoleId(1);
const HERE: MachineId = MachineId(0);
const THERE: MachineId = MachineId(1);

/// Two machines of capacity 2; an online application 0 (role 0) and an offline application 1 (role 1).
fn setup(rules: Rules) -> Setup {
    let mut setup = Setup::new(vec![2, 2]);
    setup.app(&[("web", true, 1)]);
    setup.app(&[("sql", false, 1)]);
    setup.rules = rules;
    setup
}

fn counts(pairs: &[(RoleId, u32)]) -> Counts {
    pairs.iter().copied().collect()
}

fn on(machine: MachineId, role: RoleId, count: u32) -> Units<u32> {
    Units { machine, role, count }
}

fn tubo_report(machine: MachineId, caps: &[(RoleId, u32)]) -> Input {
    Input::Message(Message::TuboReport { machine, epoch: 2, caps: counts(caps) })
}

fn app_report(app: u16, epoch: u32, request: &[(RoleId, u32)], hints: &[Units<u32>]) -> Input {
    let from = Sender { app: AppId(app), epoch, number: 1 };
    let (request, hints) = (counts(request), hints.to_vec());
    Input::Message(Message::AppReport { from, epoch: 2, request, hints, restarted: false })
}

/// The second FuxiMaster, after these inputs, and all that it said.
fn master(setup: &Setup, inputs: Vec<Input>) -> (Master, Vec<Output>) {
    let (mut master, _) = Master::start(setup, 2, &[(1, HERE), (1, HERE)]);
    let mut said = Vec::new();
    for input in inputs {
        let (next, outputs) = master.step(setup, input);
        master = next;
        said.extend(outputs);
    }
    (master, said)
}

fn allocated(master: &Master, machine: MachineId, role: RoleId) -> u32 {
    master.sites[machine.index()].alloc.get(role)
}

fn full_cap(said: &[Output], machine: MachineId) -> Option<Vec<(RoleId, i32)>> {
    said.iter().rev().find_map(|output| match output {
        Output::Send(Node::Tubo(to), Message::Caps { full: true, list, .. }) if *to == machine => Some(list.clone()),
        _ => None,
    })
}

fn granted(said: &[Output]) -> usize {
    said.iter().filter(|output| matches!(output, Output::Note(Note::Granted(_)))).count()
}

/// R1, R4: a grant tells both sides; a unit given back is taken from the cap.
#[test]
fn grants_reach_both_sides_and_returns_shrink_the_cap() {
    let setup = setup(Rules::ALL);
    let (master, said) =
        master(&setup, vec![tubo_report(HERE, &[]), app_report(0, 1, &[(WEB, 1)], &[]), Input::WindowEnds]);
    assert_eq!((granted(&said), allocated(&master, HERE, WEB)), (1, 1));
    assert_eq!(full_cap(&said, HERE), Some(vec![(WEB, 1)]));
    let from = Sender { app: AppId(0), epoch: 1, number: 2 };
    let (request, returned) = (vec![(WEB, -1)], vec![on(HERE, WEB, 1)]);
    let (master, said) = master.step(&setup, Input::Message(Message::AppChange { from, epoch: 2, request, returned }));
    assert_eq!((master.accounts[0].request, master.accounts[0].granted), (0, 0));
    let cap = Message::Caps { at: Position { epoch: 2, number: 2 }, full: false, list: vec![(WEB, -1)] };
    assert!(said.contains(&Output::Send(Node::Tubo(HERE), cap)), "{said:?}");
}

/// R2: what a restarted Tubo has on disk is what it last acted upon; without it, it stops nobody before it is told.
#[test]
fn a_tubo_reads_its_caps_from_disk_or_waits() {
    for (rules, caps) in [(Rules::ALL, 1), (Rules::ALL.without(Rule::CapCheckpoint), 0)] {
        let setup = setup(rules);
        let tubo = running(&setup);
        let (tubo, said) = tubo.restart(rules);
        assert_eq!((tubo.caps.get(WEB), tubo.running.get(WEB)), (caps, 1));
        let asks = |o: &Output| matches!(o, Output::Send(Node::Master, Message::TuboBeat { restarted: true, .. }));
        assert!(said.iter().any(asks));
        let plan = Message::Plan { at: Position { epoch: 1, number: 2 }, role: WEB, count: 1 };
        let (tubo, _) = tubo.step(&setup, tubo::Input::Message(plan));
        assert_eq!(tubo.running.get(WEB), 1, "nobody is stopped in the dark");
    }
}

/// A Tubo with a cap and a plan for one worker.
fn running(setup: &Setup) -> Tubo {
    let plan = Message::Plan { at: Position { epoch: 1, number: 1 }, role: WEB, count: 1 };
    let caps = Message::Caps { at: Position { epoch: 1, number: 1 }, full: true, list: vec![(WEB, 1)] };
    [plan, caps].into_iter().fold(Tubo::new(HERE), |tubo, message| tubo.step(setup, tubo::Input::Message(message)).0)
}

/// R3: neither a plan nor a cap alone starts a worker.
#[test]
fn a_worker_needs_plan_and_cap() {
    let setup = setup(Rules::ALL);
    let plan = Message::Plan { at: Position { epoch: 1, number: 1 }, role: WEB, count: 2 };
    let caps = Message::Caps { at: Position { epoch: 1, number: 1 }, full: true, list: vec![(WEB, 1)] };
    for order in [[plan.clone(), caps.clone()], [caps, plan]] {
        let [first, second] = order;
        let (tubo, _) = Tubo::new(HERE).step(&setup, tubo::Input::Message(first));
        assert!(tubo.running.is_empty());
        let (tubo, said) = tubo.step(&setup, tubo::Input::Message(second));
        assert_eq!(tubo.running.get(WEB), 1);
        assert!(said.contains(&Output::Note(Note::Started(on(HERE, WEB, 1)))));
    }
}

/// A plan is void with its cap. Random schedules found a worker that a new cap and an old plan had started, and that a plan
/// on its way since its unit was given back stopped again.
#[test]
fn a_plan_dies_with_its_cap() {
    let setup = setup(Rules::ALL);
    let cap = |number, change| {
        let at = Position { epoch: 1, number };
        tubo::Input::Message(Message::Caps { at, full: false, list: vec![(WEB, change)] })
    };
    let plan =
        |number, count| tubo::Input::Message(Message::Plan { at: Position { epoch: 1, number }, role: WEB, count });
    let (tubo, _) = running(&setup).step(&setup, cap(2, -1));
    let (tubo, said) = tubo.step(&setup, cap(3, 1));
    assert_eq!((tubo.caps.get(WEB), tubo.running.get(WEB), said.len()), (1, 0, 0));
    let (tubo, said) = tubo.step(&setup, tubo::Input::Beat);
    let need = Message::NeedPlan { machine: HERE, role: WEB };
    assert!(said.contains(&Output::Send(Node::App(AppId(0), 0), need)), "{said:?}");
    let (tubo, said) = tubo.step(&setup, plan(2, 0));
    assert_eq!((tubo.running.get(WEB), said.len()), (0, 0), "the old plan finds nobody");
    let (tubo, _) = tubo.step(&setup, plan(3, 1));
    assert_eq!(tubo.running.get(WEB), 1);
}

/// A Tubo that loses units says at once that it has heard so; one that gains some waits for its next heartbeat.
#[test]
fn a_tubo_acknowledges_what_it_loses() {
    let setup = setup(Rules::ALL);
    let beat = |number| {
        let at = Position { epoch: 1, number };
        Output::Send(Node::Master, Message::TuboBeat { machine: HERE, at, restarted: false })
    };
    for (number, full, change, said_so) in [(2, false, -1, true), (2, false, 1, false), (5, true, 0, true)] {
        let at = Position { epoch: 1, number };
        let caps = Message::Caps { at, full, list: vec![(WEB, change)] };
        let (_, said) = running(&setup).step(&setup, tubo::Input::Message(caps));
        assert_eq!(said.contains(&beat(number)), said_so, "{said:?}");
    }
}

/// A unit given back is granted anew to its role only when the Tubo has acknowledged the loss. Random schedules found a
/// worker that a new plan and the old cap had started, and that the smaller cap, still on its way, stopped again.
#[test]
fn a_unit_is_granted_anew_when_its_loss_is_acknowledged() {
    let setup = setup(Rules::ALL);
    let caps = [tubo_report(HERE, &[(WEB, 2)]), tubo_report(THERE, &[(SQL, 2)])];
    let apps = [app_report(0, 1, &[(WEB, 2)], &[on(HERE, WEB, 2)]), app_report(1, 1, &[(SQL, 2)], &[])];
    let change = |app, number, request, returned: &[Units<u32>]| {
        let from = Sender { app: AppId(app), epoch: 1, number };
        Input::Message(Message::AppChange { from, epoch: 2, request: vec![request], returned: returned.to_vec() })
    };
    let beat = |number| {
        let at = Position { epoch: 2, number };
        Input::Message(Message::TuboBeat { machine: HERE, at, restarted: false })
    };
    let (full, _) = master(&setup, caps.into_iter().chain(apps).chain([Input::WindowEnds]).collect());
    let (smaller, _) = full.step(&setup, change(0, 2, (WEB, -1), &[on(HERE, WEB, 1)]));
    let (hungry, said) = smaller.step(&setup, change(0, 3, (WEB, 1), &[]));
    assert_eq!((granted(&said), allocated(&hungry, HERE, WEB)), (0, 1), "there is room, and the Tubo has not answered");
    let (other, said) = hungry.clone().step(&setup, change(1, 2, (SQL, 1), &[]));
    assert_eq!((granted(&said), allocated(&other, HERE, SQL)), (1, 1), "another role may have it");
    let (behind, said) = hungry.clone().step(&setup, beat(1));
    assert_eq!((granted(&said), full_cap(&said, HERE)), (0, Some(vec![(WEB, 1)])), "the Tubo is behind");
    // The first message was the full cap after the window, the second took the unit away.
    for (master, number) in [(hungry, 2), (behind.clone(), 2), (behind, 3)] {
        let (settled, said) = master.step(&setup, beat(number));
        assert_eq!((granted(&said), allocated(&settled, HERE, WEB)), (1, 2), "acknowledged by {number}");
    }
}

/// R5: FuxiMaster is silent while it recovers, except for asking; without the rule an empty table is the answer.
#[test]
fn fuximaster_listens_while_it_recovers() {
    let beat = Input::Message(Message::TuboBeat { machine: HERE, at: Position::default(), restarted: true });
    let (silent, said) = master(&setup(Rules::ALL), vec![beat.clone()]);
    assert_eq!(silent.phase, Phase::Recovering);
    assert_eq!(said, [Output::Send(Node::Tubo(HERE), Message::Ask { epoch: 2 })]);
    let (_, said) = master(&setup(Rules::ALL.without(Rule::WaitWindow)), vec![beat]);
    assert_eq!(full_cap(&said, HERE), Some(Vec::new()));
}

/// R6, R10: caps whose application master is away get an invented request, which the real one replaces.
#[test]
fn requests_are_invented_and_converted() {
    let setup_all = setup(Rules::ALL);
    let inputs = || vec![tubo_report(HERE, &[(WEB, 1), (SQL, 1)]), Input::WindowEnds];
    let (recovered, said) = master(&setup_all, inputs());
    assert_eq!((recovered.accounts[0].request, allocated(&recovered, HERE, WEB)), (1, 1));
    assert_eq!(allocated(&recovered, HERE, SQL), 0, "offline units of an absent application are gone");
    assert!(said.contains(&Output::StartApp(AppId(0), 2, HERE)), "{said:?}");
    let (converted, said) = recovered.step(&setup_all, app_report(0, 2, &[(WEB, 2)], &[on(HERE, WEB, 1)]));
    assert_eq!((converted.accounts[0].request, converted.accounts[0].granted), (2, 2), "converted, not added");
    assert!(said.contains(&Output::Note(Note::Converted(WEB, 1))));
    let (without, _) = master(&setup(Rules::ALL.without(Rule::MockRequest)), inputs());
    assert_eq!(allocated(&without, HERE, WEB), 0);
}

/// Scenario 3: a new application master starts on another machine than the last one failed on, unless no other is heard.
#[test]
fn a_lost_application_master_starts_on_a_new_machine() {
    let setup = setup(Rules::ALL);
    let started = |said: &[Output]| {
        said.iter().rev().find_map(|output| match output {
            Output::StartApp(AppId(0), _, machine) => Some(*machine),
            _ => None,
        })
    };
    let (alone, said) = master(&setup, vec![tubo_report(HERE, &[]), Input::WindowEnds]);
    assert_eq!(started(&said), Some(HERE), "no other machine is heard");
    let (alone, _) = alone.step(&setup, tubo_report(THERE, &[]));
    let (_, said) = alone.step(&setup, Input::AppTimeout(AppId(0)));
    assert_eq!(started(&said), Some(THERE));
    // Even a full machine is better than the one that it failed on.
    let full = tubo_report(THERE, &[(WEB, 2)]);
    let (both, said) = master(&setup, vec![tubo_report(HERE, &[]), full, Input::WindowEnds]);
    assert_eq!((both.free(&setup, THERE), started(&said)), (0, Some(THERE)));
    let (both, said) = both.step(&setup, Input::AppTimeout(AppId(0)));
    assert_eq!(started(&said), Some(HERE), "and from there back");
    let (both, _) = both.step(&setup, Input::TuboTimeout(THERE));
    let (_, said) = both.step(&setup, Input::AppTimeout(AppId(0)));
    assert_eq!(started(&said), Some(HERE), "a machine that is away is none");
}

/// R6: hints count for machines that have not reported, within their room, and for no others.
#[test]
fn hints_stand_in_for_machines_that_are_away() {
    let inputs = || {
        let hints = [on(HERE, WEB, 1), on(THERE, WEB, 3)];
        vec![tubo_report(HERE, &[]), app_report(0, 1, &[(WEB, 4)], &hints), Input::WindowEnds]
    };
    let (recovered, said) = master(&setup(Rules::ALL), inputs());
    assert_eq!(allocated(&recovered, THERE, WEB), 2, "cut at the capacity");
    assert!(said.contains(&Output::Note(Note::Dropped(on(THERE, WEB, 1), Why::NoRoom))));
    assert!(!said.contains(&Output::Note(Note::Rebuilt(on(HERE, WEB, 1), plimsoll::control::message::Source::Hint))));
    let (without, _) = master(&setup(Rules::ALL.without(Rule::HintRecovery)), inputs());
    assert_eq!(allocated(&without, THERE, WEB), 0);
    let (over, _) = master(&setup(Rules::ALL.without(Rule::Clamp)), inputs());
    assert_eq!(allocated(&over, THERE, WEB), 3);
}

/// R8, R9: a machine out of sight keeps its stable units and gets them again; offline units go elsewhere.
#[test]
fn a_timeout_takes_offline_units_only() {
    let inputs = || {
        let apps = [app_report(0, 1, &[(WEB, 1)], &[]), app_report(1, 1, &[(SQL, 1)], &[])];
        let caps = vec![tubo_report(HERE, &[(WEB, 1), (SQL, 1)]), tubo_report(THERE, &[])];
        caps.into_iter().chain(apps).chain([Input::WindowEnds, Input::TuboTimeout(HERE)]).collect::<Vec<_>>()
    };
    let setup_all = setup(Rules::ALL);
    let (lost, said) = master(&setup_all, inputs());
    assert_eq!((allocated(&lost, HERE, WEB), allocated(&lost, HERE, SQL), allocated(&lost, THERE, SQL)), (1, 0, 1));
    let told =
        |o: &Output| matches!(o, Output::Send(Node::App(AppId(0), 1), Message::Hints { away, .. }) if *away == [HERE]);
    assert!(said.iter().any(told), "the online service is told: {said:?}");
    let at = lost.position(HERE);
    let beat = Input::Message(Message::TuboBeat { machine: HERE, at, restarted: false });
    let (back, said) = lost.step(&setup_all, beat);
    assert_eq!(back.sites[0].contact, Contact::Here);
    assert_eq!(full_cap(&said, HERE), Some(vec![(WEB, 1)]));
    let (without, _) = master(&setup(Rules::ALL.without(Rule::KeepStable)), inputs());
    assert_eq!(allocated(&without, HERE, WEB), 0);
}

/// R9, R12: after the window a machine's stable units are believed if their application master is away or knows them.
#[test]
fn late_machines_are_believed_as_far_as_it_is_safe() {
    let setup = setup(Rules::ALL);
    for (first, kept) in [
        (None, 1),
        (Some(app_report(0, 1, &[(WEB, 1)], &[])), 0),
        (Some(app_report(0, 1, &[(WEB, 1)], &[on(HERE, WEB, 1)])), 1),
    ] {
        let inputs = first.into_iter().chain([Input::WindowEnds, tubo_report(HERE, &[(WEB, 1), (SQL, 1)])]);
        let (late, said) = master(&setup, inputs.collect());
        let dropped = |o: &Output| matches!(o, Output::Note(Note::Dropped(units, Why::Late)) if units.role == WEB);
        assert_eq!(said.iter().any(dropped), kept == 0, "{said:?}");
        assert!(full_cap(&said, HERE).is_some_and(|caps| caps.iter().all(|(role, _)| *role == WEB)));
        // What was dropped is granted anew, since it was asked for; nothing ran there.
        assert_eq!(allocated(&late, HERE, WEB), 1);
    }
}

/// R11: what is above the request stays until the application master gives it back; it gives back what it does not know.
#[test]
fn surplus_is_for_the_application_master() {
    let inputs = || {
        let caps = vec![tubo_report(HERE, &[(WEB, 1)]), tubo_report(THERE, &[(WEB, 1)])];
        caps.into_iter().chain([app_report(0, 1, &[(WEB, 1)], &[on(THERE, WEB, 1)]), Input::WindowEnds]).collect()
    };
    let setup_all = setup(Rules::ALL);
    let (kept, said) = master(&setup_all, inputs());
    assert_eq!((kept.accounts[0].granted, kept.accounts[0].request), (2, 1));
    let hints = said.into_iter().find_map(|output| match output {
        Output::Send(Node::App(AppId(0), 1), message @ Message::Hints { .. }) => Some(message),
        _ => None,
    });
    let mut own = AppMaster::start(AppId(0)).0;
    (own, _) = own.step(&setup_all, app::Input::Want(WEB, 1));
    own.hints.insert((THERE, WEB), 1);
    let (own, said) = own.step(&setup_all, app::Input::Message(hints.expect("a full hint")));
    let gives = |o: &Output| matches!(o, Output::Send(Node::Master, Message::AppChange { returned, .. }) if *returned == [on(HERE, WEB, 1)]);
    assert!(said.iter().any(gives), "{said:?}");
    assert_eq!((own.hint(HERE, WEB), own.hint(THERE, WEB)), (0, 1));
    let (cut, _) = master(&setup(Rules::ALL.without(Rule::SurplusToAm)), inputs());
    assert_eq!((allocated(&cut, HERE, WEB), allocated(&cut, THERE, WEB)), (1, 0), "the wrong one");
}

/// R13: an increment that is late, double or early is not applied.
#[test]
fn increments_are_applied_once_and_in_order() {
    let caps = |number, full, count| {
        let list = vec![(WEB, count)];
        tubo::Input::Message(Message::Caps { at: Position { epoch: 1, number }, full, list })
    };
    let run = |rules: Rules, inputs: Vec<tubo::Input>| {
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

/// Fencing: a superseded application master is told to stop, also by a FuxiMaster that has never heard of the new one.
#[test]
fn superseded_masters_are_refused() {
    let setup_all = setup(Rules::ALL);
    let (fresh, said) = {
        let (master, _) = Master::start(&setup_all, 2, &[(5, HERE), (1, HERE)]);
        master.step(&setup_all, app_report(0, 4, &[(WEB, 9)], &[]))
    };
    assert_eq!(said, [Output::Send(Node::App(AppId(0), 4), Message::Fenced)]);
    assert_eq!(fresh.accounts[0].request, 0);
    let (own, _) = AppMaster::start(AppId(0)).0.step(&setup_all, app::Input::Message(Message::Fenced));
    let (_, said) = own.step(&setup_all, app::Input::Beat);
    assert!(said.is_empty(), "it says no more");
    let open = setup(Rules::ALL.without(Rule::Fencing));
    let (master, _) = Master::start(&open, 2, &[(5, HERE), (1, HERE)]);
    assert_eq!(master.step(&open, app_report(0, 4, &[(WEB, 9)], &[])).0.accounts[0].request, 9);
}

/// I9: invented requests count against the quota group.
#[test]
fn quota_groups_admit_and_count_what_is_invented() {
    let mut setup = setup(Rules::ALL);
    setup.groups = vec![2];
    setup.roles.iter_mut().for_each(|role| role.group = Some(0));
    let caps = vec![tubo_report(HERE, &[(WEB, 1)]), tubo_report(THERE, &[])];
    let inputs = caps.into_iter().chain([app_report(1, 1, &[(SQL, 3)], &[]), Input::WindowEnds]);
    let (master, said) = master(&setup, inputs.collect());
    assert_eq!((master.groups[0], granted(&said), master.accounts[1].granted), (2, 1, 1));
}
