//! Refills machines in turn, in floats. Near convergence the floats show which users run on each machine, and which resource limits each
//! other user.

use super::UserMachines;
use crate::Exact;

/// The users that run on each machine, the users that run all their tasks, and the resource that limits each other user on each machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Pairs of a user and a machine that runs its tasks.
    pub runs: Vec<(usize, usize)>,
    /// Whether each user runs all its tasks.
    pub content: Vec<bool>,
    /// Triples of a user, a machine, and the resource that limits the user there.
    pub stops: Vec<(usize, usize, usize)>,
}

/// The state of the machines that are refilled in turn, in floats.
pub struct Turns<'a> {
    site: &'a UserMachines<'a>,
    /// The demand of each user; `unit` has the number of its tasks at a share of 1 on each machine.
    demand: Vec<Vec<f64>>,
    unit: Vec<Vec<f64>>,
    all: Vec<f64>,
    runs: Vec<Vec<f64>>,
    stops: Vec<Vec<Option<usize>>>,
}

impl Turns<'_> {
    /// Creates the state with empty machines. `unit` returns the tasks of a user at a share of 1 on a machine where it can run.
    pub fn new<'a>(site: &'a UserMachines<'a>, unit: impl Fn(usize, usize) -> f64) -> Turns<'a> {
        let (users, machines) = (site.instance.users(), site.room.len());
        let places = |i: usize| {
            let mut units = vec![0.0; machines];
            site.places(i).for_each(|m| units[m] = unit(i, m));
            units
        };
        Turns {
            site,
            demand: users.iter().map(|user| user.demand.iter().map(Exact::to_f64).collect()).collect(),
            unit: (0..users.len()).map(places).collect(),
            all: users.iter().map(|user| user.tasks.as_ref().map_or(f64::INFINITY, Exact::to_f64)).collect(),
            runs: vec![vec![0.0; machines]; users.len()],
            stops: vec![vec![None; machines]; users.len()],
        }
    }

    /// Refills every machine once. Returns the largest change of a user's share on a machine.
    pub fn turn(&mut self) -> f64 {
        let mut moved = 0.0f64;
        for m in 0..self.site.room.len() {
            let before: Vec<f64> = self.runs.iter().map(|runs| runs[m]).collect();
            self.fill(m);
            let there = before.iter().enumerate().filter(|(i, _)| self.unit[*i][m] > 0.0);
            moved = there.map(|(i, before)| (self.runs[i][m] - before).abs() / self.unit[i][m]).fold(moved, f64::max);
        }
        moved
    }

    /// Fills one machine progressively, starting from the shares that users have from their tasks on other machines.
    fn fill(&mut self, m: usize) {
        /// The next event of a user or a resource.
        enum NextEvent {
            Starts(usize),
            Content(usize),
            UsedUp(usize),
        }
        let dims = self.site.instance.resources().len();
        let here: Vec<usize> = (0..self.runs.len()).filter(|&i| self.unit[i][m] > 0.0).collect();
        here.iter().for_each(|&i| (self.runs[i][m], self.stops[i][m]) = (0.0, None));
        let elsewhere: Vec<f64> = self.runs.iter().map(|runs| runs.iter().sum()).collect();
        let start = |i: usize| elsewhere[i] / self.unit[i][m];
        let end = |i: usize| self.all[i] / self.unit[i][m];
        let mut left: Vec<Option<f64>> = self.site.room[m].iter().map(|room| Some(room.to_f64())).collect();
        let (mut waiting, mut rising): (Vec<usize>, Vec<usize>) = (here, Vec::new());
        waiting.retain(|&i| start(i) < end(i));
        let mut now = 0.0f64;
        loop {
            let speed = |r: usize| rising.iter().map(|&i| self.demand[i][r] * self.unit[i][m]).sum::<f64>();
            let speeds: Vec<f64> = (0..dims).map(speed).collect();
            let starts = waiting.iter().map(|&i| (start(i), NextEvent::Starts(i)));
            let ends = rising.iter().map(|&i| (end(i), NextEvent::Content(i)));
            let used_up = (0..dims)
                .filter(|&r| speeds[r] > 0.0)
                .filter_map(|r| left[r].map(|left| (now + left.max(0.0) / speeds[r], NextEvent::UsedUp(r))));
            let Some((then, next)) = starts.chain(used_up).chain(ends).min_by(|a, b| a.0.total_cmp(&b.0)) else {
                break;
            };
            let step = (then - now).max(0.0);
            rising.iter().for_each(|&i| self.runs[i][m] += step * self.unit[i][m]);
            left.iter_mut().zip(&speeds).for_each(|(left, speed)| *left = left.map(|left| left - step * speed));
            now = now.max(then);
            match next {
                NextEvent::Starts(i) => {
                    waiting.retain(|&other| other != i);
                    rising.push(i);
                }
                NextEvent::Content(i) => rising.retain(|&other| other != i),
                NextEvent::UsedUp(r) => {
                    left[r] = None;
                    let needs = |i: &usize| self.demand[*i][r] > 0.0;
                    waiting.iter().chain(&rising).filter(|i| needs(i)).for_each(|&i| self.stops[i][m] = Some(r));
                    waiting.retain(|i| !needs(i));
                    rising.retain(|i| !needs(i));
                }
            }
        }
    }

    /// Returns the reading of the current state, with shares below `least` treated as 0.
    pub fn reading(&self, least: f64) -> Reading {
        let users = 0..self.runs.len();
        let pairs = || users.clone().flat_map(|i| self.site.places(i).map(move |m| (i, m)));
        let content = |i: usize| self.runs[i].iter().sum::<f64>() >= self.all[i] * (1.0 - least);
        let stops = |(i, m): (usize, usize)| self.stops[i][m].filter(|_| !content(i)).map(|r| (i, m, r));
        Reading {
            runs: pairs().filter(|&(i, m)| self.runs[i][m] > least * self.unit[i][m]).collect(),
            content: users.clone().map(content).collect(),
            stops: pairs().filter_map(stops).collect(),
        }
    }
}
