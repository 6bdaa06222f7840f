//! The metrics of envy and sharing incentive for a state of a run equal the values that `plimsoll check` computes for the same allocation.

use plimsoll::fair::{Exact, Instance, Tasks, User};
use plimsoll::metrics::{Incentive, UserSnapshot, envy, standings};
use plimsoll::properties::{Case, Judgement, Property, Reading, Requirement, judge};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

struct World {
    capacity: Vec<u64>,
    /// Per user: demand, weight, number of tasks, number of running tasks.
    users: Vec<(Vec<u64>, u64, u64, u64)>,
}

fn world(rng: &mut ChaCha8Rng) -> World {
    let dims = rng.random_range(1..=3);
    let user = |rng: &mut ChaCha8Rng| {
        let mut demand: Vec<u64> = (0..dims).map(|_| rng.random_range(0..5)).collect();
        demand[0] += u64::from(demand.iter().all(|&amount| amount == 0));
        let tasks = rng.random_range(1..12);
        (demand, rng.random_range(1..4), tasks, rng.random_range(0..=tasks))
    };
    let users = (0..rng.random_range(2..=5)).map(|_| user(rng)).collect();
    World { capacity: (0..dims).map(|_| rng.random_range(10..60)).collect(), users }
}

fn judged(world: &World, property: Property) -> Judgement {
    let exact = |values: &[u64]| values.iter().map(|&value| Exact::from(value)).collect::<Vec<_>>();
    let user = |(at, (demand, weight, tasks, _)): (usize, &(Vec<u64>, u64, u64, u64))| User {
        weight: vec![Exact::from(*weight); demand.len()],
        tasks: Some(Exact::from(*tasks)),
        ..User::new(format!("u{at}"), exact(demand))
    };
    let names = (0..world.capacity.len()).map(|r| format!("r{r}")).collect();
    let users = world.users.iter().enumerate().map(user).collect();
    let instance = Instance::new(names, exact(&world.capacity), users).expect("a sound instance");
    let tasks = Tasks::Exact(world.users.iter().map(|(.., running)| Exact::from(*running)).collect());
    let requirement = Requirement { property, reading: Reading::Divisible };
    judge(requirement, &Case { instance: &instance, tasks: &tasks, after: None }).expect("there are users to judge")
}

/// Returns the bundle, the demand and the weights of each user. The bundle and the demand are shares of the capacity.
fn parts(world: &World) -> Vec<[Vec<f64>; 3]> {
    let user = |(demand, weight, _, running): &(Vec<u64>, u64, u64, u64)| {
        let share: Vec<f64> = demand.iter().zip(&world.capacity).map(|(need, c)| *need as f64 / *c as f64).collect();
        let bundle = share.iter().map(|share| share * *running as f64).collect();
        [bundle, share, vec![*weight as f64; demand.len()]]
    };
    world.users.iter().map(user).collect()
}

fn snapshots<'a>(world: &World, parts: &'a [[Vec<f64>; 3]]) -> Vec<UserSnapshot<'a>> {
    let user = |((_, _, tasks, running), [bundle, demand, weight]): (&(Vec<u64>, u64, u64, u64), &'a [Vec<f64>; 3])| {
        UserSnapshot { bundle, demand, weight, tasks: *tasks as f64, backlogged: running < tasks }
    };
    world.users.iter().zip(parts).map(user).collect()
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-9 * (1.0 + wanted.abs()), "{found} is not {wanted}");
}

#[test]
fn the_metric_and_the_check_agree_on_random_states() {
    let mut rng = ChaCha8Rng::seed_from_u64(16);
    let (mut envious, mut unbounded, mut below, mut content) = (0, 0, 0, 0);
    for _ in 0..2000 {
        let world = world(&mut rng);
        let parts = parts(&world);
        let users = snapshots(&world, &parts);
        let check = judged(&world, Property::EnvyFreeness);
        let all = envy(users.iter().copied());
        assert_eq!(check.broken, all.is_some_and(|all| all.count > 0), "{users:?}");
        if check.broken {
            // `check` reports the user that is most envious by its own measure. `envy` is therefore evaluated with only this user
            // backlogged.
            let loser = check.loser.expect("envy has an envious user");
            let alone = users.iter().enumerate();
            let alone = alone.map(|(at, user)| UserSnapshot { backlogged: at == loser, ..*user });
            let alone = envy(alone).expect("one user is backlogged");
            let (worse, better) = (check.worse.float(), check.better.float());
            match worse > 0.0 {
                true => near(alone.max_bounded.expect("the user runs tasks"), better / worse - 1.0),
                false => assert_eq!((alone.unbounded, alone.max_bounded), (1, None)),
            }
            envious += 1;
            unbounded += usize::from(worse == 0.0);
        }
        let check = judged(&world, Property::SharingIncentive);
        let each: Vec<_> = standings(users.iter().copied()).collect();
        assert_eq!(check.broken, Incentive::from_standings(&each).is_some_and(|all| all.below > 0), "{users:?}");
        if check.broken {
            let standing = each[check.loser.expect("a user is below its incentive")].expect("it is backlogged");
            near(standing.ratio, check.worse.float() / check.better.float());
            below += 1;
        }
        content += usize::from(all.is_none_or(|all| all.count == 0));
    }
    let seen = [envious, unbounded, below, content];
    assert!(seen.iter().all(|&cases| cases > 100), "the states are one-sided: {seen:?}");
}
