//! The path algorithm for bottleneck max-min fairness: the limits of all users rise together from zero.
//!
//! Let no user run more than its own limit, with all limits proportional to one height. While the height is small, no resource is used up.
//! As it rises, resources are used up and limit users before their own limits do. Between two such events, heights and levels of used-up
//! resources lie on a straight line. The solutions therefore form a path of line segments that neither branches nor returns to its start,
//! and levels are bounded. The path ends where no user's own limit is binding, at a bottleneck max fair allocation. This is Lemke's
//! argument for complementary pivoting (Management Science 11, 1965), and a proof of existence. The height may decrease along the path if
//! several allocations exist.
//!
//! A path branches if two events coincide. Users with equal demands make that common, so the path is computed for demands that are
//! perturbed by a part in ten million, differently for each user and resource. The caller solves again without the perturbation.

use super::shape::{Shape, TASKS};
use crate::linear;

/// The relative perturbation of demands that keeps the path from branching.
const CHANGE: f64 = 1e-7;

/// Returns the end of the path: the level of each resource (infinite where it limits no user), and the number of segments. Returns `None`
/// if rounding errors lost the path.
pub(super) fn follow(shape: &Shape) -> Option<(Vec<f64>, usize)> {
    let mut path = Path::new(shape);
    let most = 1000 + 50 * (shape.users + shape.dims);
    let mut turn = PieceCondition::Start;
    for pieces in 0..most {
        path.head(&turn)?;
        match path.next() {
            (Some(event), step) => turn = path.advance(event, step),
            (None, _) if path.speed > 0.0 => return Some((path.levels(), pieces)),
            (None, _) => return None,
        }
    }
    None
}

/// The rising limit, in place of a resource.
const LIMIT: usize = usize::MAX - 1;

/// The event that ends a piece of the path.
enum Event {
    /// This user has another limit from this point.
    Switch(usize, usize),
    /// This resource is used up.
    UsedUp(usize),
}

/// The condition that determines the direction of the next piece.
enum PieceCondition {
    /// The height rises.
    Start,
    /// The bound from this user's new source falls relative to the bound from its old one.
    Apart { user: usize, old: usize },
    /// The usage of this resource, which no longer limits any user, falls.
    Released(usize),
}

struct Path<'a> {
    shape: &'a Shape,
    /// The demands of the shape, slightly perturbed.
    demand: Vec<f64>,
    per_level: Vec<f64>,
    /// The units of each user at height 1.
    rate: Vec<f64>,
    source: Vec<usize>,
    held: Vec<usize>,
    /// The number of users that the rising limit bounds.
    limited: usize,
    height: f64,
    level: Vec<f64>,
    /// The rates of change of the height and, in `speeds`, of the levels.
    speed: f64,
    speeds: Vec<f64>,
    /// The usage of each resource and its rate of change.
    usage: Vec<f64>,
    growth: Vec<f64>,
    /// `slopes[r * dims + s]`: the usage of `r` per level of `s`; `rising[r]`: the usage of `r` per unit of height.
    slopes: Vec<f64>,
    rising: Vec<f64>,
    /// The units of each user and their rate of change.
    bounds: Vec<(f64, f64)>,
}

impl Path<'_> {
    fn new(shape: &Shape) -> Path<'_> {
        let (users, dims) = (shape.users, shape.dims);
        let change: Vec<f64> = (0..shape.demand.len()).map(|k| 1.0 + CHANGE * scatter(k)).collect();
        let demand: Vec<f64> = shape.demand.iter().zip(&change).map(|(demand, change)| demand * change).collect();
        let per_level: Vec<f64> = shape.per_level.iter().zip(&change).map(|(rate, change)| rate / change).collect();
        let least = |i: usize| (0..dims).map(|r| per_level[r * users + i]).fold(f64::INFINITY, f64::min);
        let rate: Vec<f64> = (0..users).map(least).collect();
        let risen = |column: &[f64]| column.iter().zip(&rate).map(|(demand, rate)| demand * rate).sum();
        let rising = (0..dims).map(|r| risen(&demand[r * users..][..users])).collect();
        Path {
            shape,
            demand,
            per_level,
            rate,
            source: vec![LIMIT; users],
            held: vec![0; dims],
            limited: users,
            height: 0.0,
            level: vec![f64::INFINITY; dims],
            speed: 1.0,
            speeds: vec![0.0; dims],
            usage: vec![0.0; dims],
            growth: vec![0.0; dims],
            slopes: vec![0.0; dims * dims],
            rising,
            bounds: Vec::new(),
        }
    }

    /// Returns the bound of `source` on the units of user `i`, and its rate of change.
    fn bound(&self, i: usize, source: usize) -> (f64, f64) {
        match source {
            LIMIT => (self.height * self.rate[i], self.speed * self.rate[i]),
            TASKS => (self.shape.cap[i], 0.0),
            r => {
                let rate = self.per_level[r * self.shape.users + i];
                (self.level[r] * rate, self.speeds[r] * rate)
            }
        }
    }

    fn levels(&self) -> Vec<f64> {
        (0..self.shape.dims).map(|r| if self.held[r] > 0 { self.level[r] } else { f64::INFINITY }).collect()
    }

    /// Computes the direction of the piece: used-up resources stay used up, and the condition determines the sign.
    fn head(&mut self, turn: &PieceCondition) -> Option<()> {
        let dims = self.shape.dims;
        let active: Vec<usize> = (0..dims).filter(|&r| self.held[r] > 0).collect();
        let size = active.len();
        let mut rows = Vec::with_capacity(size * (size + 1));
        for &r in &active {
            rows.extend(active.iter().map(|&s| self.slopes[r * dims + s]));
            rows.push(-self.rising[r]);
        }
        let speeds = linear::solve(&mut rows, size)?;
        self.speed = 1.0;
        self.speeds.fill(0.0);
        for (&r, speed) in active.iter().zip(speeds) {
            self.speeds[r] = speed;
        }
        for r in 0..dims {
            let slopes = &self.slopes[r * dims..][..dims];
            let by_levels: f64 = slopes.iter().zip(&self.speeds).map(|(slope, speed)| slope * speed).sum();
            self.growth[r] = self.rising[r] + by_levels;
        }
        let forward = match *turn {
            PieceCondition::Start => true,
            PieceCondition::Apart { user, old } => self.bound(user, self.source[user]).1 < self.bound(user, old).1,
            PieceCondition::Released(r) => self.growth[r] < 0.0,
        };
        if !forward {
            self.speed = -1.0;
            self.speeds.iter_mut().chain(&mut self.growth).for_each(|speed| *speed = -*speed);
        }
        Some(())
    }

    /// Returns the first event in the direction and its distance.
    fn next(&mut self) -> (Option<Event>, f64) {
        let mut bounds = std::mem::take(&mut self.bounds);
        bounds.clear();
        bounds.extend(self.source.iter().enumerate().map(|(i, source)| self.bound(i, *source)));
        let mut first = (None, f64::INFINITY);
        for r in (0..self.shape.dims).filter(|&r| self.held[r] == 0 && self.growth[r] > 0.0) {
            if self.shape.covered[r] {
                continue;
            }
            let step = ((1.0 - self.usage[r]) / self.growth[r]).max(0.0);
            if step < first.1 {
                first = (Some(Event::UsedUp(r)), step);
            }
        }
        let mut meet = |i: usize, other: usize, bound: f64, pace: f64| {
            let (units, speed) = bounds[i];
            if pace < speed && other != self.source[i] {
                let step = ((bound - units) / (speed - pace)).max(0.0);
                if step < first.1 {
                    first = (Some(Event::Switch(i, other)), step);
                }
            }
        };
        for (i, cap) in self.shape.cap.iter().enumerate() {
            meet(i, TASKS, *cap, 0.0);
        }
        for (i, rate) in self.rate.iter().enumerate() {
            meet(i, LIMIT, self.height * rate, self.speed * rate);
        }
        for r in (0..self.shape.dims).filter(|&r| self.held[r] > 0) {
            let column = &self.per_level[r * self.shape.users..][..self.shape.users];
            for (i, rate) in column.iter().enumerate().filter(|(_, rate)| rate.is_finite()) {
                meet(i, r, self.level[r] * rate, self.speeds[r] * rate);
            }
        }
        self.bounds = bounds;
        first
    }

    fn advance(&mut self, event: Event, step: f64) -> PieceCondition {
        self.height += step * self.speed;
        for (level, speed) in self.level.iter_mut().zip(&self.speeds).filter(|(level, _)| level.is_finite()) {
            *level += step * speed;
        }
        for (usage, growth) in self.usage.iter_mut().zip(&self.growth) {
            *usage += step * growth;
        }
        let (user, new) = match event {
            Event::Switch(user, new) => (user, new),
            Event::UsedUp(r) => {
                let reached = |i: usize| self.bound(i, self.source[i]).0 / self.per_level[r * self.shape.users + i];
                let (user, highest) = (0..self.shape.users)
                    .map(|i| (i, reached(i)))
                    .fold((0, 0.0), |best, one| if one.1 > best.1 { one } else { best });
                self.level[r] = highest;
                (user, r)
            }
        };
        let old = self.source[user];
        self.count(user, -1.0);
        self.source[user] = new;
        self.count(user, 1.0);
        self.limited = self.limited + usize::from(new == LIMIT) - usize::from(old == LIMIT);
        // If the rising limit bounds no user, no usage depends on the height; rounding would leave small rates.
        if self.limited == 0 {
            self.rising.fill(0.0);
        }
        if let Some(held) = self.held.get_mut(new) {
            *held += 1;
        }
        if let Some(held) = self.held.get_mut(old) {
            *held -= 1;
            if *held == 0 {
                self.level[old] = f64::INFINITY;
                self.slopes.iter_mut().skip(old).step_by(self.shape.dims).for_each(|slope| *slope = 0.0);
                return PieceCondition::Released(old);
            }
        }
        PieceCondition::Apart { user, old }
    }

    /// Adds a user to the users that move with its source (`sign` 1), or removes it (-1).
    fn count(&mut self, user: usize, sign: f64) {
        let (users, dims) = (self.shape.users, self.shape.dims);
        for r in 0..dims {
            let demand = sign * self.demand[r * users + user];
            match self.source[user] {
                LIMIT => self.rising[r] += demand * self.rate[user],
                TASKS => {}
                s => self.slopes[r * dims + s] += demand * self.per_level[s * users + user],
            }
        }
    }
}

/// Returns a fixed pseudo-random number between -1 and 1 for each index (the finaliser of SplitMix64).
fn scatter(index: usize) -> f64 {
    let mut bits = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) as f64 / (u64::MAX / 2) as f64 - 1.0
}
