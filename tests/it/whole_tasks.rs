//! Compares the service of whole tasks with a loop that examines every user before each task, and bounds the differences between users.

use plimsoll::fair::{
    Exact, FillingRoom, Instance, Machines, Mechanism, Norm, OnBlocked, ServingKey, Slots, Ties, User, WholeTasks,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn draw(rng: &mut ChaCha8Rng) -> Instance {
    let dims = rng.random_range(1..4);
    let capacity: Vec<Exact> = (0..dims).map(|_| Exact::from(rng.random_range(0..60))).collect();
    let zeros = [0.0, 0.4][rng.random_range(0..2)];
    let user = |i: usize| {
        let mut amount = |_| Exact::ratio(if rng.random_bool(zeros) { 0 } else { rng.random_range(1..9) }, 2);
        let mut demand: Vec<Exact> = (0..dims).map(&mut amount).collect();
        demand[i % dims] = Exact::from(rng.random_range(1..6));
        let weight = vec![Exact::ratio(rng.random_range(1..4), 2); dims];
        let tasks = rng.random_bool(0.4).then(|| Exact::ratio(rng.random_range(0..20), 2));
        User { weight, tasks, ..User::new(format!("user {i}"), demand) }
    };
    let users: Vec<User> = (0..6).map(user).collect();
    Instance::new((0..dims).map(|r| format!("resource {r}")).collect(), capacity, users).expect("a good instance")
}

/// Returns the rank of a user with `tasks` running tasks: the stage, then the key.
fn standing(order: &ServingKey, instance: &Instance, i: usize, tasks: u64) -> (bool, Exact) {
    let user = &instance.users()[i];
    let norm = |norm: &Norm, tasks: u64| {
        let counted = |&r: &usize| instance.capacity()[r] != Exact::ZERO;
        let share = |r: usize| {
            let held = &Exact::from(tasks) * &user.demand[r];
            &held / &(&instance.capacity()[r] * &user.weight[r])
        };
        let shares = (0..user.demand.len()).filter(counted);
        match norm {
            Norm::Largest => shares.map(share).max().unwrap_or(Exact::ZERO),
            Norm::Single(one) => shares.filter(|r| r == one).map(share).next().unwrap_or(Exact::ZERO),
            _ => shares.map(share).fold(Exact::ZERO, |sum, share| &sum + &share),
        }
    };
    let ahead = tasks + u64::from(matches!(order, ServingKey::After(_)));
    match order {
        ServingKey::Before(by) | ServingKey::After(by) => match norm(by, 1) == Exact::ZERO {
            true => (false, norm(&Norm::Largest, ahead)),
            false => (true, norm(by, ahead)),
        },
        _ => (true, &Exact::from(tasks) / &user.weight[0]),
    }
}

/// Returns whether one task of a user fits the whole capacity. A user with larger tasks is never served.
fn fits_alone(instance: &Instance, i: usize) -> bool {
    instance.users()[i].demand.iter().zip(instance.capacity()).all(|(demand, capacity)| demand <= capacity)
}

/// Returns the user of each started task, in order, by a loop that examines every user and the whole allocation again before each task.
fn rescan(whole: &WholeTasks, instance: &Instance) -> Vec<usize> {
    let users = instance.users();
    let (mut out, mut log) = (vec![false; users.len()], Vec::new());
    loop {
        let count = |i: usize| log.iter().filter(|&&user| user == i).count() as u64;
        let wants = |i: usize| users[i].tasks.as_ref().is_none_or(|all| Exact::from(count(i) + 1) <= *all);
        let fits_alone =
            |i: usize| (0..instance.capacity().len()).all(|r| users[i].demand[r] <= instance.capacity()[r]);
        let served = |i: usize| {
            instance.lacking(&users[i]).is_none() && (matches!(whole.order, ServingKey::Slots(_)) || fits_alone(i))
        };
        let open = (0..users.len()).filter(|&i| !out[i] && served(i) && wants(i));
        let mut open: Vec<usize> = open.collect();
        match whole.ties {
            Ties::LeastRecentlyServed => open.sort_by_key(|&i| log.iter().rposition(|&user| user == i)),
            Ties::LowestId => {}
            Ties::HighestId => open.reverse(),
        }
        // `min_by_key` returns the first of several equal users.
        let Some(next) = open.into_iter().min_by_key(|&i| standing(&whole.order, instance, i, count(i))) else {
            break;
        };
        log.push(next);
        let held = |r: usize| log.iter().fold(Exact::ZERO, |sum, &i| &sum + &users[i].demand[r]);
        let fits = match &whole.order {
            ServingKey::Slots(slots) => log.len() as u64 <= u64::from(slots.per_machine) * instance.machine_count(),
            _ => (0..instance.capacity().len()).all(|r| held(r) <= instance.capacity()[r]),
        };
        if !fits {
            log.pop();
            if whole.on_blocked == OnBlocked::Stop {
                break;
            }
            out[next] = true;
        }
    }
    log
}

#[test]
fn the_line_serves_as_a_rescan_of_everybody_does() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut decisions = 0;
    for case in 0..3000 {
        let instance = draw(&mut rng);
        let norm = [Norm::Largest, Norm::Sum, Norm::Single(0)][rng.random_range(0..3)];
        let order = match rng.random_range(0..3) {
            0 => ServingKey::Before(norm),
            1 => ServingKey::After(norm),
            _ => ServingKey::Slots(Slots { per_machine: rng.random_range(1..30) }),
        };
        let on_blocked = [OnBlocked::Skip, OnBlocked::Stop][rng.random_range(0..2)];
        let ties = Ties::ALL[rng.random_range(0..Ties::ALL.len())].1;
        let whole = WholeTasks { order, on_blocked, ties, onto: FillingRoom::Pool };
        let log = whole.decisions(&instance).expect("it ends");
        assert_eq!(log, rescan(&whole, &instance), "case {case}: {instance:?}");
        decisions += log.len();
    }
    assert!(decisions > 20_000, "only {decisions} tasks were served");
}

/// Returns a mechanism that serves by a norm until the first user is blocked.
fn before(norm: Norm, onto: FillingRoom) -> WholeTasks {
    WholeTasks { order: ServingKey::Before(norm), on_blocked: OnBlocked::Stop, ties: Ties::LowestId, onto }
}

/// Returns the level that one task adds to its user.
fn level_of_a_task(norm: Norm, instance: &Instance, user: &User) -> f64 {
    let share = |r: usize| match &instance.capacity()[r] * &user.weight[r] {
        none if none == Exact::ZERO => 0.0,
        capacity => (&user.demand[r] / &capacity).to_f64(),
    };
    norm.float((0..user.demand.len()).map(share))
}

/// Under any norm and at any time, every user is at most one task above any user that may still rise. (In the divisible solution the levels
/// of users that are not blocked are equal.)
#[test]
fn levels_differ_by_one_task_among_users_that_are_not_blocked() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let mut compared = 0;
    for case in 0..1000 {
        let instance = draw(&mut rng);
        let norm = [Norm::Largest, Norm::Sum, Norm::Power(3.0)][case % 3];
        let drf = before(norm, FillingRoom::Pool);
        let log = drf.decisions(&instance).expect("it ends");
        let units: Vec<f64> = instance.users().iter().map(|user| level_of_a_task(norm, &instance, user)).collect();
        let mut tasks = vec![0; units.len()];
        for next in log.iter().map(Some).chain([None]) {
            let level = |i: usize| units[i] * tasks[i] as f64;
            let rising = |i: &usize| {
                let user = &instance.users()[*i];
                let all = user.tasks.as_ref().map_or(f64::INFINITY, Exact::to_f64);
                (tasks[*i] + 1) as f64 <= all && fits_alone(&instance, *i)
            };
            for high in 0..units.len() {
                for low in (0..units.len()).filter(rising) {
                    let bound = level(low) + units[high] * (1.0 + 1e-9);
                    assert!(level(high) <= bound, "case {case}: {high} is far above {low}");
                    compared += 1;
                }
            }
            next.into_iter().for_each(|&next| tasks[next] += 1);
        }
    }
    assert!(compared > 50_000, "only {compared} pairs were compared");
}

/// Ghodsi et al., NSDI 2011, theorem 7: on machines that are each larger than any task, users that need every resource and have unlimited
/// tasks end within one task of each other.
#[test]
fn theorem_7_holds_machine_by_machine() {
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    let mut several = 0;
    for case in 0..500 {
        let machine = |rng: &mut ChaCha8Rng| (0..2).map(|_| Exact::from(rng.random_range(9..40))).collect::<Vec<_>>();
        let group = |at: usize, rng: &mut ChaCha8Rng| Machines {
            name: format!("m{at}"),
            count: rng.random_range(1..5),
            capacity: machine(rng),
        };
        let machines: Vec<Machines> = (0..3).map(|at| group(at, &mut rng)).collect();
        let demand = |rng: &mut ChaCha8Rng| (0..2).map(|_| Exact::from(rng.random_range(1..10))).collect();
        let count = rng.random_range(1..6);
        let users = (0..count).map(|i| User::new(format!("user {i}"), demand(&mut rng))).collect();
        let names = vec!["cpu".to_owned(), "memory".to_owned()];
        let instance = Instance::on_machines(names, machines, users).expect("a good instance");
        let whole = before(Norm::Largest, FillingRoom::EachMachine);
        let tasks = whole.allocate(&instance).expect("it ends").tasks.floats();
        let unit: Vec<f64> =
            instance.users().iter().map(|user| level_of_a_task(Norm::Largest, &instance, user)).collect();
        let level: Vec<f64> = tasks.iter().zip(&unit).map(|(tasks, unit)| tasks * unit).collect();
        for high in 0..level.len() {
            let least = level.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(level[high] <= least + unit[high] * (1.0 + 1e-9), "case {case}: {level:?} with tasks of {unit:?}");
        }
        // Each machine has room for a task of any user, so at least one task runs per machine.
        let machines = instance.machine_count();
        assert!(tasks.iter().sum::<f64>() >= machines as f64, "case {case}: {tasks:?} on {machines} machines");
        several += usize::from(tasks.iter().sum::<f64>() > 3.0 * machines as f64);
    }
    assert!(several > 100, "only {several} cases had several tasks a machine");
}
