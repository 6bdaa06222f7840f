//! The certain way to bottleneck max fairness: everybody's limit rises together, from nothing.
//!
//! Let no user run more than its own limit, all limits being proportional to one height. While the height is small,
//! nothing is used up; as it rises, resources are used up and hold users back before their limits do. In between,
//! heights and levels of used-up resources lie on a straight line, so the solutions form a path of line pieces that
//! neither branches nor returns to its start, and levels are bounded: it ends where no limit holds anybody back, at a
//! bottleneck max fair allocation. This is Lemke's argument for complementary pivoting (Management Science 11, 1965),
//! and a proof that one exists. The height may fall on the way: where several allocations exist, it turns.
//!
//! A path branches when two things happen at once. Users with equal demands make that common, so the path belongs to
//! demands that are changed by a part in ten million, differently for every user and resource; whoever uses its end
//! solves again without the change.

use super::shape::{Shape, TASKS};
use crate::fluid::linear;

/// By which part demands are changed to keep the path from branching.
const CHANGE: f64 = 1e-7;

/// The path's end: the level of each resource, infinite where it holds nobody back; and how many pieces the path had.
/// `None` when rounding lost it.
pub(super) fn follow(shape: &Shape) -> Option<(Vec<f64>, usize)> {
    let mut path = Path::new(shape);
    let most = 1000 + 50 * (shape.users + shape.dims);
    let mut turn = Turn::Start;
    for pieces in 0..most {
        path.head(&turn)?;
        match path.next() {
            (Some(event), step) => turn = path.go(event, step),
            (None, _) if path.speed > 0.0 => return Some((path.levels(), pieces)),
            (None, _) => return None,
        }
    }
    None
}

/// The rising limit, in place of a resource.
const LIMIT: usize = usize::MAX - 1;

/// What ends a piece.
enum Event {
    /// This user is held back by something else from here on.
    Switch(usize, usize),
    /// This resource is used up.
    UsedUp(usize),
}

/// What the next piece must do, which gives it its direction.
enum Turn {
    /// The height rises.
    Start,
    /// This user's new source falls against its old one.
    Apart { user: usize, old: usize },
    /// The usage of this resource, which holds nobody back any more, falls.
    Released(usize),
}

struct Path<'a> {
    shape: &'a Shape,
    /// As in the shape, changed a little.
    demand: Vec<f64>,
    per_level: Vec<f64>,
    /// Units of each user at height 1.
    rate: Vec<f64>,
    source: Vec<usize>,
    held: Vec<usize>,
    height: f64,
    level: Vec<f64>,
    /// The direction: of the height and of the levels.
    speed: f64,
    speeds: Vec<f64>,
    usage: Vec<f64>,
    growth: Vec<f64>,
}

impl Path<'_> {
    fn new(shape: &Shape) -> Path<'_> {
        let (users, dims) = (shape.users, shape.dims);
        let change: Vec<f64> = (0..shape.demand.len()).map(|k| 1.0 + CHANGE * scatter(k)).collect();
        let demand: Vec<f64> = shape.demand.iter().zip(&change).map(|(demand, change)| demand * change).collect();
        let per_level: Vec<f64> = shape.per_level.iter().zip(&change).map(|(rate, change)| rate / change).collect();
        let least = |i: usize| (0..dims).map(|r| per_level[r * users + i]).fold(f64::INFINITY, f64::min);
        let rate = (0..users).map(least).collect();
        Path {
            shape,
            demand,
            per_level,
            rate,
            source: vec![LIMIT; users],
            held: vec![0; dims],
            height: 0.0,
            level: vec![f64::INFINITY; dims],
            speed: 1.0,
            speeds: vec![0.0; dims],
            usage: vec![0.0; dims],
            growth: vec![0.0; dims],
        }
    }

    /// Where `source` would hold user `i`, and how fast that moves.
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

    /// Finds the direction of the piece: used-up resources stay used up, and the turn decides the sign.
    fn head(&mut self, turn: &Turn) -> Option<()> {
        let (users, dims) = (self.shape.users, self.shape.dims);
        let active: Vec<usize> = (0..dims).filter(|&r| self.held[r] > 0).collect();
        let size = active.len();
        let mut rows = vec![0.0; size * (size + 1)];
        for (row, &r) in active.iter().enumerate() {
            let row = &mut rows[row * (size + 1)..][..size + 1];
            let mut slopes = vec![0.0; dims];
            let mut rising = 0.0;
            for (i, demand) in self.demand[r * users..][..users].iter().enumerate() {
                match self.source[i] {
                    LIMIT => rising += demand * self.rate[i],
                    TASKS => {}
                    s => slopes[s] += demand * self.per_level[s * users + i],
                }
            }
            for (entry, &s) in row.iter_mut().zip(&active) {
                *entry = slopes[s];
            }
            row[size] = -rising;
        }
        let speeds = linear::solve(&mut rows, size)?;
        self.speed = 1.0;
        self.speeds.fill(0.0);
        for (&r, speed) in active.iter().zip(speeds) {
            self.speeds[r] = speed;
        }
        self.measure();
        let forward = match *turn {
            Turn::Start => true,
            Turn::Apart { user, old } => self.bound(user, self.source[user]).1 < self.bound(user, old).1,
            Turn::Released(r) => self.growth[r] < 0.0,
        };
        if !forward {
            self.speed = -1.0;
            self.speeds.iter_mut().chain(&mut self.growth).for_each(|speed| *speed = -*speed);
        }
        Some(())
    }

    /// The usage of all resources, and how fast it moves.
    fn measure(&mut self) {
        let users = self.shape.users;
        let bounds: Vec<(f64, f64)> = (0..users).map(|i| self.bound(i, self.source[i])).collect();
        for r in 0..self.shape.dims {
            let (mut usage, mut growth) = (0.0, 0.0);
            for (demand, (units, speed)) in self.demand[r * users..][..users].iter().zip(&bounds) {
                usage += demand * units;
                growth += demand * speed;
            }
            (self.usage[r], self.growth[r]) = (usage, growth);
        }
    }

    /// The first event in the direction, and how far off it is.
    fn next(&self) -> (Option<Event>, f64) {
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
        let resources = (0..self.shape.dims).filter(|&r| self.held[r] > 0);
        let sources: Vec<usize> = [LIMIT, TASKS].into_iter().chain(resources).collect();
        for i in 0..self.shape.users {
            let (units, speed) = self.bound(i, self.source[i]);
            for &other in &sources {
                if self.per_level.get(other * self.shape.users + i) == Some(&f64::INFINITY) {
                    continue;
                }
                let (bound, pace) = self.bound(i, other);
                if other != self.source[i] && pace < speed {
                    let step = ((bound - units) / (speed - pace)).max(0.0);
                    if step < first.1 {
                        first = (Some(Event::Switch(i, other)), step);
                    }
                }
            }
        }
        first
    }

    fn go(&mut self, event: Event, step: f64) -> Turn {
        self.height += step * self.speed;
        for (level, speed) in self.level.iter_mut().zip(&self.speeds).filter(|(level, _)| level.is_finite()) {
            *level += step * speed;
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
        let old = std::mem::replace(&mut self.source[user], new);
        if let Some(held) = self.held.get_mut(new) {
            *held += 1;
        }
        if let Some(held) = self.held.get_mut(old) {
            *held -= 1;
            if *held == 0 {
                self.level[old] = f64::INFINITY;
                return Turn::Released(old);
            }
        }
        Turn::Apart { user, old }
    }
}

/// A fixed number between -1 and 1 for every index, without pattern (the finaliser of SplitMix64).
fn scatter(index: usize) -> f64 {
    let mut bits = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) as f64 / (u64::MAX / 2) as f64 - 1.0
}
