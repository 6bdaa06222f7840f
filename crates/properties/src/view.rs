//! An instance and its allocation in one type of number, with the quantities that the properties compare.

use super::Reading;
use plimsoll_fair::{Allocation, Exact, Instance, Number, User, Wants};

/// A type of number for the decision of properties.
pub(super) trait Measured: Number {
    /// Returns the largest integer that is not above the number; a float that misses an integer by a rounding error counts as that integer.
    fn floor(&self) -> Self;
    /// Returns the smallest gap that counts, in dominant shares.
    fn tolerance() -> Self;
    /// Converts the number for a report.
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
    /// The difference; positive if the property is violated.
    pub margin: N,
    /// The user that is worse off.
    pub loser: Option<usize>,
    /// The other user or the resource of the comparison, if there is one.
    pub other: Option<usize>,
    /// The amount that the user has.
    pub worse: N,
    /// The amount that the user should have.
    pub better: N,
}

/// Returns the widest of some gaps, the first among equals.
pub(super) fn widest<N: Number>(gaps: impl Iterator<Item = Gap<N>>) -> Option<Gap<N>> {
    gaps.reduce(|widest, gap| if gap.margin > widest.margin { gap } else { widest })
}

pub(super) fn least<N: Number>(values: impl Iterator<Item = N>) -> Option<N> {
    values.reduce(|least, value| if value < least { value } else { least })
}

/// An instance in numbers `N`, and the tasks that a mechanism allocates.
pub(super) struct InstanceView<'a, N> {
    pub instance: &'a Instance,
    pub reading: Reading,
    pub capacity: Vec<N>,
    /// The demand per task: `users x resources`.
    pub demand: Vec<Vec<N>>,
    /// The weights: `users x resources`.
    pub weight: Vec<Vec<N>>,
    /// The number of tasks of each user, if it is limited.
    pub cap: Vec<Option<N>>,
    /// The number of allocated tasks of each user.
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

    /// Returns the wants of a user.
    pub fn wants(&self, user: usize) -> Wants<'_, N> {
        Wants { demand: &self.demand[user], weight: &self.weight[user], tasks: self.cap[user].as_ref() }
    }

    /// Returns the resources that a user needs.
    pub fn needed(&self, user: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.dims()).filter(move |&r| !self.demand[user][r].is_zero())
    }

    /// Returns the number of tasks that a user can run with a bundle: Leontief, whole if tasks are, up to its number of tasks.
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

    /// Returns the number of allocated tasks of a user, at most its number of tasks.
    pub fn useful(&self, user: usize) -> N {
        least([self.tasks[user].clone()].into_iter().chain(self.cap[user].clone())).unwrap_or_else(N::zero)
    }

    /// Returns the number of tasks, fractions included, that a user could run alone; `None` if it is 0 (for whole tasks, below 1), because
    /// the user then has nothing to lose.
    pub fn alone(&self, user: usize) -> Option<N> {
        let most = least(self.needed(user).map(|r| self.capacity[r].over(&self.demand[user][r])));
        let alone = least(most.into_iter().chain(self.cap[user].clone()))?;
        let enough = if self.reading == Reading::Divisible { !alone.is_zero() } else { alone >= one() };
        enough.then_some(alone)
    }

    /// Returns every user's amount of each resource: `users x resources`.
    pub fn bundles(&self) -> Vec<Vec<N>> {
        Allocation::bundles(self.instance, &self.tasks)
    }

    /// Returns the tolerance of the reading in tasks of a user. Up to one task, it is the number of tasks that reach the (weighted)
    /// dominant share of the largest task of any user; otherwise it is 0.
    fn forgiven(&self, user: usize) -> N {
        if self.reading != Reading::UpToOneTask {
            return N::zero();
        }
        let largest = (0..self.users()).map(|user| self.dominant(user));
        let largest = largest.reduce(|most, share| if share > most { share } else { most }).unwrap_or_else(N::zero);
        let own = self.dominant(user);
        if own.is_zero() { N::zero() } else { largest.over(&own) }
    }

    /// Returns the (weighted) dominant share of one task of a user; resources of capacity 0 do not count.
    pub fn dominant(&self, user: usize) -> N {
        let counted = self.needed(user).filter(|&r| !self.capacity[r].is_zero());
        let shares = counted.map(|r| self.demand[user][r].over(&self.capacity[r].times(&self.weight[user][r])));
        shares.reduce(|most, share| if share > most { share } else { most }).unwrap_or_else(N::zero)
    }

    /// Returns the gap of a user that has `worse` tasks and should have `better`, in parts of the tasks it could run alone.
    pub fn gap(&self, user: usize, other: Option<usize>, worse: N, better: N) -> Option<Gap<N>> {
        let margin = better.minus(&self.forgiven(user)).minus(&worse).over(&self.alone(user)?);
        Some(Gap { margin, loser: Some(user), other, worse, better })
    }
}

/// Returns one task as a number.
pub(super) fn one<N: Number>() -> N {
    N::from_exact(&Exact::ONE)
}
