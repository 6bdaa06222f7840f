//! Smaller cases, to find the smallest one that differs.

use super::{Case, Weighting};
use crate::slow::{Inside, Location, Placement};

impl Case {
    /// Returns smaller cases. Each one lacks one part of this case.
    pub fn smaller(&self) -> Vec<Case> {
        let mut all: Vec<Case> = Vec::new();
        let mut with = |change: &dyn Fn(&mut Case)| {
            let mut case = self.clone();
            change(&mut case);
            all.push(case);
        };
        if self.policies.len() > 1 {
            self.policies.iter().for_each(|&policy| with(&|case| case.policies = vec![policy]));
        }
        let mut jobs: Vec<usize> = self.rows.iter().map(|row| row.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        for job in jobs.iter().filter(|_| jobs.len() > 1) {
            with(&|case| case.rows.retain(|row| row.job != *job));
        }
        (0..self.events.len()).for_each(|event| with(&|case| drop(case.events.remove(event))));
        for row in 0..self.rows.len() {
            if self.rows[row].tasks > 1 {
                with(&|case| case.rows[row].tasks -= 1);
            }
            if self.rows[row].gang {
                with(&|case| case.rows[row].gang = false);
            }
            if self.rows[row].priority > 0 {
                with(&|case| case.rows[row].priority = 0);
            }
            if self.rows[row].stable {
                with(&|case| case.rows[row].stable = false);
            }
            if self.rows[row].label.is_some() {
                with(&|case| case.rows[row].label = None);
            }
            if self.rows[row].place != Location::Cluster {
                with(&|case| case.rows[row].place = Location::Cluster);
            }
        }
        for resource in &self.devices {
            with(&|case| case.devices.retain(|other| other != resource));
        }
        if self.nodes.iter().flatten().flatten().any(|&node| node > 0) {
            with(&|case| case.nodes.iter_mut().flatten().flatten().for_each(|node| *node = 0));
        }
        if self.hoard.is_some() {
            with(&|case| case.hoard = None);
        }
        for part in self.faults.iter().flat_map(|faults| faults.split(',')) {
            let others: Vec<&str> = self.faults.iter().flat_map(|all| all.split(',')).filter(|o| *o != part).collect();
            with(&|case| case.faults = (!others.is_empty()).then(|| others.join(",")));
        }
        if self.preempt.is_some() {
            with(&|case| case.preempt = None);
        }
        if self.slowdown.is_some() {
            with(&|case| case.slowdown = None);
        }
        if self.weighting != Weighting::None {
            with(&|case| (case.weighting, case.weights) = (Weighting::None, Vec::new()));
        }
        if !self.speeds.is_empty() {
            with(&|case| case.speeds = Vec::new());
        }
        if self.inside != Inside::Usual {
            with(&|case| case.inside = Inside::Usual);
        }
        if !matches!(self.placement, Placement::FirstFit | Placement::Pooled) {
            with(&|case| case.placement = Placement::FirstFit);
        }
        all
    }
}
