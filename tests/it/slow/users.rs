//! Users as the policies of the literature see them.

use super::queues::Position;
use super::shares::share;
use super::simulation::{Simulation, State, Task};
use super::world::sum;
use super::{Policy, Ratio, Zoo};

/// A user that has appeared.
#[derive(Clone, Debug)]
pub struct User {
    /// The number of the user in the rows.
    pub number: usize,
    pub weights: Vec<Ratio>,
    /// Amounts times time over the ended periods; `held` and `wanted` are the current amounts.
    pub past: Vec<u128>,
    pub held: Vec<u64>,
    /// The number of running tasks.
    pub running: u64,
    pub wanted: Vec<u64>,
    /// The demand, the release time and the priority of the next task.
    pub head: Option<(Vec<u64>, u64, u8)>,
}

impl User {
    pub fn weight(&self) -> f64 {
        self.weights[0].num as f64 * 1e6 / self.weights[0].den as f64
    }
}

/// The inputs of an order.
#[derive(Clone, Debug)]
pub struct View {
    /// The users in the order of their appearance; none if the policy does not use them.
    pub users: Vec<User>,
    pub capacity: Vec<u64>,
    /// All machines, one by one.
    pub machines: Vec<Vec<u64>>,
    pub clock: u64,
    /// The credits of each user.
    pub credits: Vec<u64>,
}

impl View {
    /// Returns the index of a user.
    pub fn at(&self, number: usize) -> usize {
        self.users.iter().position(|user| user.number == number).expect("the user has appeared")
    }
}

impl Simulation<'_> {
    /// Updates the accounts of Karma if the policy is Karma.
    pub fn begin_quantum(&mut self, now: u64) {
        let Policy::Zoo(Zoo::Karma(rule)) = self.world.policy else { return };
        let demands: Vec<u64> = self.appeared().iter().map(|&user| self.demanded(user)[0].div_ceil(1000)).collect();
        self.accounts.round(rule, self.capacity[0] / 1000, now, &demands);
    }

    /// Returns the users that have appeared, in the order of their appearance.
    fn appeared(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = Vec::new();
        for row in self.rows.iter().filter(|row| Some(row.submit) <= self.clock) {
            if !numbers.contains(&row.user) {
                numbers.push(row.user);
            }
        }
        numbers
    }

    /// Returns the total demand of a user's waiting and running tasks.
    fn demanded(&self, user: usize) -> Vec<u64> {
        let mine = |task: &&Task| self.rows[task.row].user == user && (task.waits() || task.run().is_some());
        let demands = self.tasks.iter().filter(mine).map(|task| self.rows[task.row].demand.clone());
        sum(demands, self.capacity.len())
    }

    /// Returns what a policy of the literature knows of the users. The next task of a user is the first of the heads of its queues.
    pub fn view(&self, heads: &[(Position, usize)]) -> View {
        let Policy::Zoo(zoo) = self.world.policy else { return self.view_of(Vec::new()) };
        let user = |number: usize| {
            let mine = heads.iter().filter(|(_, head)| self.rows[self.tasks[*head].row].user == number);
            let first = mine.map(|(position, head)| (self.turn(position.clone(), *head), *head)).min();
            let first = first.map(|(_, head)| head);
            let past = |r: usize| zoo.memory().map_or(0, |it| it.past(&self.holdings(number, r), self.now()));
            User {
                number,
                weights: self.weights(number),
                past: (0..self.capacity.len()).map(past).collect(),
                held: self.held_by(number),
                running: self.running(number) as u64,
                wanted: self.demanded(number),
                head: first.map(|head| self.next(head)),
            }
        };
        self.view_of(self.appeared().into_iter().map(user).collect())
    }

    fn view_of(&self, users: Vec<User>) -> View {
        let credits = self.accounts.credits.clone();
        let (capacity, machines) = (self.capacity.clone(), self.world.places());
        View { users, capacity, machines, clock: self.now(), credits }
    }

    /// Returns the demand, the release time and the priority of a waiting task.
    fn next(&self, head: usize) -> (Vec<u64>, u64, u8) {
        let Task { row, .. } = self.tasks[head];
        let (released, _) = self.released[row].expect("a row that waits was released");
        (self.rows[row].demand.clone(), released, self.rows[row].priority)
    }

    /// Returns the users with the release and the priority of a queue's next task, and the index of its user. (A user has several queues
    /// if its tasks require different machines. The demand remains that of the first task of all these queues.)
    pub fn with_head(&self, view: &View, head: usize) -> (View, usize) {
        let mut view = view.clone();
        let at = view.at(self.rows[self.tasks[head].row].user);
        let (_, released, priority) = self.next(head);
        if let Some(next) = &mut view.users[at].head {
            (next.1, next.2) = (released, priority);
        }
        (view, at)
    }

    /// Selects the users that Tetris serves first in this round: those with the least dominant shares among the users with waiting tasks.
    pub fn choose_eligible(&mut self) {
        let Policy::Zoo(Zoo::Tetris(knob)) = self.world.policy else { return };
        let waits = |user: usize| self.tasks.iter().any(|task| task.waits() && self.rows[task.row].user == user);
        let dominant = |user| share(Policy::Drf, &self.weights(user), &self.held_by(user), &self.capacity);
        let waiting = self.appeared().into_iter().enumerate().filter(|(_, user)| waits(*user));
        let mut waiting: Vec<(Ratio, usize, usize)> = waiting.map(|(at, user)| (dominant(user), at, user)).collect();
        waiting.sort();
        let part = (waiting.len() as u64 * (1000 - knob)).div_ceil(1000).max(1);
        self.eligible = waiting.into_iter().take(part as usize).map(|(.., user)| user).collect();
    }

    /// Returns whether the policy permits `tasks` more tasks like this one to start.
    pub fn admitted(&self, head: usize, tasks: usize) -> bool {
        let Policy::Zoo(Zoo::Karma(_)) = self.world.policy else { return self.within_quotas(head, tasks) };
        let row = &self.rows[self.tasks[head].row];
        let at = self.appeared().iter().position(|user| *user == row.user).expect("the user has appeared");
        self.accounts.admits(at, self.held_by(row.user)[0], row.demand[0] * tasks as u64)
    }

    /// Returns the number of tasks of a set that wait.
    pub fn waiting(&self, set: usize) -> usize {
        self.tasks.iter().filter(|task| task.set == set && matches!(task.state, State::Waiting(_))).count()
    }
}
