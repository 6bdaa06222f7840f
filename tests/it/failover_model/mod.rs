//! The exhaustive check of the Fuxi control plane.

mod numbers;
mod search;
mod state;
mod step;
mod watch;

use plimsoll::control::rules::{Rule, Rules};
use plimsoll::control::setup::Setup;
use search::search;
use step::Model;

fn model(stable: [bool; 2], capacity: [u32; 2], wants: [Vec<u32>; 2], faults: u8, moves: u8, lossy: bool) -> Model {
    let mut setup = Setup::new(capacity.to_vec());
    setup.app(&[("a", stable[0], 1)]);
    setup.app(&[("b", stable[1], 1)]);
    let prompt: fn(&Message) -> bool = match std::env::var("PROMPT").as_deref() {
        Ok("1") => |m| matches!(m, Message::TuboBeat{..}|Message::AppBeat{..}|Message::Ask{..}|Message::TuboReport{..}|Message::AppReport{..}),
        Ok("2") => |m| matches!(m, Message::TuboBeat{..}|Message::AppBeat{..}|Message::Ask{..}|Message::TuboReport{..}|Message::AppReport{..}|Message::Fenced|Message::NeedPlan{..}),
        Ok("3") => |m| !matches!(m, Message::Caps{..}|Message::Hints{..}|Message::AppChange{..}),
        _ => |_| false,
    };
    Model { setup, wants, faults, moves, lossy, reduce: std::env::var("REDUCE").is_ok(), prompt }
}
use plimsoll::control::message::Message;

#[test]
fn explore() {
    let var = |name: &str, default: u8| std::env::var(name).ok().map_or(default, |text| text.parse().unwrap());
    let offline = var("OFFLINE", 1) == 1;
    let cap = [u32::from(var("C0", 1)), u32::from(var("C1", 1))];
    let wants = [vec![u32::from(var("WA", 1))], vec![u32::from(var("WB", 1))]];
    let mut model = model([true, !offline], cap, wants, var("FAULTS", 1), var("MOVES", 0), var("LOSSY", 0) == 1);
    if let Ok(rule) = std::env::var("WITHOUT") {
        model.setup.rules = Rules::ALL.without(rule.parse::<Rule>().unwrap());
    }
    let until = std::env::var("UNTIL").unwrap_or_default();
    let start = std::time::Instant::now();
    let found = search(&model, &until.split(',').collect::<Vec<_>>());
    println!("{:.2} s, {} states, {} transitions, depth {}, longest {}, rests {}, to rest {}, parts {:?}",
        start.elapsed().as_secs_f64(), found.states, found.transitions, found.depth, found.longest, found.rests, found.to_rest, found.parts);
    println!("{:#?}", found.paths);
    for (invariant, what, way) in &found.violations {
        println!("{invariant}: {what} after {} steps:", way.len());
        way.iter().for_each(|action| println!("    {action:?}"));
    }
}
