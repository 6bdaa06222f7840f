//! The rules of the Fuxi control plane, one by one, on single steps of FuxiMaster, and of application masters that communicate with it.

use plimsoll::control::app::{self, AppMaster};
use plimsoll::control::counts::Counts;
use plimsoll::control::master::{Contact, Master, MasterInput, Phase, RoleAccount};
use plimsoll::control::message::{Bar, Endpoint, Message, Note, Output, Position, RecoverySource, Sender, Units, Why};
use plimsoll::control::rules::{Rule, Rules};
use plimsoll::control::setup::{AppId, Blacklist, Role, RoleId, Setup};
use plimsoll::units::{MAX_DIMS, MachineId, Resources};

pub const WEB: RoleId = RoleId(0);
pub const SQL: RoleId = RoleId(1);
pub const HERE: MachineId = MachineId(0);
pub const THERE: MachineId = MachineId(1);

/// The newest master of each application.
pub const NEWEST: [(AppId, u32); 2] = [(AppId(0), 1), (AppId(1), 1)];

/// Returns an amount of the first resource.
pub fn amount(first: u64) -> Resources {
    let mut amounts = Resources::ZERO;
    amounts.0[0] = first;
    amounts
}

/// Adds an application of one role. A unit of the role has an amount of 1 of the first resource.
pub fn add_app(setup: &mut Setup, name: &str, stable: bool) -> AppId {
    let app = setup.add_app();
    setup.add_role(Role { app, stable, unit: amount(1), name: name.to_owned() });
    app
}

/// Returns two machines of capacity 2, an online application 0 (role 0) and an offline application 1 (role 1).
pub fn setup(rules: Rules) -> Setup {
    let mut setup = Setup::new(vec![amount(2), amount(2)]);
    add_app(&mut setup, "web", true);
    add_app(&mut setup, "sql", false);
    setup.rules = rules;
    setup
}

pub fn counts(pairs: &[(RoleId, u32)]) -> Counts {
    pairs.iter().copied().collect()
}

pub fn on(machine: MachineId, role: RoleId, count: u32) -> Units<u32> {
    Units { machine, role, count }
}

pub fn tubo_report(machine: MachineId, caps: &[(RoleId, u32)]) -> MasterInput {
    MasterInput::Message(Message::TuboReport { machine, epoch: 2, caps: counts(caps) })
}

pub fn app_report(app: u32, epoch: u32, request: &[(RoleId, u32)], hints: &[Units<u32>]) -> MasterInput {
    let from = Sender { app: AppId(app), epoch, number: 1 };
    let (request, hints) = (counts(request), hints.to_vec());
    MasterInput::Message(Message::AppReport { from, epoch: 2, request, hints, bars: Vec::new(), restarted: false })
}

/// Returns the second FuxiMaster (epoch 2) after these inputs, and all its outputs.
pub fn master(setup: &Setup, inputs: Vec<MasterInput>) -> (Master, Vec<Output>) {
    let (mut master, _) = Master::start(setup, 2, &NEWEST);
    let mut said = Vec::new();
    for input in inputs {
        let (next, outputs) = master.step(setup, input);
        master = next;
        said.extend(outputs);
    }
    (master, said)
}

pub fn allocated(master: &Master, machine: MachineId, role: RoleId) -> u32 {
    master.sites[machine.index()].alloc.get(role)
}

pub fn full_cap(said: &[Output], machine: MachineId) -> Option<Vec<(RoleId, i32)>> {
    said.iter().rev().find_map(|output| match output {
        Output::Send(Endpoint::Tubo(to), Message::Caps { full: true, list, .. }) if *to == machine => {
            Some(list.clone())
        }
        _ => None,
    })
}

/// Filters the incremental messages of FuxiMaster to a Tubo or an application master: caps and hints that are not full.
pub fn increments(said: &[Output]) -> Vec<&Output> {
    let is_increment = |output: &&Output| {
        matches!(output, Output::Send(_, Message::Caps { full: false, .. } | Message::Hints { full: false, .. }))
    };
    said.iter().filter(is_increment).collect()
}

pub fn cap(machine: MachineId, number: u32, change: (RoleId, i32)) -> Output {
    let at = Position { epoch: 2, number };
    Output::Send(Endpoint::Tubo(machine), Message::Caps { at, full: false, list: vec![change] })
}

pub fn hint(app: u32, number: u32, heard: u32, list: Vec<Units<i32>>) -> Output {
    let (at, away, back) = (Position { epoch: 2, number }, Vec::new(), Vec::new());
    Output::Send(Endpoint::App(AppId(app), 1), Message::Hints { at, heard, full: false, list, away, back })
}

pub fn change(app: u32, number: u32, request: (RoleId, i32), returned: &[Units<u32>]) -> MasterInput {
    let from = Sender { app: AppId(app), epoch: 1, number };
    MasterInput::Message(Message::AppChange { from, epoch: 2, request: vec![request], returned: returned.to_vec() })
}

pub fn started(said: &[Output]) -> Vec<(AppId, u32)> {
    let start = |output: &Output| match output {
        Output::StartApp(app, epoch) => Some((*app, *epoch)),
        _ => None,
    };
    said.iter().filter_map(start).collect()
}

/// R1, R4: a grant is sent to both sides; a returned unit is removed from the cap.
#[test]
fn grants_reach_both_sides_and_returns_shrink_the_cap() {
    let setup = setup(Rules::ALL);
    let caps = [tubo_report(HERE, &[]), tubo_report(THERE, &[])];
    let inputs = caps.into_iter().chain([app_report(0, 1, &[(WEB, 3)], &[]), MasterInput::WindowEnds]);
    let (master, said) = master(&setup, inputs.collect());
    assert_eq!(
        (full_cap(&said, HERE), master.accounts[&WEB].granted),
        (Some(Vec::new()), 0),
        "FuxiMaster grants no units by its own decision"
    );
    let grants = vec![on(HERE, WEB, 2), on(THERE, WEB, 1)];
    let (master, said) = master.step(&setup, MasterInput::Grant(grants.clone()));
    assert_eq!((allocated(&master, HERE, WEB), allocated(&master, THERE, WEB)), (2, 1));
    assert!(grants.into_iter().all(|units| said.contains(&Output::Note(Note::Granted(units)))));
    // The units granted at one instant are sent to each receiver in one message.
    let both = vec![Units { machine: HERE, role: WEB, count: 2 }, Units { machine: THERE, role: WEB, count: 1 }];
    assert_eq!(increments(&said), [&cap(HERE, 2, (WEB, 2)), &cap(THERE, 2, (WEB, 1)), &hint(0, 2, 1, both)]);
    let (master, said) = master.step(&setup, change(0, 2, (WEB, -1), &[on(HERE, WEB, 1)]));
    assert_eq!((master.accounts[&WEB].request, master.accounts[&WEB].granted), (2, 2));
    assert_eq!(
        increments(&said),
        [&cap(HERE, 3, (WEB, -1))],
        "the application master is not notified of its own return"
    );
}

/// Units that the scheduler revokes for other roles are removed from cap and hint; units that no longer exist are ignored.
#[test]
fn what_is_revoked_is_told_to_both_sides() {
    let setup = setup(Rules::ALL);
    let inputs = vec![tubo_report(HERE, &[]), app_report(1, 1, &[(SQL, 2)], &[]), MasterInput::WindowEnds];
    let (master, _) = master(&setup, inputs);
    let (master, _) = master.step(&setup, MasterInput::Grant(vec![on(HERE, SQL, 1)]));
    let (revoked, said) = master.step(&setup, MasterInput::Revoke(vec![on(HERE, SQL, 2), on(THERE, SQL, 1)]));
    assert_eq!((revoked.accounts[&SQL].request, revoked.accounts[&SQL].granted), (2, 0));
    assert!(said.contains(&Output::Note(Note::Dropped(on(HERE, SQL, 1), Why::Displaced))));
    let list = vec![Units { machine: HERE, role: SQL, count: -1 }];
    assert_eq!(increments(&said), [&cap(HERE, 3, (SQL, -1)), &hint(1, 3, 1, list)]);
    assert!(revoked.sites[0].is_shrinking(SQL));
}

/// A returned unit may be granted to its role again only after the Tubo has acknowledged the loss. Random schedules found a
/// worker that a new plan started under the old cap, and that the smaller cap stopped when it arrived.
#[test]
fn a_role_shrinks_on_a_machine_until_its_loss_is_acknowledged() {
    let setup = setup(Rules::ALL);
    let caps = [tubo_report(HERE, &[(WEB, 2)]), tubo_report(THERE, &[(SQL, 2)])];
    let apps = [app_report(0, 1, &[(WEB, 2)], &[on(HERE, WEB, 2)]), app_report(1, 1, &[(SQL, 2)], &[])];
    let beat = |number| {
        let at = Position { epoch: 2, number };
        MasterInput::Message(Message::TuboBeat { machine: HERE, at, restarted: false })
    };
    let shrinks = |master: &Master| [WEB, SQL].map(|role| master.sites[0].is_shrinking(role));
    let (full, _) = master(&setup, caps.into_iter().chain(apps).chain([MasterInput::WindowEnds]).collect());
    assert!(full.sites.iter().all(|site| site.is_settled()));
    let (smaller, _) = full.step(&setup, change(0, 2, (WEB, -1), &[on(HERE, WEB, 1)]));
    assert_eq!(smaller.free(&setup, HERE), amount(1));
    assert_eq!(shrinks(&smaller), [true, false], "another role may have the room at once");
    let (behind, said) = smaller.clone().step(&setup, beat(1));
    assert_eq!((shrinks(&behind), full_cap(&said, HERE)), ([true, false], Some(vec![(WEB, 1)])), "the Tubo is behind");
    // The first message was the full cap after the window; the second one removed the unit.
    for (master, number) in [(smaller, 2), (behind.clone(), 2), (behind, 3)] {
        let (settled, _) = master.step(&setup, beat(number));
        assert!(settled.sites[0].is_settled(), "acknowledged by {number}");
    }
}

/// R5: while FuxiMaster recovers, it sends only requests for reports. Without this rule it sends an empty table.
#[test]
fn fuximaster_listens_while_it_recovers() {
    let beat = MasterInput::Message(Message::TuboBeat { machine: HERE, at: Position::default(), restarted: true });
    let (silent, said) = master(&setup(Rules::ALL), vec![beat.clone()]);
    assert_eq!(silent.phase, Phase::Recovering);
    assert_eq!(said, [Output::Send(Endpoint::Tubo(HERE), Message::Ask { epoch: 2 })]);
    let (_, said) = master(&setup(Rules::ALL.without(Rule::WaitWindow)), vec![beat]);
    assert_eq!(full_cap(&said, HERE), Some(Vec::new()));
}

/// R6, R10: caps of an absent application master get an invented request, which the real request replaces.
#[test]
fn requests_are_invented_and_converted() {
    let setup_all = setup(Rules::ALL);
    let inputs = || vec![tubo_report(HERE, &[(WEB, 1), (SQL, 1)]), MasterInput::WindowEnds];
    let (recovered, said) = master(&setup_all, inputs());
    assert_eq!(recovered.accounts[&WEB], RoleAccount { request: 1, mocked: 1, granted: 1 });
    assert_eq!(allocated(&recovered, HERE, SQL), 0, "offline units of an absent application are removed");
    assert_eq!(started(&said), [(AppId(0), 2), (AppId(1), 2)]);
    let (converted, said) = recovered.step(&setup_all, app_report(0, 2, &[(WEB, 2)], &[on(HERE, WEB, 1)]));
    assert_eq!(converted.accounts[&WEB], RoleAccount { request: 2, mocked: 0, granted: 1 }, "converted, not added");
    assert!(said.contains(&Output::Note(Note::Converted(WEB, 1))));
    let (without, _) = master(&setup(Rules::ALL.without(Rule::MockRequest)), inputs());
    assert_eq!(allocated(&without, HERE, WEB), 0);
}

/// Scenario 3: a lost application master is replaced by one of a larger epoch, and loses no units.
#[test]
fn a_lost_application_master_is_replaced_and_keeps_its_units() {
    let setup = setup(Rules::ALL);
    let inputs = vec![
        tubo_report(HERE, &[(WEB, 1), (SQL, 1)]),
        app_report(0, 1, &[(WEB, 1)], &[on(HERE, WEB, 1)]),
        app_report(1, 1, &[(SQL, 1)], &[]),
    ];
    let (listening, _) = master(&setup, inputs);
    assert_eq!(listening.clone().step(&setup, MasterInput::AppTimeout(AppId(0))), (listening.clone(), Vec::new()));
    let (master, said) = listening.step(&setup, MasterInput::WindowEnds);
    assert_eq!(started(&said), [], "both application masters have reported");
    for app in [AppId(0), AppId(1)] {
        let (lost, said) = master.clone().step(&setup, MasterInput::AppTimeout(app));
        assert_eq!(started(&said), [(app, 2)]);
        assert!(said.contains(&Output::Note(Note::AppAway(app))));
        assert_eq!((lost.tenants[&app].contact, lost.tenants[&app].accepts(1)), (Contact::Away, false));
        assert_eq!((&lost.sites, &lost.accounts), (&master.sites, &master.accounts));
        let (_, said) = lost.step(&setup, MasterInput::AppTimeout(app));
        assert_eq!(started(&said), [(app, 3)], "the second master has not reported either");
    }
}

/// The first master of an application starts at submission; a recovering FuxiMaster starts it only after its recovery. The end
/// of an application releases all its units, and its last master receives the message to stop.
#[test]
fn applications_come_and_go() {
    let mut setup = setup(Rules::ALL);
    let app = add_app(&mut setup, "new", true);
    let (listening, said) = master(&setup, vec![tubo_report(HERE, &[]), MasterInput::Submit(app)]);
    assert_eq!(started(&said), []);
    let (recovered, said) = listening.step(&setup, MasterInput::WindowEnds);
    assert!(started(&said).contains(&(app, 1)), "{said:?}");
    let (first, said) = Master::first(&setup).step(&setup, MasterInput::Submit(app));
    assert_eq!((first.phase, started(&said)), (Phase::Normal, vec![(app, 1)]));
    let role = setup.roles_of(app).next().expect("it has one role");
    let (heard, _) = recovered.step(&setup, app_report(2, 1, &[(role, 1)], &[]));
    let (granted, _) = heard.step(&setup, MasterInput::Grant(vec![on(HERE, role, 1)]));
    let (over, said) = granted.step(&setup, MasterInput::AppOver(app));
    assert_eq!(increments(&said), [&cap(HERE, 3, (role, -1))]);
    assert_eq!((over.free(&setup, HERE), over.sites[0].is_shrinking(role)), (amount(2), true));
    assert!(!over.tenants.contains_key(&app) && !over.accounts.contains_key(&role));
    setup.remove_app(app);
    let (_, said) = over.step(&setup, app_report(2, 1, &[], &[]));
    assert_eq!(said, [Output::Send(Endpoint::App(app, 1), Message::Fenced)]);
}

/// R6: hints count only for machines that have not reported, and only up to the capacity of the machine.
#[test]
fn hints_stand_in_for_machines_that_are_away() {
    let inputs = || {
        let hints = [on(HERE, WEB, 1), on(THERE, WEB, 3)];
        vec![tubo_report(HERE, &[]), app_report(0, 1, &[(WEB, 4)], &hints), MasterInput::WindowEnds]
    };
    let (recovered, said) = master(&setup(Rules::ALL), inputs());
    assert_eq!(allocated(&recovered, THERE, WEB), 2, "cut at the capacity");
    assert!(said.contains(&Output::Note(Note::Dropped(on(THERE, WEB, 1), Why::NoRoom))));
    assert!(!said.contains(&Output::Note(Note::Rebuilt(on(HERE, WEB, 1), RecoverySource::Hint))));
    let (without, _) = master(&setup(Rules::ALL.without(Rule::HintRecovery)), inputs());
    assert_eq!(allocated(&without, THERE, WEB), 0);
    let (over, _) = master(&setup(Rules::ALL.without(Rule::Clamp)), inputs());
    assert_eq!(allocated(&over, THERE, WEB), 3);
}

/// R8, R9: an unreachable machine keeps its stable units and receives them again; offline units may be granted on other machines.
#[test]
fn a_timeout_takes_offline_units_only() {
    let inputs = || {
        let apps = [app_report(0, 1, &[(WEB, 1)], &[]), app_report(1, 1, &[(SQL, 1)], &[])];
        let caps = vec![tubo_report(HERE, &[(WEB, 1), (SQL, 1)]), tubo_report(THERE, &[])];
        caps.into_iter()
            .chain(apps)
            .chain([MasterInput::WindowEnds, MasterInput::TuboTimeout(HERE)])
            .collect::<Vec<_>>()
    };
    let setup_all = setup(Rules::ALL);
    let (lost, said) = master(&setup_all, inputs());
    assert_eq!((allocated(&lost, HERE, WEB), allocated(&lost, HERE, SQL)), (1, 0));
    assert_eq!((lost.accounts[&SQL].request, lost.accounts[&SQL].granted), (1, 0), "may be granted again");
    let told = |o: &Output| matches!(o, Output::Send(Endpoint::App(AppId(0), 1), Message::Hints { away, .. }) if *away == [HERE]);
    assert!(said.iter().any(told), "the online service is notified: {said:?}");
    let at = lost.position(HERE);
    let beat = MasterInput::Message(Message::TuboBeat { machine: HERE, at, restarted: false });
    let (back, said) = lost.step(&setup_all, beat);
    assert_eq!(back.sites[0].contact, Contact::Here);
    assert_eq!(full_cap(&said, HERE), Some(vec![(WEB, 1)]));
    let (without, _) = master(&setup(Rules::ALL.without(Rule::KeepStable)), inputs());
    assert_eq!(allocated(&without, HERE, WEB), 0);
}

/// R9, R12: stable units that a machine reports after the window are accepted if their application master is away or has them in
/// its hints.
#[test]
fn late_machines_are_believed_as_far_as_it_is_safe() {
    let setup = setup(Rules::ALL);
    for (first, kept) in [
        (None, 1),
        (Some(app_report(0, 1, &[(WEB, 1)], &[])), 0),
        (Some(app_report(0, 1, &[(WEB, 1)], &[on(HERE, WEB, 1)])), 1),
    ] {
        let inputs = first.into_iter().chain([MasterInput::WindowEnds, tubo_report(HERE, &[(WEB, 1), (SQL, 1)])]);
        let (late, said) = master(&setup, inputs.collect());
        let dropped = |o: &Output| matches!(o, Output::Note(Note::Dropped(units, Why::Late)) if units.role == WEB);
        assert_eq!(said.iter().any(dropped), kept == 0, "{said:?}");
        assert!(full_cap(&said, HERE).is_some_and(|caps| caps.iter().all(|(role, _)| *role == WEB)));
        // A dropped unit may be granted again because it was requested, but on this machine only after the Tubo has confirmed
        // its removal.
        assert_eq!((allocated(&late, HERE, WEB), late.sites[0].is_shrinking(WEB)), (kept, kept == 0));
    }
}

/// R11: units above the request stay until the application master returns them; it returns units that it has no record of.
#[test]
fn surplus_is_for_the_application_master() {
    let inputs = || {
        let caps = vec![tubo_report(HERE, &[(WEB, 1)]), tubo_report(THERE, &[(WEB, 1)])];
        caps.into_iter().chain([app_report(0, 1, &[(WEB, 1)], &[on(THERE, WEB, 1)]), MasterInput::WindowEnds]).collect()
    };
    let setup_all = setup(Rules::ALL);
    let (kept, said) = master(&setup_all, inputs());
    assert_eq!((kept.accounts[&WEB].granted, kept.accounts[&WEB].request), (2, 1));
    let hints = said.into_iter().find_map(|output| match output {
        Output::Send(Endpoint::App(AppId(0), 1), message @ Message::Hints { .. }) => Some(message),
        _ => None,
    });
    let mut own = AppMaster::start(AppId(0)).0;
    (own, _) = own.step(&setup_all, app::AppInput::Want(WEB, 1));
    own.hints.insert((THERE, WEB), 1);
    let (own, said) = own.step(&setup_all, app::AppInput::Message(hints.expect("a full hint")));
    let gives = |o: &Output| matches!(o, Output::Send(Endpoint::Master, Message::AppChange { returned, .. }) if *returned == [on(HERE, WEB, 1)]);
    assert!(said.iter().any(gives), "{said:?}");
    assert_eq!((own.hint(HERE, WEB), own.hint(THERE, WEB)), (0, 1));
    let (cut, _) = master(&setup(Rules::ALL.without(Rule::SurplusToAm)), inputs());
    assert_eq!(
        (allocated(&cut, HERE, WEB), allocated(&cut, THERE, WEB)),
        (1, 0),
        "without the rule, the unit in the hints is removed"
    );
}

/// Fencing: a superseded application master receives the message to stop, even if FuxiMaster has no report of the new master yet.
#[test]
fn superseded_masters_are_refused() {
    let setup_all = setup(Rules::ALL);
    let (fresh, said) = {
        let (master, _) = Master::start(&setup_all, 2, &[(AppId(0), 5), (AppId(1), 1)]);
        master.step(&setup_all, app_report(0, 4, &[(WEB, 9)], &[]))
    };
    assert_eq!(said, [Output::Send(Endpoint::App(AppId(0), 4), Message::Fenced)]);
    assert_eq!(fresh.accounts[&WEB].request, 0);
    let (own, _) = AppMaster::start(AppId(0)).0.step(&setup_all, app::AppInput::Message(Message::Fenced));
    let (_, said) = own.step(&setup_all, app::AppInput::Beat);
    assert!(said.is_empty(), "it sends no more messages");
    let open = setup(Rules::ALL.without(Rule::Fencing));
    let (master, _) = Master::start(&open, 2, &[(AppId(0), 5), (AppId(1), 1)]);
    assert_eq!(master.step(&open, app_report(0, 4, &[(WEB, 9)], &[])).0.accounts[&WEB].request, 9);
}

/// I9: invented requests count as granted on every machine.
#[test]
fn invented_requests_are_counted() {
    let setup = setup(Rules::ALL);
    let caps = vec![tubo_report(HERE, &[(WEB, 1)]), tubo_report(THERE, &[(WEB, 2)])];
    let inputs = caps.into_iter().chain([app_report(1, 1, &[(SQL, 3)], &[]), MasterInput::WindowEnds]);
    let (master, _) = master(&setup, inputs.collect());
    assert_eq!(master.accounts[&WEB], RoleAccount { request: 3, mocked: 3, granted: 3 });
    assert_eq!(master.accounts[&SQL], RoleAccount { request: 3, mocked: 0, granted: 0 });
    assert_eq!([HERE, THERE].map(|machine| master.used(machine)), [amount(1), amount(2)]);
    assert_eq!([WEB, SQL].map(|role| master.wanting(role)), [0, 3]);
    let held: Vec<_> = master.tenants[&AppId(0)].held.iter().map(|(key, count)| (*key, *count)).collect();
    assert_eq!(held, [((HERE, WEB), 1), ((THERE, WEB), 2)]);
}

/// Units are vectors: hints are cut at the capacity of the scarcest resource.
#[test]
fn room_is_counted_in_every_resource() {
    let vector = |first, second| {
        let mut amounts = [0; MAX_DIMS];
        amounts[..2].copy_from_slice(&[first, second]);
        Resources(amounts)
    };
    let mut setup = Setup::new(vec![vector(9, 5), vector(5, 9)]);
    for (name, unit) in [("wide", vector(2, 1)), ("tall", vector(1, 2))] {
        let app = setup.add_app();
        setup.add_role(Role { app, stable: true, unit, name: name.to_owned() });
    }
    let report = |app, role| {
        let hints = [on(HERE, role, 9), on(THERE, role, 9)];
        app_report(app, 1, &[(role, 18)], &hints)
    };
    for (role, here, there) in [(RoleId(0), 4, 2), (RoleId(1), 2, 4)] {
        let (recovered, _) = master(&setup, vec![report(role.0, role), MasterInput::WindowEnds]);
        assert_eq!((allocated(&recovered, HERE, role), allocated(&recovered, THERE, role)), (here, there));
        assert!(setup.machine_ids().all(|machine| !setup.role(role).unit.fits(&recovered.free(&setup, machine))));
    }
}

/// By default hints about machines that have reported are ignored, as in the article. With `order_by_hints`, offline units that are in a
/// hint are kept before other offline units.
#[test]
fn hints_order_offline_units_only_if_they_are_to() {
    for (ordered, kept) in [(false, [1, 0]), (true, [0, 1])] {
        let mut setup = setup(Rules::ALL);
        setup.order_by_hints = ordered;
        let caps = [tubo_report(HERE, &[(SQL, 1)]), tubo_report(THERE, &[(SQL, 1)])];
        let report = app_report(1, 1, &[(SQL, 1)], &[on(THERE, SQL, 1)]);
        let (recovered, said) = master(&setup, caps.into_iter().chain([report, MasterInput::WindowEnds]).collect());
        assert_eq!([HERE, THERE].map(|machine| allocated(&recovered, machine, SQL)), kept);
        let above = said.iter().filter(|output| matches!(output, Output::Note(Note::Dropped(_, Why::AboveRequest))));
        assert_eq!(above.count(), 1);
    }
}

/// FuxiMaster blacklists a machine that enough applications blame; blame of a finished application counts. The number of blacklisted
/// machines has a limit. A machine that one application bars for itself remains available to the others.
#[test]
fn a_machine_is_shunned_when_several_blame_it() {
    let blacklist = Some(Blacklist { role: 1, app: 1, cluster: 2, most: 1 });
    let mut setup = setup(Rules::ALL);
    setup.blacklist = blacklist;
    let bars = |app: u32, number: u32, machines: &[MachineId], role| {
        let from = Sender { app: AppId(app), epoch: 1, number };
        let bars = machines.iter().map(|machine| Bar { machine: *machine, role }).collect();
        MasterInput::Message(Message::AppBars { from, epoch: 2, bars })
    };
    let reports = vec![app_report(0, 1, &[], &[]), app_report(1, 1, &[], &[]), MasterInput::WindowEnds];
    let (start, _) = master(&setup, reports);
    let play = |inputs: Vec<MasterInput>| {
        let mut notes = Vec::new();
        let last = inputs.into_iter().fold(start.clone(), |master, input| {
            let (master, said) = master.step(&setup, input);
            notes.extend(
                said.into_iter()
                    .filter(|output| matches!(output, Output::Note(Note::Blacklisted(_) | Note::Forgiven(_)))),
            );
            master
        });
        (last.sites.iter().map(|site| site.blacklisted).collect::<Vec<bool>>(), notes)
    };
    let both = |role| vec![bars(0, 2, &[HERE], role), bars(1, 2, &[HERE], role)];
    assert_eq!(play(both(Some(WEB))), (vec![false, false], vec![]));
    let blacklists = Output::Note(Note::Blacklisted(HERE));
    assert_eq!(play(both(None)), (vec![true, false], vec![blacklists.clone()]));
    let over = vec![bars(0, 2, &[HERE], None), MasterInput::AppOver(AppId(0)), bars(1, 2, &[HERE], None)];
    assert_eq!(play(over).0, [true, false], "the blame of a finished application counts");
    let two = [both(None), vec![bars(0, 3, &[HERE, THERE], None), bars(1, 3, &[HERE, THERE], None)]].concat();
    assert_eq!(play(two), (vec![true, false], vec![blacklists.clone()]), "the limit is one machine");
    let late = vec![bars(0, 3, &[HERE], None), bars(1, 2, &[HERE], None)];
    assert_eq!(play(late).0, [false, false], "the preceding message was lost");
    let forgiven = [both(None), vec![MasterInput::Forgive(HERE)]].concat();
    assert_eq!(play(forgiven), (vec![false, false], vec![blacklists, Output::Note(Note::Forgiven(HERE))]));
}
