//! Progressive filling: the levels of all users rise together until a resource is used up or a user runs all its tasks.
//!
//! One loop serves the whole max-min family (DRF, asset fairness, p-norms, one resource); the members differ in the level only. It is the
//! readable reference implementation of [`levels`](super::levels). With zero demands, the filling continues after the first resource is
//! used up, for the users that do not need it (Parkes, Procaccia and Shah, EC 2012).

use super::{
    Allocation, Certificate, Exact, Instance, Levels, Limit, Mechanism, Norm, Number, Problem, TOLERANCE, Tasks, User,
};
use plimsoll_base::error::{Error, Result};

/// The result of a filling. Entries follow the users.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled<N> {
    /// The number of tasks that each user runs.
    pub tasks: Vec<N>,
    /// The constraint that stopped each user.
    pub limits: Vec<Limit>,
}

/// Fills the stages in order. In each stage the users that it lists rise from 0 at their rates (tasks per unit of level, above 0).
///
/// `demand[i][r]` and `capacity[r]` are in the same unit; `caps[i]` is the number of tasks of user `i`. A user receives nothing if a
/// resource that it needs is used up when its stage begins. Users that no stage lists do not rise; their limit is `Demand`. Cost: O((users
/// + resources) · users · resources). The result is exact if `N` is.
pub fn fill<N: Number>(capacity: &[N], demand: &[Vec<N>], caps: &[Option<N>], stages: &[Vec<(usize, N)>]) -> Filled<N> {
    let mut left = capacity.to_vec();
    let mut used_up: Vec<bool> = capacity.iter().map(Number::is_zero).collect();
    let mut filled = Filled { tasks: vec![N::zero(); demand.len()], limits: vec![Limit::Demand; demand.len()] };
    for stage in stages {
        let mut level = N::zero();
        let mut rising: Vec<&(usize, N)> = stage.iter().collect();
        loop {
            rising.retain(|(user, _)| {
                let stopped = (0..capacity.len()).find(|&r| used_up[r] && !demand[*user][r].is_zero());
                if let Some(r) = stopped {
                    filled.limits[*user] = Limit::Resource(r);
                }
                stopped.is_none() && caps[*user].as_ref().is_none_or(|cap| filled.tasks[*user] < *cap)
            });
            if rising.is_empty() {
                break;
            }
            let speed: Vec<N> = (0..capacity.len())
                .map(|r| rising.iter().fold(N::zero(), |sum, (user, rate)| sum.plus(&rate.times(&demand[*user][r]))))
                .collect();
            let until_used_up = (0..capacity.len()).filter(|&r| !speed[r].is_zero()).map(|r| left[r].over(&speed[r]));
            let until_full =
                rising.iter().filter_map(|(user, rate)| caps[*user].as_ref().map(|cap| cap.over(rate).minus(&level)));
            let Some(step) = least(until_used_up.chain(until_full)) else { break };
            level = level.plus(&step);
            for (user, rate) in &rising {
                let reached = level.times(rate);
                filled.tasks[*user] = match &caps[*user] {
                    // Compares levels rather than products: in floats, the product may stay slightly below the cap.
                    Some(cap) if cap.over(rate) <= level => cap.clone(),
                    _ => reached,
                };
            }
            for r in 0..capacity.len() {
                let taken = step.times(&speed[r]);
                let rest = left[r].minus(&taken);
                if !speed[r].is_zero() && rest <= capacity[r].times(&N::slack()) {
                    used_up[r] = true;
                }
                left[r] = if rest < N::zero() { N::zero() } else { rest };
            }
        }
    }
    filled
}

fn least<N: Number>(values: impl Iterator<Item = N>) -> Option<N> {
    values.reduce(|least, value| if value < least { value } else { least })
}

/// Max-min fairness of a norm of users' weighted shares, with finite demand and zero demands.
///
/// Results for up to 256 users are fractions if the norm is rational. Larger results are certified floats, computed by [`Levels`] if each
/// user has one weight. A user has a norm of 0 if the norm counts one resource only and the user does not need it. Such users are served
/// first, as in the simulation. This solver gives them equal dominant shares, whereas in the simulation they are tied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filling {
    /// The norm that is raised.
    pub norm: Norm,
}

/// The number of users above which fractions become too long: a level is a sum with one term per user, on a common denominator.
const EXACT_USERS: usize = 256;

impl Mechanism for Filling {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let small = instance.users().len() <= EXACT_USERS;
        if small && let Some(filled) = self.exact(instance) {
            let tasks = Tasks::Exact(filled.tasks);
            return Ok(Allocation::new(tasks, filled.limits));
        }
        if !small && let Ok(problem) = Problem::from_instance(instance) {
            let mut levels = Levels::new();
            levels.norm(&problem, self.norm)?;
            let limit = |(i, user)| instance.lacking(user).map_or(levels.limit(i), Limit::Resource);
            let limits = instance.users().iter().enumerate().map(limit).collect();
            let certificate = Some(levels.certificate());
            return Ok(Allocation { certificate, ..Allocation::new(Tasks::Float(levels.tasks().to_vec()), limits) });
        }
        let length = |norm: &Norm, user: &User| norm.float(weighted_shares(instance, user).into_iter());
        let filled = self.filled::<f64>(instance, length);
        let residual = self.residual(instance, &filled);
        if residual > TOLERANCE {
            let problem = format!("the filling is off by {residual:e} of a capacity or a level");
            return Err(Error::NotConverged { solver: "max-min filling".to_owned(), problem });
        }
        let certificate = Some(Certificate { residual, gap: 0.0 });
        Ok(Allocation { certificate, ..Allocation::new(Tasks::Float(filled.tasks), filled.limits) })
    }
}

impl Filling {
    /// Computes the filling in fractions. Returns `None` for a norm that is not rational.
    fn exact(&self, instance: &Instance) -> Option<Filled<Exact>> {
        if let Norm::Power(_) = self.norm {
            return None;
        }
        Some(self.filled(instance, |norm, user| norm.exact(instance, user).expect("all norms but powers are exact")))
    }

    fn filled<N: Number>(&self, instance: &Instance, length: impl Fn(&Norm, &User) -> N) -> Filled<N> {
        let users = instance.users();
        let numbers = |values: &[Exact]| values.iter().map(N::from_exact).collect::<Vec<N>>();
        let demand: Vec<Vec<N>> = users.iter().map(|user| numbers(&user.demand)).collect();
        let caps: Vec<Option<N>> = users.iter().map(|user| user.tasks.as_ref().map(N::from_exact)).collect();
        let (mut first, mut second, mut lacking) = (Vec::new(), Vec::new(), Vec::new());
        for (i, user) in users.iter().enumerate() {
            if let Some(r) = instance.lacking(user) {
                lacking.push((i, r));
                continue;
            }
            let one = N::from_exact(&Exact::ONE);
            let (norm, dominant) = (length(&self.norm, user), length(&Norm::Largest, user));
            match (norm.is_zero(), dominant.is_zero()) {
                (false, _) => second.push((i, one.over(&norm))),
                (true, false) => first.push((i, one.over(&dominant))),
                // It needs no resource and has a finite number of tasks, so any rate suffices.
                (true, true) => second.push((i, one)),
            }
        }
        let mut filled = fill(&numbers(instance.capacity()), &demand, &caps, &[first, second]);
        for (i, r) in lacking.into_iter().filter(|(i, _)| caps[*i].as_ref().is_none_or(|cap| !cap.is_zero())) {
            filled.limits[i] = Limit::Resource(r);
        }
        filled
    }

    /// Returns the deviation of a filling from max-min fairness, relative to capacities and levels. It is the maximum of the overfill of
    /// any resource, and of the distance of any user from the nearest constraint that could stop it.
    ///
    /// A user is stopped correctly in two cases. Either it runs all its tasks, or a resource that it needs is used up and no user of this
    /// resource has a higher level (Bertsekas and Gallager, Data Networks, 6.5.2).
    fn residual(&self, instance: &Instance, filled: &Filled<f64>) -> f64 {
        let users = instance.users();
        let dims = instance.resources().len();
        let mut used = vec![0.0; dims];
        let mut highest = vec![0.0f64; dims];
        let level: Vec<f64> = users
            .iter()
            .zip(&filled.tasks)
            .map(|(user, tasks)| tasks * self.norm.float(weighted_shares(instance, user).into_iter()))
            .collect();
        for ((user, tasks), level) in users.iter().zip(&filled.tasks).zip(&level) {
            for r in (0..dims).filter(|&r| user.demand[r].is_positive() && !instance.capacity()[r].is_zero()) {
                used[r] += (&user.demand[r] / &instance.capacity()[r]).to_f64() * tasks;
                highest[r] = highest[r].max(*level);
            }
        }
        let overfull = used.iter().map(|used| used - 1.0).fold(0.0, f64::max);
        let off = |(i, user): (usize, &User)| {
            if instance.lacking(user).is_some() {
                return filled.tasks[i];
            }
            let demand = user.tasks.as_ref().map_or(f64::INFINITY, |tasks| match tasks.to_f64() {
                0.0 => filled.tasks[i],
                tasks => (tasks - filled.tasks[i]).abs() / tasks,
            });
            let needed = (0..dims).filter(|&r| user.demand[r].is_positive());
            let at =
                needed.map(|r| (1.0 - used[r]).abs().max(1.0 - level[i] / highest[r])).fold(f64::INFINITY, f64::min);
            demand.min(at)
        };
        users.iter().enumerate().map(off).fold(overfull, f64::max)
    }
}

/// Returns the shares `d_r / (c_r w_r)` of a task, without resources of capacity 0.
pub(super) fn weighted_shares(instance: &Instance, user: &User) -> Vec<f64> {
    let capacity = instance.capacity();
    let counted = (0..capacity.len()).filter(|&r| !capacity[r].is_zero());
    counted.map(|r| (&user.demand[r] / &(&capacity[r] * &user.weight[r])).to_f64()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(capacity: [u64; 2], demands: &[[u64; 2]]) -> Instance {
        let numbers = |values: &[u64]| values.iter().map(|&value| Exact::from(value)).collect::<Vec<_>>();
        let users = demands.iter().enumerate().map(|(i, d)| User::new(format!("{}", i + 1), numbers(d))).collect();
        Instance::new(vec!["cpu".into(), "memory".into()], numbers(&capacity), users).expect("a good instance")
    }

    fn tasks(norm: Norm, instance: &Instance) -> Vec<String> {
        let allocation = Filling { norm }.allocate(instance).expect("a filling ends");
        allocation.tasks.exact().expect("a fraction").iter().map(ToString::to_string).collect()
    }

    /// Examples of Ghodsi et al., NSDI 2011, 4.1, 5.1, theorems 1 to 3 and 5 (DRF).
    #[test]
    fn the_papers_examples_come_out_as_fractions() {
        let example = two([9, 18], &[[1, 4], [3, 1]]);
        assert_eq!(tasks(Norm::Largest, &example), ["3", "2"]);
        assert_eq!(tasks(Norm::Sum, &example), ["63/25", "54/25"]);
        assert_eq!(tasks(Norm::Sum, &two([30, 30], &[[1, 3], [1, 1]])), ["6", "12"]);
        assert_eq!(tasks(Norm::Largest, &two([30, 30], &[[1, 3], [1, 1]])), ["5", "15"]);
        assert_eq!(tasks(Norm::Sum, &two([21, 21], &[[3, 2], [4, 1]])), ["3", "3"]);
        assert_eq!(tasks(Norm::Sum, &two([77, 77], &[[4, 2], [1, 1]])), ["11", "33"]);
        assert_eq!(tasks(Norm::Sum, &two([77, 154], &[[4, 2], [1, 1]])), ["21/2", "35"]);
        let third = two([100, 100], &[[4, 1], [1, 16], [16, 1]]);
        assert_eq!(tasks(Norm::Largest, &third), ["400/33", "100/33", "100/33"]);
    }

    #[test]
    fn filling_goes_on_past_the_first_resource_and_stops_at_demand() {
        let mut demands = vec![[1, 0]];
        demands.extend([[0, 1]; 9]);
        let mut expected = vec!["90".to_owned()];
        expected.extend(vec!["10".to_owned(); 9]);
        assert_eq!(tasks(Norm::Largest, &two([90, 90], &demands)), expected);
        let example = two([9, 18], &[[1, 4], [3, 1]]);
        let mut users = example.users().to_vec();
        users[1].tasks = Some(Exact::ONE);
        let capped = example.with_users(users).expect("good users");
        assert_eq!(tasks(Norm::Largest, &capped), ["17/4", "1"]);
        let allocation = Filling { norm: Norm::Largest }.allocate(&capped).expect("a filling ends");
        assert_eq!(allocation.limits, [Limit::Resource(1), Limit::Demand]);
    }

    #[test]
    fn large_instances_come_out_as_certified_floats() {
        let numbers = |values: [u64; 2]| values.map(Exact::from).to_vec();
        let mut users: Vec<User> = (0..300u64).map(|i| User::new(i.to_string(), numbers([i % 7, i % 5 + 1]))).collect();
        users.iter_mut().step_by(3).for_each(|user| user.tasks = Some(Exact::from(2)));
        let instance = Instance::new(vec!["cpu".into(), "memory".into()], numbers([5000, 3000]), users);
        let instance = instance.expect("a good instance");
        let mut weighted = instance.users().to_vec();
        weighted[7].weight[1] = Exact::from(3);
        let weighted = instance.with_users(weighted).expect("good users");
        for (instance, norm) in [(&instance, Norm::Largest), (&instance, Norm::Single(0)), (&weighted, Norm::Sum)] {
            let filling = Filling { norm };
            let exact = filling.exact(instance).expect("a norm with fractions");
            let allocation = filling.allocate(instance).expect("a filling ends");
            assert!(allocation.certificate.expect("floats").residual <= TOLERANCE);
            for (found, exact) in allocation.tasks.floats().iter().zip(&exact.tasks) {
                assert!((found - exact.to_f64()).abs() <= 1e-9 * exact.to_f64(), "{norm:?}: {found} {exact}");
            }
        }
    }

    #[test]
    fn powers_lie_between_and_certify_themselves() {
        let example = two([9, 18], &[[1, 4], [3, 1]]);
        let at = |p: f64| Filling { norm: Norm::power(p).expect("at least 1") }.allocate(&example).expect("it ends");
        assert!(at(2.0).certificate.expect("a certificate").residual < 1e-12);
        let near = |p: f64, x: f64| assert!((at(p).tasks.floats()[0] - x).abs() < 1e-2, "{p}");
        near(1.001, 2.52);
        near(200.0, 3.0);
    }
}
