//! Cases with labels, places, gangs, and machines that fail, leave, join and are relabelled.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::files::LABELS;
use super::{Case, Weighting, chance, pick};
use crate::slow::{Change, Event, Expression, Location, Placement, Site};

impl Case {
    /// Draws a case with labels, places, gangs and machine events.
    pub fn placed(seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let weighting = pick(&mut rng, &[Weighting::None, Weighting::None, Weighting::Scalar, Weighting::Vector]);
        let rules = [
            Placement::FirstFit,
            Placement::BestFit,
            Placement::WorstFit,
            Placement::Spread,
            Placement::DotProduct,
            Placement::Fgd,
        ];
        let mut case = Case::draw(seed, weighting, &rules);
        case.rows.truncate(rng.random_range(1..=24));
        let first = rng.random_range(0..case.policies.len());
        case.policies = [0, 2].map(|step| case.policies[(first + step) % case.policies.len()]).to_vec();
        draw_groups(&mut rng, &mut case);
        let wide = chance(&mut rng, 50);
        for row in &mut case.rows {
            row.priority = if wide { rng.random_range(0..=9) } else { row.priority };
            row.gang = chance(&mut rng, 40);
        }
        let sites = draw_sites(&mut rng, case.groups.len());
        let labels = rng.random_range(0..=LABELS.len());
        case.sites = sites;
        case.lose = chance(&mut rng, 30);
        case.style = rng.random_range(0..4);
        if chance(&mut rng, 60) {
            case.draw_events(&mut rng, labels);
        }
        if chance(&mut rng, 75) {
            let span = pick(&mut rng, &case.spans());
            case.fall_back = Some(span.max(1));
        }
        case.draw_requirements(&mut rng, labels);
        case.loosen_gangs(&mut rng);
        case
    }

    /// Returns spans to draw from: the duration of each row twice, and half of the duration.
    pub fn spans(&self) -> Vec<u64> {
        self.rows.iter().flat_map(|row| [row.duration, row.duration, row.duration / 2]).collect()
    }

    fn draw_events(&mut self, rng: &mut ChaCha8Rng, labels: usize) {
        let spans = self.spans();
        let mut times: Vec<u64> = (0..rng.random_range(1..=12))
            .map(|_| self.rows[rng.random_range(0..self.rows.len())].submit + pick(rng, &spans))
            .collect();
        times.sort_unstable();
        let machines = self.machines().len();
        let mut there = vec![None; machines];
        for at in times {
            let machine = rng.random_range(0..machines);
            let away = if chance(rng, 60) { Change::Fail } else { Change::Leave };
            let change = match there[machine] {
                _ if chance(rng, 30) => Change::Relabel(draw_labels(rng, labels)),
                None if chance(rng, 25) => Change::Join,
                None | Some(true) => away,
                Some(false) => Change::Join,
            };
            if !matches!(change, Change::Relabel(_)) {
                there[machine] = Some(change == Change::Join);
            }
            self.events.push(Event { at, machine, change });
        }
    }

    /// Returns the labels that a machine has at the start or gets in an event. A trace with any other label is invalid.
    fn known_labels(&self) -> Vec<usize> {
        let brought = self.events.iter().filter_map(|event| match &event.change {
            Change::Relabel(labels) => Some(labels),
            _ => None,
        });
        let all: BTreeSet<usize> =
            brought.chain(self.sites.iter().map(|site| &site.labels)).flatten().copied().collect();
        all.into_iter().collect()
    }

    fn draw_requirements(&mut self, rng: &mut ChaCha8Rng, labels: usize) {
        if labels > 0 {
            for site in &mut self.sites {
                site.labels = draw_labels(rng, labels);
            }
        }
        let known = self.known_labels();
        let expressions: Vec<Expression> =
            if known.is_empty() { vec![] } else { (0..3).map(|_| draw_expression(rng, &known, 2)).collect() };
        let (labelled, placed) = (pick(rng, &[0, 30, 70]), pick(rng, &[0, 30, 80]));
        let machines = self.machines().len();
        for row in 0..self.rows.len() {
            if !expressions.is_empty() && chance(rng, labelled) {
                self.rows[row].label = Some(expressions[rng.random_range(0..expressions.len())].clone());
            }
            if chance(rng, placed) {
                let machine = rng.random_range(0..machines);
                let site = &self.sites[self.group(machine).0];
                self.rows[row].place = match (rng.random_range(0..3), site.rack, site.room) {
                    (0, _, Some(room)) => Location::Room(room),
                    (1, Some(rack), room) => Location::Rack(room, rack),
                    _ => Location::Machine(machine),
                };
            }
        }
    }

    /// Clears the gang flag of rows that do not fit on their machines as a gang. A gang that does not fit is an input error and would end
    /// most cases early. One case in twenty keeps all gangs.
    pub fn loosen_gangs(&mut self, rng: &mut ChaCha8Rng) {
        let keep = chance(rng, 5);
        for policy in self.policies.clone() {
            while let Err(row) = self.expected(policy) {
                if keep {
                    return;
                }
                self.rows[row].gang = false;
            }
        }
    }
}

/// Adds up to two groups of machines. In half of the cases each machine then becomes a group of its own.
fn draw_groups(rng: &mut ChaCha8Rng, case: &mut Case) {
    for _ in 0..rng.random_range(0..=2) {
        let copy = case.groups[rng.random_range(0..case.groups.len())].clone();
        case.groups.push(copy);
    }
    if chance(rng, 50) {
        let single = |(count, capacity): &(u64, Vec<u64>)| vec![(1, capacity.clone()); *count as usize];
        case.groups = case.groups.iter().flat_map(single).collect();
    }
}

fn draw_sites(rng: &mut ChaCha8Rng, groups: usize) -> Vec<Site> {
    let (roomy, racked) = (pick(rng, &[0, 60, 100]), pick(rng, &[0, 60, 100]));
    let named = |rng: &mut ChaCha8Rng, percent| chance(rng, percent).then(|| rng.random_range(0..2));
    let site = |_| Site { labels: BTreeSet::new(), room: named(rng, roomy), rack: named(rng, racked) };
    (0..groups).map(site).collect()
}

fn draw_labels(rng: &mut ChaCha8Rng, labels: usize) -> BTreeSet<usize> {
    (0..labels).filter(|_| chance(rng, 50)).collect()
}

fn draw_expression(rng: &mut ChaCha8Rng, known: &[usize], depth: u32) -> Expression {
    let kind = if depth == 0 { 0 } else { rng.random_range(0..5) };
    let parts = |rng: &mut ChaCha8Rng| (0..2).map(|_| draw_expression(rng, known, depth - 1)).collect::<Vec<_>>();
    match kind {
        0 | 1 => Expression::Label(pick(rng, known)),
        2 => Expression::Not(Box::new(draw_expression(rng, known, depth - 1))),
        3 => Expression::All(flat(
            parts(rng),
            |part| if let Expression::All(inner) = part { Ok(inner) } else { Err(part) },
        )),
        _ => Expression::Any(flat(
            parts(rng),
            |part| if let Expression::Any(inner) = part { Ok(inner) } else { Err(part) },
        )),
    }
}

/// Flattens nested operators: `a & (b & c)` becomes `a & b & c`.
fn flat(parts: Vec<Expression>, open: impl Fn(Expression) -> Result<Vec<Expression>, Expression>) -> Vec<Expression> {
    parts.into_iter().flat_map(|part| open(part).unwrap_or_else(|part| vec![part])).collect()
}
