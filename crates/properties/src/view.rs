//! An instance and its allocation in one kind of number, with the quantities that the properties compare.

use super::Reading;
use plimsoll_fair::{Allocation, Exact, Instance, Number, User, Wants};

/// Numbers that a property is decided in.
pub(super) trait Measured: Number {
    /// The largest whole number that is not above it; a float that misses one by rounding counts as that one.
    fn floor(&self) -> Self;
    /// The least gap that counts, in dominant shares.
    fn tolerance() -> Self;
    /// For a report.
    fn value(&self) -> super::JudgedNumber;
}

impl Measured for Exact {
    fn floor(&self) -> Exact {
        self.floor()
    }
    fn tolerance() -> Exact {
        Exact::ZERO
    }
    fn value(&self) -> super::JudgedNumber {
        super::JudgedNumber::Exact(self.clone())
    }
}

impl Measured for f64 {
    fn floor(&self) -> f64 {
        (self + super::TOLERANCE).floor()
    }
    fn tolerance() -> f64 {
        super::TOLERANCE
    }
    fn value(&self) -> super::JudgedNumber {
        super::JudgedNumber::Float(*self)
    }
}

/// The gap of one user: `better` against `worse` tasks (or amounts), and the difference in dominant shares.
#[derive(Clone, Debug)]
pub(super) struct Gap<N> {
    /// Positive where the property is broken.
    pub margin: N,
    /// The user that is worse off.
    pub loser: Option<usize>,
    /// The user or the resource that it is about, if there is one.
    pub other: Option<usize>,
    /// The amount it has.
    pub worse: N,
    /// The amount it should have.
    pub better: N,
}

/// The widest of some gaps, the first among equals.
pub(super) fn widest<N: Number>(gaps: impl Iterator<Item = Gap<N>>) -> Option<Gap<N>> {
    gaps.reduce(|widest, gap| if gap.margin > widest.margin { gap } else { widest })
}

pub(super) fn least<N: Number>(values: impl Iterator<Item = N>) -> Option<N> {
    values.reduce(|least, value| if value < least { value } else { least })
}

/// An instance in numbers `N`, and the tasks that a mechanism gives.
pub(super) struct InstanceView<'a, N> {
    pub instance: &'a Instance,
    pub reading: Reading,
    pub capacity: Vec<N>,
    /// `users x resources`.
    pub demand: Vec<Vec<N>>,
    /// `users x resources`.
    pub weight: Vec<Vec<N>>,
    /// How many tasks each user has.
    pub cap: Vec<Option<N>>,
    /// How many it is given.
    pub tasks: Vec<N>,
}

impl<'a, N: Measured> InstanceView<'a, N> {
    pub fn new(instance: &'a Instance, tasks: Vec<N>, reading: Reading) -> InstanceView<'a, N> {
        let numbers = |values: &[Exact]| values.iter().map(N::from_exact).collect::<Vec<N>>();
        let rows = |of: fn(&User) -> &[Exact]| instance.users().iter().map(|user| numbers(of(user))).collect();
        InstanceView {
            instance,
            reading,
            capacity: numbers(instance.capacity()),
            demand: rows(|user| &user.demand),
            weight: rows(|user| &user.weight),
            cap: instance.users().iter().map(|user| user.tasks.as_ref().map(N::from_exact)).collect(),
            tasks,
        }
    }

    pub fn users(&self) -> usize {
        self.demand.len()
    }

    pub fn dims(&self) -> usize {
        self.capacity.len()
    }

    /// The wants of a user.
    pub fn wants(&self, user: usize) -> Wants<'_, N> {
        Wants { demand: &self.demand[user], weight: &self.weight[user], tasks: self.cap[user].as_ref() }
    }

    /// The resources that a user needs.
    pub fn needed(&self, user: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.dims()).filter(move |&r| !self.demand[user][r].is_zero())
    }

    /// The number of tasks that a user can run with a bundle: Leontief, whole if tasks are, up to its number of tasks.
    pub fn runs(&self, user: usize, bundle: impl Fn(usize) -> N) -> N {
        let wants = self.wants(user);
        match self.reading {
            Reading::Divisible => wants.runs(bundle).unwrap_or_else(N::zero),
            Reading::Whole | Reading::UpToOneTask | Reading::UpToOneOwnTask => {
                let whole = wants.fit(bundle).map(|most| most.floor());
                least(whole.into_iter().chain(self.cap[user].clone())).unwrap_or_else(N::zero)
            }
        }
    }

    /// How many of the tasks it is given a user has work for.
    pub fn useful(&self, user: usize) -> N {
        least([self.tasks[user].clone()].into_iter().chain(self.cap[user].clone())).unwrap_or_else(N::zero)
    }

    /// How many (parts of) tasks it could run alone; `None` if none (of whole tasks: not one), so that it has nothing
    /// to lose.
    pub fn alone(&self, user: usize) -> Option<N> {
        let most = least(self.needed(user).map(|r| self.capacity[r].over(&self.demand[user][r])));
        let alone = least(most.into_iter().chain(self.cap[user].clone()))?;
        let enough = if self.reading == Reading::Divisible { !alone.is_zero() } else { alone >= one() };
        enough.then_some(alone)
    }

    /// Every user's amount of each resource: `users x resources`.
    pub fn bundles(&self) -> Vec<Vec<N>> {
        Allocation::bundles(self.instance, &self.tasks)
    }

    /// The tolerance of the reading in tasks of a user: as many as reach the (weighted) dominant share of the largest task of any user.
    fn forgiven(&self, user: usize) -> N {
        if self.reading != Reading::UpToOneTask {
            return N::zero();
        }
        let largest = (0..self.users()).map(|user| self.dominant(user));
        let largest = largest.reduce(|most, share| if share > most { share } else { most }).unwrap_or_else(N::zero);
        let own = self.dominant(user);
        if own.is_zero() { N::zero() } else { largest.over(&own) }
    }

    /// The (weighted) dominant share of one task of a user; resources of capacity 0 do not count.
    pub fn dominant(&self, user: usize) -> N {
        let counted = self.needed(user).filter(|&r| !self.capacity[r].is_zero());
        let shares = counted.map(|r| self.demand[user][r].over(&self.capacity[r].times(&self.weight[user][r])));
        shares.reduce(|most, share| if share > most { share } else { most }).unwrap_or_else(N::zero)
    }

    /// The gap of a user that has `worse` tasks where it should have `better`, in parts of the tasks it could run
    /// alone.
    pub fn gap(&self, user: usize, other: Option<usize>, worse: N, better: N) -> Option<Gap<N>> {
        let margin = better.minus(&self.forgiven(user)).minus(&worse).over(&self.alone(user)?);
        Some(Gap { margin, loser: Some(user), other, worse, better })
    }
}

/// One task.
pub(super) fn one<N: Number>() -> N {
    N::from_exact(&Exact::ONE)
}
