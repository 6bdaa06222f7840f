//! The Fuxi control plane, exhaustively: every order of events in a small cluster with a bounded number of faults.
//!
//! The step functions of `crates/control/src` run unchanged; only clocks, network, faults and the scheduler are modelled here (`step`). The
//! model of the scheduler has only prohibitions: it grants any permitted unit, on any permitted machine, at any permitted time. The
//! invariants are a second formulation (`watch`), independent of `crates/control/src/world`, so that the two check each other. The findings
//! of a run are printed: `cargo test --release --test it failover_model -- --nocapture`. See `docs/failover-model.md` for the meaning of
//! the bounds.

mod numbers;
mod search;
mod state;
mod step;
mod strike;
mod watch;

use std::collections::BTreeSet;

use plimsoll::control::message::{Endpoint, Message};
use plimsoll::control::rules::{Rule, Rules};
use plimsoll::control::setup::{AppId, RoleId, Setup};
use plimsoll::units::MachineId;

use crate::failover_rules::{add_app, amount};
use search::{Found, search};
use state::State;
use step::{Action, Model};
use strike::Fault;
use watch::Seen;

/// Which messages may be late.
#[derive(Clone, Copy, Debug)]
enum Late {
    /// All of them.
    All,
    /// Messages with decisions: caps, hints, and requests and returns of application masters. Questions, reports, heartbeats and plans
    /// arrive at once if no other message is in flight on the same link.
    Orders,
}

/// The explored space: an online application, and an online or offline one, of one unit each.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    online: bool,
    capacity: u64,
    late: Late,
    /// Whether the units run when the check begins; otherwise they are requested during the check.
    runs: bool,
    faults: u8,
    moves: u8,
}

impl Bounds {
    fn model(self, rules: Rules) -> Model {
        let mut setup = Setup::new(vec![amount(self.capacity); 2]);
        setup.rules = rules;
        add_app(&mut setup, "web", true);
        add_app(&mut setup, "other", self.online);
        let prompt = match self.late {
            Late::All => |_: &Message| false,
            Late::Orders => |message: &Message| {
                !matches!(message, Message::Caps { .. } | Message::Hints { .. } | Message::AppChange { .. })
            },
        };
        let early = [u8::from(self.runs); 2];
        let (wants, faults, moves) = ([vec![1], vec![1]], self.faults, self.moves);
        // The quota equals the sum of the requests, so a scheduler that does not count invented requests would exceed it.
        Model { setup, wants, early, faults, moves, quota: 2, prompt }
    }

    /// Explores all states, prints their number, and checks that no invariant is violated.
    fn explore(self) -> Found {
        let start = std::time::Instant::now();
        let found = search(&self.model(Rules::ALL), &[]);
        let Found { states, transitions, depth, longest, rests, to_rest, parts, .. } = &found;
        println!("{self:?}");
        println!(
            "    {states} states, {transitions} transitions in {:.1} s; depth {depth}, longest queue {longest}; \
             {rests} states at rest, at most {to_rest} steps to one; parts {parts:?}",
            start.elapsed().as_secs_f64()
        );
        for (invariant, what, way) in &found.violations {
            println!("    {invariant}: {what}, after {} steps: {way:#?}", way.len());
        }
        assert!(found.complete && found.violations.is_empty(), "{self:?}");
        // This path cannot occur, since the scheduler grants no unit of a role on a machine that has not acknowledged all losses of the
        // role.
        assert!(!found.paths.contains(watch::CROSSES), "{self:?}");
        found
    }
}

/// Up to three faults occur. The explorations together take every recovery path of FuxiMaster.
#[test]
fn three_faults_harm_nobody_and_every_way_to_recover_is_taken() {
    let mut paths = BTreeSet::new();
    // Two online units stay on their machines, with or without room on other machines.
    for (online, capacity) in [(false, 1), (false, 2), (true, 1)] {
        let bounds = Bounds { online, capacity, late: Late::Orders, runs: true, faults: 3, moves: 0 };
        paths.extend(bounds.explore().paths);
    }
    // Units are requested, granted and returned while two faults occur.
    for online in [false, true] {
        for (capacity, runs, moves) in [(1, false, 0), (2, true, 1)] {
            let bounds = Bounds { online, capacity, late: Late::Orders, runs, faults: 2, moves };
            paths.extend(bounds.explore().paths);
        }
    }
    println!("ways to recover: {paths:#?}");
    for path in watch::PATHS {
        assert!(paths.contains(path), "{path}: never taken");
    }
}

/// Every message may be late, each link independently.
#[test]
fn slow_links_harm_nobody() {
    for online in [false, true] {
        for (runs, faults, moves) in [(true, 2, 0), (false, 1, 1)] {
            Bounds { online, capacity: 1 + u64::from(moves), late: Late::All, runs, faults, moves }.explore();
        }
    }
}

/// If any one rule is removed, an online worker is stopped (I1) after few steps.
#[test]
fn each_rule_is_missed() {
    let steps = |rule: Rule| {
        // Two of the rules have an effect only if applications return units.
        let moves = u8::from(matches!(rule, Rule::SurplusToAm | Rule::SequenceNumbers));
        let faults = 3 - moves;
        let bounds = Bounds { online: false, capacity: 2, late: Late::Orders, runs: true, faults, moves };
        let found = search(&bounds.model(Rules::ALL.without(rule)), &["I1"]);
        println!("without {}: {} states", rule.name(), found.states);
        for (invariant, what, way) in &found.violations {
            println!("    {invariant} after {} steps: {what}", way.len());
        }
        let harm = found.violations.iter().find(|(invariant, ..)| *invariant == "I1");
        let (_, _, way) = harm.unwrap_or_else(|| panic!("without {} no property is violated", rule.name()));
        way.iter().for_each(|action| println!("        {action:?}"));
        way.len()
    };
    let found: Vec<(Rule, usize)> = Rule::of_matrix().map(|rule| (rule, steps(rule))).collect();
    let expected = [
        (Rule::MockRequest, 5),
        (Rule::CapCheckpoint, 6),
        (Rule::HintCheckpoint, 8),
        (Rule::HintRecovery, 6),
        (Rule::WaitWindow, 5),
        (Rule::KeepStable, 4),
        (Rule::SurplusToAm, 13),
        (Rule::SequenceNumbers, 11),
    ];
    assert_eq!(found, expected);
}

/// Without fencing FuxiMaster accepts messages of a superseded master.
#[test]
fn fencing_is_missed() {
    let bounds = Bounds { online: false, capacity: 2, late: Late::Orders, runs: true, faults: 2, moves: 0 };
    let found = search(&bounds.model(Rules::ALL.without(Rule::Fencing)), &["I7"]);
    assert!(found.violations.iter().any(|(invariant, ..)| *invariant == "I7"), "{:?}", found.violations);
}

/// A cap and the plan for it take different paths. A worker could start under an old cap and a new plan, be stopped by an older order that
/// is still in flight, and start again. This does not happen, since FuxiMaster grants the place again only after the Tubo has acknowledged
/// the older order.
#[test]
fn a_start_does_not_cross_an_older_order() {
    let (app, machine) = (AppId(0), MachineId(1));
    let (tubo, first, second) = (Endpoint::Tubo(machine), Endpoint::App(app, 1), Endpoint::App(app, 2));
    let grant = Action::Grant(RoleId(0), machine);
    let bounds = Bounds { online: false, capacity: 1, late: Late::Orders, runs: true, faults: 3, moves: 0 };
    let model = Model { early: [0, 1], ..bounds.model(Rules::ALL) };
    let way = [
        Action::Want(app),
        Action::Deliver(first, Endpoint::Master),
        grant,
        Action::Deliver(Endpoint::Master, tubo),
        // The cap has arrived, but the hint has not. FuxiMaster and the Tubo die.
        Action::Fault(Fault::MasterDies),
        Action::Fault(Fault::TuboDies(machine)),
        Action::MasterStarts,
        Action::WindowEnds,
        // The Tubo joins late with a cap that no other process knows and no application master requests.
        Action::Fault(Fault::AppDies(app)),
        Action::AppTimeout(app),
        Action::TuboStarts(machine),
        Action::AppStarts(app),
        // The Tubo is ordered to drop the cap and would later receive it again; the plan arrives before both orders.
        Action::Deliver(Endpoint::Master, second),
    ];
    let mut state = way.iter().fold(model.first(), |state, action| {
        assert!(model.actions(&state).contains(action), "{action:?}");
        model.apply(&state, *action, &mut Seen::default())
    });
    // The unit is requested and there is room, but it is not granted, since the Tubo has not acknowledged the loss.
    assert!(!model.calm(&state).contains(&grant));
    let running = |state: &State| state.host(machine).tubo.running.get(RoleId(0));
    let mut seen = Seen::default();
    let mut runs = vec![running(&state)];
    while let Some(action) = model.calm(&state).first() {
        state = model.apply(&state, *action, &mut seen);
        runs.push(running(&state));
    }
    runs.dedup();
    assert_eq!(runs, [0, 1]);
    assert!(!seen.paths.contains(watch::CROSSES) && seen.violations.is_empty(), "{seen:?}");
}

/// Explores three faults and one move, which takes minutes.
#[test]
#[ignore = "slow: a few minutes"]
fn more_of_everything_harms_nobody() {
    for online in [false, true] {
        Bounds { online, capacity: 2, late: Late::Orders, runs: true, faults: 3, moves: 1 }.explore();
    }
}
