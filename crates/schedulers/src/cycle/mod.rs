//! Schedulers that decide in cycles over a tree of queues, as production schedulers do: starts, evictions, and the reason of each.
//!
//! A [`Scheduler`] decides one cycle on a [`Session`]; [`Cycled`] turns a scheduler into a policy. There is one cycle per instant, so that
//! tasks stopped in a cycle compete for their room in the next one, and a livelock takes simulated time. A cycle that has started or
//! stopped a task is followed by another within [`PERIOD`], even without further events.
//!
//! A user's next task set is a workload (Kueue), a job (Volcano, KAI) or an application (YARN), with a queue position of its own. Only the
//! first of a user's waiting task sets is visible.

mod ratio;
mod rooms;
mod session;
mod settings;
mod tree;
mod walk;

pub use plimsoll_policies::queues::{Bound, ONE, OptionalAmounts, QueueFile};
pub(crate) use ratio::ordered;
pub use ratio::{Ratio, compare_parts};
pub use rooms::{Placements, Rooms, Solution, place_task};
pub use session::{Runs, Session, change_amounts};
pub(crate) use settings::settings;
pub use settings::{Millionths, SettingTable, SettingValue, within, without, word, words};
pub use tree::{Excess, QueueAt, QueueTable, ROOT, Tree, Waiting};
pub use walk::{Member, MemberRank, Walk};

use std::collections::{HashMap, VecDeque};

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Span, Time, UserId};
use plimsoll_base::visit_values;
use plimsoll_policies::{
    Ask, Capabilities, Explain, Needs, Parsed, Planner, Policy, Preemption, PreemptsFor, Queue, Rank, Reason, Reclaims,
    Room, RunningView, Setup, Stale, Status, Verdict, Victims,
};
use plimsoll_sim::books::{Books, Weights};

/// The time from a cycle that has started or stopped a task to the next one.
pub const PERIOD: Span = Span(10_000);

/// A scheduler that decides in cycles.
pub trait Scheduler: Send + 'static {
    /// The settings of a queue.
    type Settings: SettingTable + 'static;

    /// Returns the settings of the queue of a user with this weight; called only if no file has groups. The weight is `None` if the user
    /// has one per resource; a scheduler that returns `None` then refuses such weights.
    fn user_queue(weight: Option<Millionths>) -> Option<Self::Settings>;

    /// Decides one cycle. Errors end the run.
    fn cycle(&mut self, session: &mut Session<Self::Settings>) -> Result<()>;

    /// Returns the status of each queue: the current quantities that the scheduler uses.
    fn status(&self, view: &QueueView<Self::Settings>) -> Vec<Status>;

    /// Returns whether one user precedes another by the comparison of the source, if there is one.
    fn compare_users(&self, _view: &QueueView<Self::Settings>, _one: UserId, _other: UserId) -> Option<bool> {
        None
    }
}

/// The state of the queues between two cycles.
#[derive(Clone, Copy)]
pub struct QueueView<'a, S> {
    /// The tree of queues.
    pub tree: &'a Tree<S>,
    /// The allocations and waiting users.
    pub table: &'a QueueTable,
    /// The books of the run.
    pub books: &'a Books,
}

impl<S> QueueView<'_, S> {
    /// Returns the next workloads of two users, if both wait.
    pub fn next(&self, one: UserId, other: UserId) -> Option<(Waiting, Waiting)> {
        Some((self.table.next(one)?, self.table.next(other)?))
    }

    /// Returns the status of all queues; `of` returns the values, the guarantee and the limit of a queue.
    pub fn status(
        &self,
        of: impl Fn(QueueAt) -> (Vec<(String, f64)>, OptionalAmounts, OptionalAmounts),
    ) -> Vec<Status> {
        let status = |(at, node): (QueueAt, &tree::QueueNode)| {
            let (values, guaranteed, limit) = of(at);
            Status { name: node.name.clone(), values, guaranteed, limit }
        };
        self.tree.nodes.iter().enumerate().map(status).collect()
    }
}

/// A policy that runs a scheduler in cycles.
///
/// Cost: O(depth * resources) per changed user, plus the cost of the scheduler per cycle.
pub struct Cycled<S: Scheduler> {
    scheduler: S,
    tree: Tree<S::Settings>,
    weights: Weights,
    table: QueueTable,
    /// By user: its planned launches, with their positions in the order of the cycle.
    places: HashMap<UserId, VecDeque<PlannedLaunch>>,
    waits: HashMap<UserId, Reason>,
    /// The instant of the last cycle.
    at: Option<Time>,
    /// Whether the cycle has started or stopped a task.
    acted: bool,
    /// Whether the cycle has requested evictions that the engine has not confirmed yet.
    stops: bool,
}

/// A launch that a cycle has decided.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct PlannedLaunch {
    at: u32,
    /// The number of tasks that are not launched yet.
    tasks: u32,
    /// The position of the planned set in the user's order: a set that was stopped in the cycle may precede it now.
    turn: (u8, Time, u64),
    /// The machines planned for the tasks. They are stored only if the cycle evicts a task, because the room of victims is reserved for
    /// the tasks that displaced them.
    seats: Placements,
}

/// The default reason of a user that is not reached in this cycle.
const NOT_YET: Reason = Reason::Rule("the scheduler visits waiting jobs in cycles, and had not reached it");

/// Parses the parameter of a policy: a file of queues or none. `new` creates its scheduler from the tree with the settings of the file, the
/// file and the variant. Errors: the expected form.
pub fn parse<S: Scheduler>(
    given: Option<&str>,
    new: impl Fn(&Tree<S::Settings>, &QueueFile, Option<&str>, &Setup) -> Result<S> + Send + Sync + 'static,
) -> std::result::Result<Parsed, String> {
    Parsed::queued(given, move |file, variant, setup| {
        let tree = Tree::new(file, setup.dims)?;
        let (scheduler, weights) = (new(&tree, file, variant, setup)?, setup.weights.clone());
        let (table, places, waits) = Default::default();
        Ok(Box::new(Cycled { scheduler, tree, weights, table, places, waits, at: None, acted: false, stops: false }))
    })
}

impl<S: Scheduler> Cycled<S> {
    fn view<'a>(&'a self, books: &'a Books) -> QueueView<'a, S::Settings> {
        QueueView { tree: &self.tree, table: &self.table, books }
    }

    /// Returns the next planned launch of a user, if the user's next task set is the planned one.
    fn place(&self, queue: &Queue) -> Option<&PlannedLaunch> {
        let place = self.places.get(&queue.user)?.front()?;
        (place.turn == (queue.priority, queue.release, queue.place)).then_some(place)
    }
}

impl<S: Scheduler> Policy for Cycled<S> {
    fn needs(&self) -> Needs {
        Needs { preempts_for: PreemptsFor::Reclaims, waiting_demand: true, nominates: true, ..Needs::default() }
    }

    fn open(&mut self, user: UserId, name: &str) -> Result<()> {
        let weight = self.weights.uniform(self.weights.class_of(name) as usize);
        self.tree.open(user, name, || {
            let given = || format!("a weight per resource for '{name}'");
            S::user_queue(weight)
                .ok_or_else(|| Error::plan("weights", given(), "one weight per user under this policy"))
        })
    }

    fn prepare(&mut self, _now: Time, _books: &Books, changed: &[UserId]) -> Result<Stale> {
        self.table.mark_changed(changed);
        Ok(Stale::None)
    }

    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        Rank::new(self.place(queue).map_or(u128::MAX, |place| place.at.into()))
    }

    fn admit(&self, queue: &Queue, _ask: &Ask, _books: &Books) -> Verdict {
        match self.place(queue) {
            Some(_) => Verdict::Yes,
            None => Verdict::Wait(self.waits.get(&queue.user).copied().unwrap_or(NOT_YET)),
        }
    }

    fn launched(&mut self, queue: &Queue, ask: &Ask, _books: &Books) {
        self.acted = true;
        let Some(places) = self.places.get_mut(&queue.user) else { return };
        if let Some(place) = places.front_mut() {
            place.tasks = place.tasks.saturating_sub(ask.tasks);
            for _ in 0..ask.tasks {
                match place.seats.first_mut() {
                    Some((_, count)) if *count > 1 => *count -= 1,
                    Some(_) => drop(place.seats.remove(0)),
                    None => break,
                }
            }
            if place.tasks == 0 {
                places.pop_front();
            }
        }
        if places.is_empty() {
            self.places.remove(&queue.user);
        }
    }

    fn settled(&mut self, now: Time, _changed: &[UserId], _books: &Books) -> Option<Time> {
        self.places.clear();
        std::mem::take(&mut self.acted).then_some(now + PERIOD)
    }
}

impl<S: Scheduler> Capabilities for Cycled<S> {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn preemption(&mut self) -> Option<&mut dyn Preemption> {
        Some(self)
    }

    fn planner(&self) -> Option<&dyn Planner> {
        Some(self)
    }

    fn explain(&self) -> Option<&dyn Explain> {
        Some(self)
    }
}

impl<S: Scheduler> Planner for Cycled<S> {
    fn nominated(&self, queue: &Queue) -> &[(MachineId, u32)] {
        self.place(queue).map_or(&[], |place| &place.seats)
    }
}

impl<S: Scheduler> Explain for Cycled<S> {
    fn status(&self, books: &Books) -> Vec<Status> {
        // A new queue has no state before the next cycle.
        let current = self.table.usage.len() == self.tree.nodes.len();
        if current { self.scheduler.status(&self.view(books)) } else { Vec::new() }
    }

    fn compare_users(&self, one: UserId, other: UserId, books: &Books) -> Option<bool> {
        self.scheduler.compare_users(&self.view(books), one, other)
    }
}

impl<S: Scheduler> Preemption for Cycled<S> {
    fn reclaim(&mut self, now: Time, running: &dyn RunningView, books: &Books) -> Result<Reclaims> {
        if self.at == Some(now) {
            // The engine calls again after the evictions. It may have carried out only some of them (`stop_limit`).
            self.acted |= std::mem::take(&mut self.stops);
            return Ok(Reclaims::default());
        }
        let first = self.at.replace(now).is_none();
        self.table.follow(&self.tree, running, books);
        // The first cycle always runs: schedulers compute and report the guarantees of queues in it.
        if self.table.busy.is_empty() && !first {
            return Ok(Reclaims::default());
        }
        let mut session = Session::new(&self.tree, &self.table, running, books);
        self.scheduler.cycle(&mut session)?;
        let decided = session.decided;
        self.places.clear();
        let stale = Stale::Some(decided.launches.iter().map(|(user, ..)| *user).collect());
        let planned = !decided.evictions.is_empty();
        for (at, (user, tasks, seats)) in decided.launches.into_iter().enumerate() {
            let Some(next) = self.table.waiting[user.index()] else { continue };
            let seats = if planned { seats } else { Placements::new() };
            let place = PlannedLaunch { at: at as u32, tasks, turn: next.turn(), seats };
            self.places.entry(user).or_default().push_back(place);
        }
        self.waits = decided.waits;
        let victim = |evicted: &session::Evicted| Victims {
            tasks: vec![(evicted.runs.key, evicted.count)],
            room: Room::Open,
            cause: evicted.cause,
        };
        let victims: Vec<Victims> = decided.evictions.iter().map(victim).collect();
        self.stops = !victims.is_empty();
        Ok(Reclaims { victims, stale })
    }
}

impl<S: Scheduler> Checkpoint for Cycled<S> {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        // The tree and the settings of the scheduler follow from the users.
        let Cycled { scheduler: _, tree: _, weights: _, table, places, waits, at, acted, stops } = self;
        visit_values!(visitor; table, places, waits, at, acted, stops);
        Ok(())
    }
}
