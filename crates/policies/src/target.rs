//! Target policies: solve for the fair allocation of divisible tasks, then serve the user furthest below its target.
//!
//! Targets are the numbers of tasks that a fluid solver gives the *active* users, which have running or waiting tasks. The solver uses the
//! mean demand of a user's running and waiting tasks, and limits its target to their number. Targets are solved in [`Policy::prepare`] as
//! [`Resolve`] requires. The rank is running / target, with targets rounded to 2^-24 of a task so that ranks are computed by integer
//! division; users without running tasks are first. Deviations of a user's tasks from their mean demand are not modelled, so a launch may
//! exceed the amounts of the target.

use super::{Capabilities, Needs, Policy, Queue, Rank, Resolve, Setup, Stale};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Time, UserId};
use plimsoll_base::visit_values;
use plimsoll_fair::Problem;
use plimsoll_sim::books::{Books, WEIGHT_ONE};

/// A solver for the number of tasks that each user of a problem should run.
pub trait TargetSolver: Send {
    /// Returns whether [`TargetSolver::visit`] visits all of its state.
    fn has_checkpoints(&self) -> bool {
        false
    }

    /// Visits its state, as [`Checkpoint::visit`].
    fn visit(&mut self, _visitor: &mut Visitor) -> Result<()> {
        Ok(())
    }

    /// Appends the number of tasks of each user to `targets`, which is empty. Errors: [`Error::NotConverged`].
    fn solve(&mut self, problem: &Problem, targets: &mut Vec<f64>) -> Result<()>;
}

/// Serves the user with the lowest running / target.
///
/// Cost: O(1) per rank; O(active users · resources) plus the cost of the solver when targets are solved, O(changed users) otherwise. A user
/// must have one weight for all resources.
pub struct Target<S> {
    solver: S,
    resolve: Resolve,
    users: Vec<SolvedTarget>,
    active: Vec<UserId>,
    targets: Vec<f64>,
    /// Whether a relevant change has occurred since the targets were solved.
    stale: bool,
    solved: Option<Time>,
}

/// The state of a user when the current targets were solved.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct SolvedTarget {
    /// The position among the active users, from 1; 0 if the user is not active.
    place: u32,
    /// The target in steps of 2^-24 of a task; 0 for a user that became active after the targets were solved.
    target: u64,
    tasks: u64,
    wanted: Vec<u128>,
}

/// The number of steps of a target per task.
const STEPS: u64 = 1 << 24;

impl<S: TargetSolver> Target<S> {
    /// Creates the policy. Errors: [`Error::Policy`] when weights differ by resource.
    pub fn new(name: &str, setup: &Setup, solver: S, resolve: Resolve) -> Result<Target<S>> {
        let weights = setup.weights;
        if (0..weights.classes()).any(|class| weights.uniform(class).is_none()) {
            let expected = "one weight per user (a column 'weight'): its targets are not defined for others";
            return Err(Error::policy(name, "weights by resource", expected));
        }
        Ok(Target {
            solver,
            resolve,
            users: Vec::new(),
            active: Vec::new(),
            targets: Vec::new(),
            stale: false,
            solved: None,
        })
    }

    /// Adds a user to the active users or removes it; returns whether the set of active users changed.
    fn set_active(&mut self, user: UserId, active: bool) -> bool {
        let place = self.users[user.index()].place;
        match (active, place) {
            (true, 0) => {
                self.active.push(user);
                self.users[user.index()].place = self.active.len() as u32;
                self.users[user.index()].target = 0;
            }
            (false, 1..) => {
                self.active.swap_remove(place as usize - 1);
                if let Some(moved) = self.active.get(place as usize - 1) {
                    self.users[moved.index()].place = place;
                }
                self.users[user.index()].place = 0;
            }
            _ => return false,
        }
        true
    }

    /// Returns whether a change of an active user's demand may change any target.
    fn matters(&self, user: UserId, books: &Books) -> bool {
        let known = &self.users[user.index()];
        let tasks = books.running(user) + books.waiting(user);
        if let Resolve::Tolerance(tolerance) = self.resolve {
            let far = |now: f64, then: f64| (now - then).abs() > tolerance.value() * then;
            let mean = |wanted: u128, tasks: u64| wanted as f64 / tasks as f64;
            let demand = |d: usize| far(mean(books.wanted(user, d), tasks), mean(known.wanted[d], known.tasks));
            return far(tasks as f64, known.tasks as f64) || (0..books.dims()).any(demand);
        }
        // The number of tasks limits a target only if it is at most the target, now or when the targets were solved. The additional step
        // allows for rounding.
        let bound = |tasks: u64| u128::from(tasks) * u128::from(STEPS) <= u128::from(known.target) + 1;
        let bounded = tasks != known.tasks && (bound(tasks) || bound(known.tasks));
        // Compares wanted / tasks as fractions; products beyond 128 bits count as changed, which costs one additional solution.
        let product = |wanted: u128, tasks: u64| wanted.checked_mul(u128::from(tasks));
        let same = |d: usize| match (product(books.wanted(user, d), known.tasks), product(known.wanted[d], tasks)) {
            (Some(now), Some(then)) => now == then,
            _ => false,
        };
        bounded || !(0..books.dims()).all(same)
    }

    /// Updates the state of users that changed.
    fn update(&mut self, books: &Books, changed: &[UserId]) {
        self.users.resize_with(books.users(), SolvedTarget::default);
        for &user in changed {
            let active = books.running(user) + books.waiting(user) > 0;
            let stale = self.set_active(user, active) || (active && !self.stale && self.matters(user, books));
            self.stale |= stale;
        }
    }

    fn solve(&mut self, books: &Books) -> Result<()> {
        let (dims, capacity) = (books.dims(), books.capacity());
        // In order of ids, so that the order of arrivals and departures has no effect.
        self.active.sort_unstable();
        let users = self.active.len();
        let (mut demand, mut weight, mut tasks) = (vec![0.0; users * dims], Vec::new(), Vec::new());
        for (at, &user) in self.active.iter().enumerate() {
            let count = books.running(user) + books.waiting(user);
            let known = &mut self.users[user.index()];
            (known.place, known.tasks) = (at as u32 + 1, count);
            known.wanted.clear();
            known.wanted.extend((0..dims).map(|d| books.wanted(user, d)));
            for d in (0..dims).filter(|&d| capacity.0[d] > 0) {
                demand[d * users + at] = known.wanted[d] as f64 / (count as f64 * capacity.0[d] as f64);
            }
            let whole = books.weights().uniform(books.weight_class(user));
            weight.push(whole.expect("checked when the policy was made") as f64 / WEIGHT_ONE as f64);
            tasks.push(count as f64);
        }
        self.targets.clear();
        if users > 0 {
            self.solver.solve(&Problem::new(dims, demand, weight, tasks), &mut self.targets)?;
        }
        for (&user, &target) in self.active.iter().zip(&self.targets) {
            // At least one step, so that no target is 0. The cast saturates.
            self.users[user.index()].target = ((target * STEPS as f64).round() as u64).max(1);
        }
        Ok(())
    }
}

impl<S: TargetSolver> Policy for Target<S> {
    fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        self.update(books, changed);
        let due = match (self.resolve, self.solved) {
            (Resolve::Every(span), Some(solved)) => now >= solved + span,
            _ => true,
        };
        // Without waiting users no ranks are needed.
        if !self.stale || !due || books.total_waiting() == 0 {
            return Ok(Stale::None);
        }
        self.solve(books)?;
        (self.stale, self.solved) = (false, Some(now));
        Ok(Stale::All)
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let running = u128::from(books.running(queue.user));
        // A user that became active after the targets were solved has no target: it is ranked by its running tasks.
        let target = match self.users[queue.user.index()].target {
            0 => STEPS,
            target => target,
        };
        Rank::new((running << 64) / u128::from(target))
    }

    fn needs(&self) -> Needs {
        Needs { waiting_demand: true, ..Needs::default() }
    }

    fn settled(&mut self, now: Time, _changed: &[UserId], _books: &Books) -> Option<Time> {
        match (self.resolve, self.solved) {
            (Resolve::Every(span), Some(solved)) if self.stale => Some(solved + span).filter(|at| *at > now),
            _ => None,
        }
    }
}

impl<S: TargetSolver> Capabilities for Target<S> {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        self.solver.has_checkpoints().then_some(self)
    }
}

impl<S: TargetSolver> Checkpoint for Target<S> {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Target { solver, resolve: _, users, active, targets, stale, solved } = self;
        visit_values!(visitor; users, active, targets, stale, solved);
        solver.visit(visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_base::units::{Dim, Resources, Span, Unit};
    use plimsoll_fair::fill;
    use plimsoll_sim::books::{Partition, Weights};

    /// A solver for equal dominant shares that counts its calls.
    #[derive(Default)]
    struct Levels {
        solved: usize,
    }

    impl TargetSolver for Levels {
        fn solve(&mut self, problem: &Problem, targets: &mut Vec<f64>) -> Result<()> {
            self.solved += 1;
            let rows: Vec<Vec<f64>> = (0..problem.users()).map(|i| problem.row(i).collect()).collect();
            let caps: Vec<Option<f64>> = problem.tasks().iter().map(|&tasks| Some(tasks)).collect();
            let rate = |i: usize| problem.weight()[i] / rows[i].iter().copied().fold(0.0, f64::max);
            let stage = (0..problem.users()).map(|i| (i, rate(i))).collect();
            targets.extend(fill(&vec![1.0; problem.dims()], &rows, &caps, &[stage]).tasks);
            Ok(())
        }
    }

    /// The paper's cluster of 9 CPU and 18 GB with users A (1 CPU and 4 GB per task) and B (3 CPU and 1 GB per task), and further users
    /// like A.
    struct Scene {
        books: Books,
        policy: Target<Levels>,
        now: Time,
    }

    const DEMANDS: [[u64; 2]; 3] = [[1, 4], [3, 1], [1, 4]];

    impl Scene {
        fn new(resolve: &str) -> Scene {
            let dims: Vec<Dim> = ["cpu", "memory"].map(|name| Dim { name: name.into(), unit: Unit::Milli }).into();
            let capacity = Resources([9, 18, 0, 0, 0, 0, 0, 0]);
            let weights = Weights::default();
            let setup = Setup { dims: &dims, capacity, machines: 1, weights: &weights, labels: None };
            let resolve = resolve.parse().expect("a rule");
            let policy = Target::new("test", &setup, Levels::default(), resolve).expect("one weight a user");
            let mut books = Books::new(2, capacity, capacity, true, weights);
            books.keep_waiting_demand();
            ["a", "b", "c"].iter().for_each(|name| books.open(name));
            Scene { books, policy, now: Time::ZERO }
        }

        fn queue(&mut self, user: u32, tasks: u32) {
            self.books.queue(UserId(user), tasks, &DEMANDS[user as usize]);
            self.round(&[user]);
        }

        fn launch(&mut self, user: u32) {
            let demand = DEMANDS[user as usize];
            self.books.launch(UserId(user), &demand, &demand);
            self.round(&[user]);
        }

        fn finish(&mut self, user: u32) {
            let demand = DEMANDS[user as usize];
            self.books.finish(UserId(user), &demand, &demand, 1);
            self.round(&[user]);
        }

        fn round(&mut self, changed: &[u32]) {
            let changed: Vec<UserId> = changed.iter().map(|&user| UserId(user)).collect();
            self.policy.prepare(self.now, &self.books, &changed).expect("a filling ends");
        }

        fn rank(&self, user: u32) -> Rank {
            let queue = Queue {
                user: UserId(user),
                partition: Partition::DEFAULT,
                release: Time::ZERO,
                place: 0,
                priority: 0,
                key: None,
            };
            self.policy.rank(&queue, &self.books)
        }

        fn wake(&mut self) -> Option<Time> {
            self.policy.settled(self.now, &[], &self.books)
        }

        fn solved(&self) -> usize {
            self.policy.solver.solved
        }
    }

    /// Ghodsi et al., NSDI 2011, 4.1: the targets are 3 tasks of A and 2 tasks of B, so one task of B counts as much as one and a half
    /// tasks of A.
    #[test]
    fn ranks_follow_running_over_target() {
        let mut scene = Scene::new("change");
        scene.queue(0, 100);
        scene.queue(1, 100);
        assert_eq!(scene.solved(), 2);
        assert_eq!(scene.rank(0), scene.rank(1));
        scene.launch(1);
        scene.launch(0);
        assert!(scene.rank(0) < scene.rank(1), "1/3 before 1/2");
        scene.launch(0);
        assert!(scene.rank(1) < scene.rank(0), "1/2 before 2/3");
        scene.launch(0);
        scene.launch(1);
        assert_eq!(scene.rank(0), scene.rank(1), "3/3 and 2/2");
        assert_eq!(scene.solved(), 2, "launches change no target");
    }

    #[test]
    fn on_change_only_what_may_move_a_target_counts() {
        let mut scene = Scene::new("change");
        scene.queue(0, 100);
        scene.queue(1, 4);
        scene.launch(1);
        scene.queue(0, 7);
        assert_eq!(scene.solved(), 2, "more tasks than any target are no change");
        scene.finish(1);
        assert_eq!(scene.solved(), 2, "3 tasks are left, the target is 2");
        scene.launch(1);
        scene.finish(1);
        assert_eq!(scene.solved(), 3, "2 tasks are left, as many as the target");
        scene.launch(1);
        scene.finish(1);
        assert_eq!(scene.solved(), 4, "1 task is left, and A's target becomes 17/4");
        assert_eq!(scene.policy.users[0].target, 17 * STEPS / 4);
        // The mean demand has changed.
        scene.books.queue(UserId(0), 1, &[2, 4]);
        scene.round(&[0]);
        assert_eq!(scene.solved(), 5);
        scene.launch(1);
        scene.finish(1);
        assert_eq!(scene.solved(), 6, "B is gone");
        scene.queue(2, 50);
        assert_eq!(scene.solved(), 7, "C is new");
    }

    #[test]
    fn every_span_waits_and_wakes() {
        let mut scene = Scene::new("every:60s");
        scene.queue(0, 100);
        assert_eq!((scene.solved(), scene.wake()), (1, None));
        scene.now = Time::ZERO + Span::from_secs(10);
        scene.queue(1, 100);
        assert_eq!((scene.solved(), scene.wake()), (1, Some(Time::ZERO + Span::from_secs(60))));
        assert_eq!(scene.rank(1), Rank::new(0), "a newcomer is served before it has a target");
        scene.now = Time::ZERO + Span::from_secs(60);
        scene.round(&[]);
        assert_eq!((scene.solved(), scene.wake()), (2, None));
    }

    #[test]
    fn a_tolerance_lets_small_changes_pass() {
        let mut scene = Scene::new("tolerance:0.1");
        scene.queue(0, 20);
        scene.queue(1, 20);
        scene.queue(0, 2);
        assert_eq!(scene.solved(), 2, "10 percent more tasks are within the tolerance");
        scene.queue(0, 1);
        assert_eq!(scene.solved(), 3, "more than 10 percent more tasks since the targets were solved");
        scene.books.queue(UserId(1), 1, &[30, 1]);
        scene.round(&[1]);
        assert_eq!(scene.solved(), 4, "a mean of 90/21 CPU is not 3");
    }

    #[test]
    fn weights_by_resource_are_an_error_with_its_place() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("weights.csv");
        std::fs::write(&path, "user,cpu\na,2\n").expect("a temporary file");
        let dims: Vec<Dim> = ["cpu", "memory"].map(|name| Dim { name: name.into(), unit: Unit::Milli }).into();
        let weights =
            Weights::read(&plimsoll_base::pinned::Pinned::new(&path).expect("a file"), &dims).expect("weights");
        let setup = Setup { dims: &dims, capacity: Resources::ZERO, machines: 1, weights: &weights, labels: None };
        let error = Target::new("ceei", &setup, Levels::default(), Resolve::Change).err().expect("no such targets");
        assert!(error.to_string().contains("policy ceei") && error.to_string().contains("one weight"), "{error}");
    }
}
