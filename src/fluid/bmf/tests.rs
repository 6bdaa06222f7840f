use super::*;
use crate::fluid::User;
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

#[test]
fn statistics() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut fractions, mut floats, mut fails) = (0, 0, 0);
    for k in 0..5000 {
        let instance = random(&mut rng);
        match Bmf.allocate(&instance) {
            Ok(a) if a.tasks.exact().is_some() => fractions += 1,
            Ok(a) => {
                floats += 1;
                println!("float {k} n {} m {} {:?}", instance.users().len(), instance.resources().len(), a.certificate)
            }
            Err(e) => {
                fails += 1;
                println!("{k} n {} m {} {e}", instance.users().len(), instance.resources().len())
            }
        }
    }
    println!("{fractions} {floats} {fails}");
}
