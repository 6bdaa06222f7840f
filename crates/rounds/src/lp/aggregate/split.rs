//! From times of kinds to times of jobs: violated rows, the time of each job, and pairs of jobs.

use super::{Cut, KindJob, KindProgram, KindSolution};

/// A job may exceed half of the time of pairs inside its kind by this part, which is rounding.
const ROUNDING: f64 = 1e-12;
/// The column of unused time.
const UNUSED: usize = usize::MAX;

/// A part of the profile of a kind.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    column: usize,
    rate: f64,
    length: f64,
}

/// The columns of a kind in descending order of rate; `length` is the time of the kind per unit of the column.
pub(super) fn orders(program: &KindProgram) -> Vec<Vec<Segment>> {
    let mut orders = vec![Vec::new(); program.kinds.len()];
    for (column, own) in program.columns.iter().enumerate() {
        own.sides().for_each(|(kind, rate, length)| orders[kind].push(Segment { column, rate, length }));
    }
    for order in &mut orders {
        order.sort_by(|a: &Segment, b| b.rate.total_cmp(&a.rate).then(a.column.cmp(&b.column)));
    }
    orders
}

/// Returns the jobs of a kind with their required rates at a level, in descending order of these.
fn sorted_needs(program: &KindProgram, kind: usize, level: f64) -> Vec<(f64, usize)> {
    let needs = program.kinds[kind].iter().enumerate();
    let mut needs: Vec<(f64, usize)> = needs.map(|(at, need)| (need.base + need.slope * level, at)).collect();
    needs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    needs
}

/// Walks a profile: calls `visit(q, F(q), rate at q)` for each whole number `q` up to `jobs`.
fn integrate(order: &[Segment], x: &[f64], jobs: usize, mut visit: impl FnMut(usize, f64, f64)) {
    let (mut end, mut area, mut q) = (0.0, 0.0, 1);
    for segment in order {
        let length = segment.length * x[segment.column];
        while q <= jobs && q as f64 <= end + length {
            visit(q, area + (q as f64 - end) * segment.rate, segment.rate);
            q += 1;
        }
        end += length;
        area += length * segment.rate;
    }
    (q..=jobs).for_each(|q| visit(q, area, 0.0));
}

/// Returns a row for each range of consecutive `q` of which the required rates exceed the profile by more than `tolerance` of them: that
/// of the largest relative excess.
pub(super) fn violated(
    program: &KindProgram,
    orders: &[Vec<Segment>],
    x: &[f64],
    level: f64,
    tolerance: f64,
) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for (kind, order) in orders.iter().enumerate() {
        let needs = sorted_needs(program, kind, level);
        let (mut required, mut base, mut slope) = (0.0, 0.0, 0.0);
        let mut worst: Option<(f64, Cut)> = None;
        integrate(order, x, needs.len(), |q, reached, theta| {
            let (need, at) = needs[q - 1];
            let own = program.kinds[kind][at];
            (required, base, slope) = (required + need, base + own.base, slope + own.slope);
            let excess = (required - reached) / required;
            if required > 0.0 && excess > tolerance {
                if worst.is_none_or(|(most, _)| excess > most) {
                    worst = Some((excess, Cut { kind, theta, jobs: q as f64, base, slope }));
                }
            } else {
                cuts.extend(worst.take().map(|(_, cut)| cut));
            }
        });
        cuts.extend(worst.map(|(_, cut)| cut));
    }
    cuts
}

/// The time of each job of a kind on columns; of a pair inside the kind the job's own time.
pub(super) type KindShares = Vec<Vec<(usize, f64)>>;

/// Divides the time of each kind among its jobs.
///
/// The required rates of a kind are increased in proportion as far as its profile permits. Then each job, in descending order of its required
/// rate, takes the connected unit of the profile that has this rate as its mean (Horvath, Lam and Sethi 1977): all conditions stay true
/// for the other jobs. Jobs with equal requirements receive the mean of their times.
pub(super) fn shares(program: &KindProgram, x: &[f64], level: f64) -> Vec<KindShares> {
    let divide = |(kind, order): (usize, &Vec<Segment>)| {
        let needs = sorted_needs(program, kind, level);
        let (mut required, mut factor) = (0.0, f64::INFINITY);
        integrate(order, x, needs.len(), |q, reached, _| {
            required += needs[q - 1].0;
            factor = factor.min(if required > 0.0 { reached / required } else { f64::INFINITY });
        });
        let mut profile: Vec<Segment> =
            order.iter().map(|own| Segment { length: own.length * x[own.column], ..*own }).collect();
        profile.retain(|segment| segment.length > 0.0);
        let used: f64 = profile.iter().map(|segment| segment.length).sum();
        profile.push(Segment { column: UNUSED, rate: 0.0, length: (needs.len() as f64 - used).max(0.0) });
        let mut shares: KindShares = vec![Vec::new(); needs.len()];
        for &(need, at) in &needs {
            let rate = if factor.is_finite() { need * factor } else { 0.0 };
            shares[at] = take_unit(&mut profile, rate);
        }
        average(&needs, &mut shares);
        shares
    };
    orders(program).iter().enumerate().map(divide).collect()
}

/// Removes the connected unit of time with the mean `rate` from a profile, the first one if all rates are below, the last one if all are above.
fn take_unit(profile: &mut Vec<Segment>, rate: f64) -> Vec<(usize, f64)> {
    // The unit starts `into` after the start of segment `first`; it ends `room` before the end of segment `last`.
    let (mut first, mut into, mut last, mut room) = (0, 0.0, 0, 0.0);
    let (mut left, mut mean) = (1.0f64, 0.0);
    for (at, segment) in profile.iter().enumerate() {
        let part = left.min(segment.length);
        (last, room) = (at, segment.length - part);
        mean += part * segment.rate;
        left -= part;
        if left <= 0.0 {
            break;
        }
    }
    while mean > rate {
        if room <= 0.0 {
            if last + 1 == profile.len() {
                break;
            }
            (last, room) = (last + 1, profile[last + 1].length);
            continue;
        }
        let before = profile[first].length - into;
        let fall = profile[first].rate - profile[last].rate;
        let step = before.min(room);
        let wanted = if fall > 0.0 { (mean - rate) / fall } else { f64::INFINITY };
        if wanted <= step {
            (into, room) = (into + wanted, room - wanted);
            break;
        }
        mean -= step * fall;
        room -= step;
        if step == before {
            (first, into) = (first + 1, 0.0);
        } else {
            into += step;
        }
    }
    let mut taken = Vec::new();
    for at in first..=last.min(profile.len() - 1) {
        let own = &mut profile[at];
        let from = if at == first { into } else { 0.0 };
        let to = if at == last { own.length - room } else { own.length };
        let length = (to - from).max(0.0);
        if length > 0.0 && own.column != UNUSED {
            taken.push((own.column, length));
        }
        own.length -= length;
    }
    profile.retain(|segment| segment.length > 0.0 || segment.column == UNUSED);
    taken
}

/// Gives jobs of equal requirements the mean of their times.
fn average(needs: &[(f64, usize)], shares: &mut KindShares) {
    for group in needs.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
        let mut sum: Vec<(usize, f64)> = group.iter().flat_map(|&(_, at)| std::mem::take(&mut shares[at])).collect();
        sum.sort_by_key(|part| part.0);
        let mean: Vec<(usize, f64)> = sum
            .chunk_by(|a, b| a.0 == b.0)
            .map(|parts| (parts[0].0, parts.iter().map(|part| part.1).sum::<f64>() / group.len() as f64))
            .collect();
        group.iter().for_each(|&(_, at)| shares[at].clone_from(&mean));
    }
}

/// A job with more than half of the time of pairs inside its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Violation {
    pub kind: usize,
    pub job: usize,
    pub column: usize,
    /// The job's time above half of the total.
    pub excess: f64,
}

/// Returns the jobs that have more than half of the time of pairs inside their kind, by kind and position.
pub(super) fn violations(program: &KindProgram, shares: &[KindShares]) -> Vec<Violation> {
    let mut total = vec![0.0; program.columns.len()];
    shares.iter().flatten().flatten().for_each(|&(column, time)| total[column] += time);
    let mut found = Vec::new();
    for (kind, shares) in shares.iter().enumerate() {
        for (job, own) in shares.iter().enumerate() {
            let inside = own.iter().filter(|part| program.columns[part.0].is_inside());
            let excesses = inside.map(|&(column, time)| (column, time - total[column] / 2.0));
            let exceeding = excesses.filter(|&(_, excess)| excess > ROUNDING);
            found.extend(exceeding.map(|(column, excess)| Violation { kind, job, column, excess }));
        }
    }
    found
}

/// Forms pairs of jobs. `origin` has the jobs of each kind of the refined `program`; rates are those of `original`.
pub(super) fn allocation(
    program: &KindProgram,
    shares: &[KindShares],
    origin: &[Vec<KindJob>],
    original: &KindProgram,
) -> KindSolution {
    let mut solution = KindSolution::default();
    // The jobs with time on each column: of the first and of the second kind.
    let mut sides: Vec<[Vec<(KindJob, f64)>; 2]> = vec![[Vec::new(), Vec::new()]; program.columns.len()];
    for (kind, shares) in shares.iter().enumerate() {
        for (own, &job) in shares.iter().zip(&origin[kind]) {
            for &(column, time) in own {
                let second = program.columns[column].first.0 as usize != kind;
                sides[column][usize::from(second)].push((job, time));
            }
        }
    }
    let mut rates: Vec<Vec<f64>> = original.kinds.iter().map(|jobs| vec![0.0; jobs.len()]).collect();
    let mut add = |job: KindJob, rate: f64| rates[job.0 as usize][job.1 as usize] += rate;
    for (column, [first, second]) in program.columns.iter().zip(sides) {
        let Some(beside) = column.second else {
            for (job, time) in first {
                solution.alone.push((job, column.worker_type, time));
                add(job, time * column.first.1);
            }
            continue;
        };
        // Inside a kind the jobs are in line, and each instant of the first half is paired with that of the second half.
        let (first, second) = if column.is_inside() { halves(first) } else { (first, second) };
        let (mut a, mut b) = (first.into_iter().peekable(), second.into_iter().peekable());
        while let (Some(one), Some(other)) = (a.peek_mut(), b.peek_mut()) {
            let time = one.1.min(other.1);
            if one.0 != other.0 && time > 0.0 {
                solution.pairs.push((one.0, other.0, column.worker_type, time));
                add(one.0, time * column.first.1);
                add(other.0, time * beside.1);
            }
            (one.1, other.1) = (one.1 - time, other.1 - time);
            let (ended, other_ended) = (one.1 <= 0.0, other.1 <= 0.0);
            if ended {
                a.next();
            }
            if other_ended {
                b.next();
            }
        }
    }
    if original.level {
        let levels = original.kinds.iter().flatten().zip(rates.iter().flatten());
        let levels = levels.filter(|(need, _)| need.slope > 0.0).map(|(need, rate)| (rate - need.base) / need.slope);
        solution.gap.below = levels.fold(f64::INFINITY, f64::min);
    }
    solution.rates = rates;
    solution
}

/// Jobs with their times on a column.
type Line = Vec<(KindJob, f64)>;

/// Cuts a line of jobs in the middle of its time. A job on both sides of the middle is in both halves.
fn halves(line: Line) -> (Line, Line) {
    let half: f64 = line.iter().map(|part| part.1).sum::<f64>() / 2.0;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut end = 0.0;
    for (job, time) in line {
        let before = (half - end).clamp(0.0, time);
        if before > 0.0 {
            first.push((job, before));
        }
        if time > before {
            second.push((job, time - before));
        }
        end += time;
    }
    (first, second)
}
