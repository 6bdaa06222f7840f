//! Tests of bottleneck max fairness: the full definition, an oracle that tries every assignment, and each of the two algorithms alone.

use super::*;
use crate::{Filling, Norm, Number, User};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn instance(capacity: &[u64], demands: &[&[u64]]) -> Instance {
    let numbers = |values: &[u64]| values.iter().map(|&value| Exact::from(value)).collect::<Vec<_>>();
    let users = demands.iter().enumerate().map(|(i, d)| User::new(format!("{}", i + 1), numbers(d))).collect();
    let names = (0..capacity.len()).map(|r| format!("r{r}")).collect();
    Instance::new(names, numbers(capacity), users).expect("a good instance")
}

fn random(rng: &mut ChaCha8Rng) -> Instance {
    let (users, dims) = (rng.random_range(1..=50usize), rng.random_range(1..=6usize));
    let largest = [3, 10, 1000][rng.random_range(0..3usize)];
    let zeros = [0.0, 0.3, 0.7][rng.random_range(0..3usize)];
    let finite = [0.0, 0.5][rng.random_range(0..2usize)];
    let weights = rng.random_range(0..3u32);
    let kinds = rng.random_range(1..=users);
    let capacity = |rng: &mut ChaCha8Rng| if rng.random_bool(0.03) { 0 } else { rng.random_range(1..=100 * largest) };
    let capacities: Vec<Exact> = (0..dims).map(|_| Exact::from(capacity(rng))).collect();
    let mut list: Vec<User> = Vec::new();
    for i in 0..users {
        let draw = |rng: &mut ChaCha8Rng| if rng.random_bool(zeros) { 0 } else { rng.random_range(0..=largest) };
        let demand: Vec<u64> = (0..dims).map(|_| draw(rng)).collect();
        let mut user = User::new(format!("{i}"), demand.iter().map(|&d| Exact::from(d)).collect());
        if i >= kinds {
            user.demand = list[i % kinds].demand.clone();
        }
        if weights > 0 {
            let same = Exact::ratio(rng.random_range(1..=5), rng.random_range(1..=3));
            let differ = |_| if weights == 1 { same.clone() } else { Exact::ratio(rng.random_range(1..=5), 2) };
            user.weight = (0..dims).map(differ).collect();
        }
        if user.demand.iter().all(Number::is_zero) || rng.random_bool(finite) {
            user.tasks = Some(Exact::ratio(rng.random_range(0..=200), rng.random_range(1..=4)));
        }
        list.push(user);
    }
    Instance::new((0..dims).map(|r| format!("r{r}")).collect(), capacities, list).expect("a good instance")
}

/// Returns whether the tasks satisfy the definition, written literally.
fn fair(instance: &Instance, tasks: &[Exact]) -> bool {
    let (users, dims) = (instance.users(), instance.resources().len());
    let held = |i: usize, r: usize| &tasks[i] * &users[i].demand[r];
    let used = |r: usize| (0..users.len()).fold(Exact::ZERO, |sum, i| &sum + &held(i, r));
    let full: Vec<bool> = (0..dims).map(|r| used(r) == instance.capacity()[r]).collect();
    let share = |i: usize, r: usize| &held(i, r) / &users[i].weight[r];
    let largest = |i: usize, r: usize| (0..users.len()).all(|j| share(j, r) <= share(i, r));
    let bottleneck = |i: usize, r: usize| users[i].demand[r].is_positive() && full[r] && largest(i, r);
    (0..dims).all(|r| used(r) <= instance.capacity()[r])
        && (0..users.len()).all(|i| {
            let all = users[i].tasks.as_ref();
            !tasks[i].is_negative()
                && all.is_none_or(|all| tasks[i] <= *all)
                && (all == Some(&tasks[i]) || (0..dims).any(|r| bottleneck(i, r)))
        })
}

fn solved(instance: &Instance) -> Vec<Exact> {
    let allocation = Bmf.allocate(instance).expect("it converges");
    let tasks = allocation.tasks.exact().expect("fractions").to_vec();
    assert_eq!(bmf_limits(instance, &tasks).expect("bottlenecks"), allocation.limits);
    tasks
}

fn texts(tasks: &[Exact]) -> Vec<String> {
    tasks.iter().map(ToString::to_string).collect()
}

/// Derivation: with x + 3y = 9 CPUs and 4x + y = 18 GB used up, the first user has 45/11 CPUs and 180/11 GB, the second 54/11 CPUs and
/// 18/11 GB. The first user has the most memory, the second the most CPUs. (CEEI gives the same allocation for this example.)
#[test]
fn the_example_of_the_drf_paper() {
    let example = instance(&[9, 18], &[&[1, 4], &[3, 1]]);
    assert_eq!(texts(&solved(&example)), ["45/11", "18/11"]);
    let limits = Bmf.allocate(&example).expect("it converges").limits;
    assert_eq!(limits, [Limit::Resource(1), Limit::Resource(0)]);
    let mut users = example.users().to_vec();
    users[0].tasks = Some(Exact::from(2));
    let capped = example.with_users(users).expect("good users");
    assert_eq!(texts(&solved(&capped)), ["2", "7/3"]);
}

#[test]
fn three_resources_may_have_three_answers() {
    let three = instance(&[19, 28, 19], &[&[10, 9, 0], &[9, 10, 9], &[0, 9, 10]]);
    let answers = [[(1, 1), (1, 1), (1, 1)], [(28, 27), (14, 15), (28, 27)], [(19, 20), (19, 18), (19, 20)]];
    let answers = answers.map(|answer| answer.map(|(n, d)| Exact::ratio(n, d)));
    assert!(answers.iter().all(|answer| fair(&three, answer) && bmf_limits(&three, answer).is_some()));
    assert!(!fair(&three, &[Exact::ONE, Exact::ONE, Exact::ratio(1, 2)]));
    // The limits rise until the first and the third resource are used up simultaneously.
    assert_eq!(solved(&three), answers[2]);
}

#[test]
fn what_is_lacking_gives_nothing_and_what_needs_nothing_runs() {
    let lacking = instance(&[0, 6], &[&[1, 1], &[0, 2], &[0, 1]]);
    let mut users = lacking.users().to_vec();
    users.push(User { tasks: Some(Exact::from(7)), ..User::new("4", vec![Exact::ZERO, Exact::ZERO]) });
    users.push(User { tasks: Some(Exact::ZERO), ..User::new("5", vec![Exact::ONE, Exact::ONE]) });
    let lacking = lacking.with_users(users).expect("good users");
    assert_eq!(texts(&solved(&lacking)), ["0", "3/2", "3", "7", "0"]);
    let limits = Bmf.allocate(&lacking).expect("it converges").limits;
    assert_eq!(limits, [Limit::Resource(0), Limit::Resource(1), Limit::Resource(1), Limit::Demand, Limit::Demand]);
}

#[test]
fn thousands_of_instances_keep_the_definition_and_its_promises() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for case in 0..3000 {
        let instance = random(&mut rng);
        let tasks = solved(&instance);
        assert!(fair(&instance, &tasks), "case {case}: {instance:?}");
        let users = instance.users();
        let Some(weights) = users.iter().map(|user| user.one_weight()).collect::<Option<Vec<_>>>() else { continue };
        let total = weights.iter().fold(Exact::ZERO, |sum, weight| &sum + weight);
        for (i, limit) in bmf_limits(&instance, &tasks).expect("fair").into_iter().enumerate() {
            if let Limit::Resource(r) = limit {
                let entitled = &(&instance.capacity()[r] * weights[i]) / &total;
                assert!(&tasks[i] * &users[i].demand[r] >= entitled, "case {case}: user {i} has a fair part");
            }
        }
    }
}

/// Solves every assignment of users to constraints for tasks: shares at a bottleneck are equal and use it up.
fn twin(instance: &Instance) -> Vec<Vec<Exact>> {
    let (users, dims) = (instance.users(), instance.resources().len());
    let (count, width) = (users.len(), users.len() + 1);
    let mut found: Vec<Vec<Exact>> = Vec::new();
    for code in 0..(dims + 1).pow(count as u32) {
        let source: Vec<usize> = (0..count).map(|i| code / (dims + 1).pow(i as u32) % (dims + 1)).collect();
        let mut rows = vec![Exact::ZERO; count * width];
        let possible = (0..count).all(|i| {
            let row = &mut rows[i * width..][..width];
            let r = source[i];
            if r == dims {
                (row[i], row[count]) = (Exact::ONE, users[i].tasks.clone().unwrap_or(Exact::ratio(-1, 1)));
                return users[i].tasks.is_some();
            }
            match (0..i).find(|&j| source[j] == r) {
                Some(j) => {
                    row[i] = &users[i].demand[r] / &users[i].weight[r];
                    row[j] = &Exact::ZERO - &(&users[j].demand[r] / &users[j].weight[r]);
                }
                None => {
                    row[..count].iter_mut().zip(users).for_each(|(entry, user)| *entry = user.demand[r].clone());
                    row[count] = instance.capacity()[r].clone();
                }
            }
            users[i].demand[r].is_positive()
        });
        if let (true, Some(tasks)) = (possible, crate::linear::solve(&mut rows, count))
            && fair(instance, &tasks)
            && !found.contains(&tasks)
        {
            found.push(tasks);
        }
    }
    found
}

#[test]
fn small_grids_agree_with_trying_every_assignment() {
    let amounts = |code: usize, base: usize| [code % base, code / base % base].map(|d| d as u64);
    for code in 0..256 {
        for capacity in [[3, 3], [3, 5], [2, 7]] {
            let (one, two) = (amounts(code % 16, 4), amounts(code / 16, 4));
            if one == [0, 0] || two == [0, 0] {
                continue;
            }
            let endless = instance(&capacity, &[&one, &two]);
            for variant in 0..4 {
                let mut users = endless.users().to_vec();
                users[0].tasks = [None, Some(Exact::ratio(3, 4))][variant % 2].clone();
                users[1].weight = [vec![Exact::ONE; 2], vec![Exact::from(2); 2]][variant / 2].clone();
                let instance = endless.with_users(users).expect("good users");
                assert_eq!(twin(&instance), [solved(&instance)], "{instance:?}");
            }
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut several = 0;
    for _ in 0..1000 {
        let mut draw = |least: u64, most: u64| rng.random_range(least..=most);
        let demands: Vec<[u64; 3]> = (0..3).map(|_| [draw(1, 6), draw(0, 6), draw(0, 6)]).collect();
        let demands: Vec<&[u64]> = demands.iter().map(|demand| demand.as_slice()).collect();
        let three = instance(&[draw(5, 15), draw(5, 15), draw(5, 15)], &demands);
        let answers = twin(&three);
        assert!(answers.contains(&solved(&three)), "{three:?}");
        several += usize::from(answers.len() > 1);
    }
    assert!(several < 50, "{several} of 1000 have several answers");
}

#[test]
fn wild_magnitudes_come_out_as_fractions() {
    let mut rng = ChaCha8Rng::seed_from_u64(77);
    for case in 0..200 {
        let (users, dims) = (rng.random_range(1..=20usize), rng.random_range(1..=6usize));
        let mut wild = || {
            let power = 10f64.powi(rng.random_range(-9..=9));
            Exact::decimal(f64::from(rng.random_range(1..100u8)) * power).expect("finite")
        };
        let mut user = |i: usize| User {
            weight: if case % 2 == 0 { vec![wild(); dims] } else { (0..dims).map(|_| wild()).collect() },
            tasks: i.is_multiple_of(3).then(&mut wild),
            ..User::new(format!("{i}"), (0..dims).map(|_| wild()).collect())
        };
        let list = (0..users).map(&mut user).collect();
        let names = (0..dims).map(|r| format!("r{r}")).collect();
        let instance = Instance::new(names, vec![Exact::from(1000); dims], list).expect("a good instance");
        assert!(fair(&instance, &solved(&instance)), "{instance:?}");
    }
}

#[test]
fn of_one_resource_it_is_weighted_max_min() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut tried = 0;
    while tried < 300 {
        let instance = random(&mut rng);
        if instance.resources().len() == 1 {
            let filled = Filling { norm: Norm::Single(0) }.allocate(&instance).expect("a filling ends");
            assert_eq!(filled.tasks.exact().expect("fractions"), solved(&instance));
            tried += 1;
        }
    }
}

#[test]
fn units_do_not_matter() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for _ in 0..300 {
        let instance = random(&mut rng);
        let mut scale = || Exact::ratio(1 << rng.random_range(0..8u32), 1 << rng.random_range(0..8u32));
        let by_resource: Vec<Exact> = instance.capacity().iter().map(|_| scale()).collect();
        let by_user: Vec<Exact> = instance.users().iter().map(|_| scale()).collect();
        let scaled = |amounts: &[Exact]| amounts.iter().zip(&by_resource).map(|(a, b)| a * b).collect::<Vec<_>>();
        let user = |(user, by): (&User, &Exact)| User {
            demand: scaled(&user.demand).iter().map(|demand| demand * by).collect(),
            tasks: user.tasks.as_ref().map(|tasks| tasks / by),
            ..user.clone()
        };
        let users = instance.users().iter().zip(&by_user).map(user).collect();
        let other = Instance::new(instance.resources().to_vec(), scaled(instance.capacity()), users).expect("good");
        let back: Vec<Exact> = solved(&other).iter().zip(&by_user).map(|(tasks, by)| tasks * by).collect();
        assert_eq!(back, solved(&instance));
    }
}

/// Tests each algorithm alone, so that one does not hide the failures of the other.
#[test]
fn the_path_always_arrives_and_newtons_method_nearly() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut failed = 0;
    for case in 0..3000 {
        let instance = random(&mut rng);
        let shape = Shape::of_instance(&instance);
        let (mut by_path, mut by_newton) = (Position::default(), Position::default());
        let (mut levels, pieces) = path::follow(&shape).expect("the path ends");
        assert!(pieces <= 3 * (shape.users + 5), "case {case}: {pieces} pieces");
        newton::search(&shape, &mut levels, &mut by_path);
        assert!(shape.residual(&by_path.units) <= TOLERANCE, "case {case}");
        if newton::search(&shape, &mut newton::start(&shape), &mut by_newton).is_none() {
            failed += 1;
        } else if shape.dims <= 2 && instance.users().iter().all(|user| user.one_weight().is_some()) {
            let pairs = || by_path.units.iter().zip(&by_newton.units);
            assert!(pairs().all(|(a, b)| (a - b).abs() <= 1e-7), "case {case}: one answer");
        }
    }
    assert!(failed <= 15, "Newton's method failed {failed} times");
}

fn problem(rng: &mut ChaCha8Rng, users: usize, dims: usize) -> Problem {
    let demand = (0..users * dims).map(|_| rng.random_range(0.0..1.0f64).powi(3) * 10.0 / users as f64).collect();
    let weight = (0..users).map(|_| f64::from(rng.random_range(1..=4u8))).collect();
    let tasks = (0..users).map(|_| [f64::INFINITY, rng.random_range(0.1..3.0)][rng.random_range(0..2usize)]).collect();
    Problem::new(dims, demand, weight, tasks)
}

#[test]
fn large_and_changing_problems_are_certified() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut solver = BmfSolver::default();
    for (users, dims) in [(100, 4), (99, 4), (100, 4), (20_000, 8), (20_000, 8), (30, 1), (1, 8), (5000, 2)] {
        let problem = problem(&mut rng, users, dims);
        let warm = solver.solve(&problem).expect("it converges");
        let cold = BmfSolver::default().solve(&problem).expect("it converges");
        for solution in [&warm, &cold] {
            assert!(solution.certificate.residual <= TOLERANCE);
            let used = |r: usize| problem.column(r).iter().zip(&solution.tasks).map(|(d, x)| d * x).sum::<f64>();
            assert!((0..dims).all(|r| used(r) <= 1.0 + TOLERANCE));
        }
        if dims <= 2 {
            assert!(warm.tasks.iter().zip(&cold.tasks).all(|(a, b)| (a - b).abs() <= 1e-7 * b));
        }
    }
    let empty = Problem::new(2, Vec::new(), Vec::new(), Vec::new());
    assert_eq!(solver.solve(&empty).expect("nobody").tasks, [0.0; 0]);
}

/// Users join and leave, with small whole demands: there are many ties, and resources become dominated by others.
#[test]
fn small_changes_take_few_steps() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let (users, dims) = (40, 3);
    let demand: Vec<f64> = (0..users * dims).map(|k| f64::from(rng.random_range(u8::from(k < users)..=3))).collect();
    let mut tasks = vec![f64::INFINITY; users];
    let mut solver = BmfSolver::default();
    let mut steps = 0;
    for _ in 0..500 {
        let user = rng.random_range(0..users);
        tasks[user] = if tasks[user] == 0.0 { f64::INFINITY } else { 0.0 };
        let problem = Problem::new(dims, demand.clone(), vec![1.0; users], tasks.clone());
        let solution = solver.solve(&problem).expect("it converges");
        assert!(solution.certificate.residual <= TOLERANCE);
        steps += solution.steps;
    }
    assert!(steps < 500 * 5, "{steps} steps for 500 changes");
}

#[test]
fn beyond_the_size_of_fractions_floats_carry_a_certificate() {
    let demands: Vec<[u64; 2]> = (0..600).map(|i| [1 + i % 7, 1 + i % 11]).collect();
    let demands: Vec<&[u64]> = demands.iter().map(|demand| demand.as_slice()).collect();
    let allocation = Bmf.allocate(&instance(&[900, 1000], &demands)).expect("it converges");
    assert!(matches!(allocation.tasks, Tasks::Float(_)));
    assert!(allocation.certificate.expect("a certificate").residual <= TOLERANCE);
    assert!(allocation.limits.iter().all(|limit| matches!(limit, Limit::Resource(_))));
}
