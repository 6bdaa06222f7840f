//! Preemption for starved applications.
//!
//! [`Shares`] has the fair shares of all queues and applications. An application is starved if its allocation is below its fair share
//! times the threshold, or if its queue is below its minimum share. Containers are preempted only from applications that stay at their
//! fair shares without them, and only if a container of the starved application then starts.

use std::collections::{BTreeMap, HashMap};

use super::super::cycle::{ONE, QueueAt, ROOT, Runs, Solution, Waiting};
use super::shares::{Claim, shares};
use super::{QueueState, Session, Tree, YarnFair};
use plimsoll_base::units::{MachineId, Resources, UserId};
use plimsoll_sim::books::Books;

/// The fair shares at one moment.
pub struct Shares {
    /// By node, the fair share of the queue.
    pub queues: Vec<Resources>,
    /// By user, the fair share of the application within the fair share of its leaf.
    apps: Vec<Resources>,
}

impl Shares {
    /// Computes the shares of queues and applications with allocation or pending demand.
    pub fn new(yarn: &YarnFair, tree: &Tree, books: &Books, active: impl Fn(&UserId) -> bool) -> Shares {
        let mut queues = vec![Resources::ZERO; tree.nodes.len()];
        let mut apps = vec![Resources::ZERO; tree.users.len()];
        let is_active = tree.totals(|at| tree.nodes[at].users.iter().any(&active), |one, other| one || other);
        queues[ROOT] = *books.offered();
        for at in tree.downwards() {
            let node = &tree.nodes[at];
            let users: Vec<UserId> = node.users.iter().copied().filter(&active).collect();
            for d in yarn.dims.iter() {
                let total = queues[at].0[d];
                let of_queue = |child: &QueueAt| {
                    let settings = &tree[*child];
                    let max = settings.max[d].unwrap_or(u64::MAX);
                    Claim { min: settings.min.0[d], max, weight: settings.weight, active: is_active[*child] }
                };
                let of_app = |_: &UserId| Claim { min: 0, max: u64::MAX, weight: ONE, active: true };
                let claims: Vec<Claim> = node.children.iter().map(of_queue).collect();
                for (child, share) in node.children.iter().zip(shares(total, yarn.units[d], &claims)) {
                    queues[*child].0[d] = share;
                }
                let claims: Vec<Claim> = users.iter().map(of_app).collect();
                for (user, share) in users.iter().zip(shares(total, yarn.units[d], &claims)) {
                    apps[user.index()].0[d] = share;
                }
            }
        }
        Shares { queues, apps }
    }
}

/// An application and the amount that it lacks.
struct Starved {
    next: Waiting,
    lacks: Resources,
}

const FOR_STARVED: &str = "its application stays at its fair share without it, and another one is starved";

fn part(amounts: &Resources, millionths: u64) -> Resources {
    amounts.map(|amount| (u128::from(amount) * u128::from(millionths) / u128::from(ONE)) as u64)
}

impl YarnFair {
    fn is_below(&self, session: &Session, usage: &Resources, share: &Resources) -> bool {
        let capacity = session.books.offered();
        self.dims.dominant(usage, capacity) < self.dims.dominant(share, capacity)
    }

    /// Adds the starved applications of a leaf.
    fn starved(&self, session: &Session, fair: &Shares, leaf: QueueAt, starved: &mut Vec<Starved>) {
        let wanted = |user: UserId| {
            let of = |d: usize| u64::try_from(session.books.wanted(user, d)).unwrap_or(u64::MAX);
            Resources::from_fn(|d| if d < session.books.dims() { of(d) } else { 0 })
        };
        let mut apps: Vec<(QueueState, Waiting)> = session
            .waiting(leaf)
            .map(|next| (self.app(session.books.offered(), &session.held[next.user.index()], next.since), next))
            .collect();
        apps.sort_by_key(|(stand, _)| *stand);
        let threshold = session.tree.nearest(leaf, |settings| settings.preemption_threshold).unwrap_or(ONE / 2);
        let mut lacks: Vec<Resources> = vec![Resources::ZERO; apps.len()];
        let mut sum = Resources::ZERO;
        for (at, (_, next)) in apps.iter().enumerate() {
            let held = &session.held[next.user.index()];
            let due = part(&fair.apps[next.user.index()], threshold).min(wanted(next.user));
            if !self.is_below(session, held, &due) {
                break;
            }
            lacks[at] = due.saturating_sub(*held);
            sum += lacks[at];
        }
        let users = session.tree.nodes[leaf].users.iter();
        let demand = users.map(|user| wanted(*user)).fold(Resources::ZERO, Resources::saturating_add);
        let mut pending = session.tree[leaf].min.min(demand).saturating_sub(session.usage[leaf]).saturating_sub(sum);
        for (at, (_, next)) in apps.iter().enumerate() {
            if pending.is_zero() {
                break;
            }
            let mut more = wanted(next.user).saturating_sub(session.held[next.user.index()]).saturating_sub(lacks[at]);
            if self.dims.compare(&more, &pending, session.books.offered()).is_gt() {
                more = if self.guarded { more.min(pending) } else { more.saturating_sub(pending) };
                pending = Resources::ZERO;
            } else {
                pending = pending.saturating_sub(more);
            }
            lacks[at] = lacks[at].saturating_add(more);
        }
        let all = apps.into_iter().zip(lacks).filter(|(_, lacks)| !lacks.is_zero());
        starved.extend(all.map(|((_, next), lacks)| Starved { next, lacks }));
    }

    /// Returns the containers that may be preempted, by machine, in the order of preemption.
    fn candidates(&self, session: &Session, fair: &Shares) -> BTreeMap<MachineId, Vec<Runs>> {
        let tree = session.tree;
        let open = |leaf: &QueueAt| {
            let users = &tree.nodes[*leaf].users;
            let over = |user: &&UserId| {
                let held = &session.held[user.index()];
                *held != Resources::ZERO && self.is_below(session, &fair.apps[user.index()], held)
            };
            tree.path(*leaf).all(|at| tree[at].reclaimable) && users.iter().any(|user| over(&user))
        };
        let runs = tree.leaves().filter(open).flat_map(|leaf| session.running(leaf)).copied();
        let mut by_machine = session.by_machine(runs);
        by_machine.values_mut().for_each(|all| all.sort_by_key(Runs::turn));
        by_machine
    }

    /// Preempts containers for starved applications, and starts containers of the starved applications in their room.
    pub fn preempt(&self, session: &mut Session) {
        let active = |user: &UserId| session.books.waiting(*user) > 0 || session.held[user.index()] != Resources::ZERO;
        let fair = Shares::new(self, session.tree, session.books, active);
        let mut starved = Vec::new();
        for leaf in session.waiting_queues() {
            self.starved(session, &fair, leaf, &mut starved);
        }
        if starved.is_empty() {
            return;
        }
        let by_machine = self.candidates(session, &fair);
        let capacity = *session.books.offered();
        starved.sort_by(|one, other| {
            let key = |starved: &Starved| (self.dims.dominant(&starved.lacks, &capacity), starved.next.since);
            key(one).cmp(&key(other))
        });
        for Starved { next, lacks } in starved {
            let need = next.need();
            // The number of containers that fit into the missing amount, by memory alone; the scheduler of the source divides in this way
            // under every policy.
            let containers = self.dims.iter().next().map_or(0, |d| match need.0[d] {
                0 if lacks.0[d] > 0 => next.tasks.into(),
                each => lacks.0[d].checked_div(each).unwrap_or(0),
            });
            for _ in 0..containers {
                let Some(next) = session.next(next.user) else { break };
                if self.above_max(session, next.queue, &next.need()).is_some() {
                    break;
                }
                let Some(solution) = self.solve(session, &fair, &by_machine, &next) else { break };
                session.preempt_and_launch(&next, solution, FOR_STARVED);
            }
        }
        session.spare(|session, unit| self.above_max(session, unit.queue, &unit.unit()).is_none());
    }

    /// Returns the victims for a container, or for all containers of a gang. For a container without room, the victims are on the first
    /// machine where they suffice.
    fn solve(
        &self,
        session: &Session,
        fair: &Shares,
        by_machine: &BTreeMap<MachineId, Vec<Runs>>,
        next: &Waiting,
    ) -> Option<Solution> {
        let (mut victims, mut gone): (Vec<Runs>, HashMap<u64, u32>) = Default::default();
        let mut taken: BTreeMap<UserId, Resources> = BTreeMap::new();
        let seats = session.trial().place_all(&next.each, next.together(), |rooms| {
            for (machine, candidates) in by_machine {
                let mut taken_here = taken.clone();
                let room = rooms.on(*machine);
                let left =
                    |runs: &Runs| session.units_left(runs).saturating_sub(gone.get(&runs.key).copied().unwrap_or(0));
                let Some(here) =
                    self.on_machine(session, fair, (*machine, room), (candidates, &left), &mut taken_here, &next.each)
                else {
                    continue;
                };
                for runs in here {
                    rooms.release(session, &runs);
                    *gone.entry(runs.key).or_default() += 1;
                    victims.push(runs);
                }
                taken = taken_here;
                return Some(*machine);
            }
            None
        })?;
        Some(Solution { victims, seats })
    }

    /// Returns the victims on a machine with this room that are enough for a container.
    fn on_machine(
        &self,
        session: &Session,
        fair: &Shares,
        (machine, mut room): (MachineId, Resources),
        (candidates, left): (&[Runs], &dyn Fn(&Runs) -> u32),
        taken: &mut BTreeMap<UserId, Resources>,
        need: &Resources,
    ) -> Option<Vec<Runs>> {
        let mut victims: Vec<Runs> = Vec::new();
        for runs in candidates {
            let unit = runs.one();
            let (share, here) = (&fair.apps[runs.user.index()], session.amount_on(&unit, machine));
            for _ in 0..left(runs) {
                if need.fits(&room) {
                    return Some(victims);
                }
                let gone = taken.entry(runs.user).or_insert(Resources::ZERO);
                let sum = *gone + unit.unit();
                if self.is_below(session, &session.held[runs.user.index()].saturating_sub(sum), share) {
                    break;
                }
                *gone = sum;
                room += here;
                victims.push(unit);
            }
        }
        need.fits(&room).then_some(victims)
    }
}
