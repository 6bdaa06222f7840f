//! Several rows of one execution: the first, the last, the sum, or each in the order of time.
//!
//! Logs are often unsorted or sorted by the end of a job, so the order of the file decides only between equal times.

use std::collections::HashMap;

use plimsoll_sim::workload::Quality;

use crate::bind::BoundFormula;
use crate::draft::SetDraft;
use crate::mapping::AttemptRule;
use crate::report::RowReport;

/// The expressions of `[attempts]`.
pub struct BoundAttempts {
    /// The key.
    pub key: BoundFormula,
    /// The time that orders the rows of a key.
    pub order: Option<BoundFormula>,
    /// The rule.
    pub rule: AttemptRule,
}

/// The drafts of each key.
#[derive(Debug, Default)]
pub struct Attempts {
    /// The only draft of each key, for the rules that keep one.
    one: HashMap<String, usize>,
    /// All drafts of each key, in the order of the log.
    each: HashMap<String, Vec<usize>>,
    /// Rows with the time of another row of their key.
    ties: u64,
}

impl Attempts {
    /// Records that the draft at index `next` has a key. Returns the earlier draft of the key if the two must be merged.
    pub fn add(&mut self, key: String, next: usize, rule: AttemptRule) -> Option<usize> {
        if rule == AttemptRule::Each {
            self.each.entry(key).or_default().push(next);
            return None;
        }
        let at = *self.one.entry(key).or_insert(next);
        (at < next).then_some(at)
    }

    /// Merges a draft with the one that represents its key so far.
    pub fn merge(&mut self, known: &mut SetDraft, draft: SetDraft, rule: AttemptRule, report: &mut RowReport) {
        self.ties += u64::from(known.order == draft.order);
        let is_later = draft.order >= known.order;
        let replaces = is_later == (rule != AttemptRule::First);
        let submit = known.submit.min(draft.submit);
        let sum = known.set.duration.0.saturating_add(draft.set.duration.0);
        let dropped = if replaces { std::mem::replace(known, draft) } else { draft };
        let reason = match rule {
            AttemptRule::First => "a later attempt of the same execution",
            _ => "an earlier attempt of the same execution",
        };
        if rule != AttemptRule::First {
            known.submit = submit;
        }
        if rule == AttemptRule::Sum {
            known.set.duration.0 = sum;
        }
        report.drop_row(reason, dropped.line, dropped.file as usize);
    }

    /// Sorts the drafts of each key by time, within their positions, and reports equal times.
    pub fn finish(mut self, drafts: &mut [SetDraft], quality: &mut Quality) {
        for places in self.each.into_values().filter(|places| places.len() > 1) {
            let mut sorted: Vec<SetDraft> = places.iter().map(|&at| std::mem::take(&mut drafts[at])).collect();
            sorted.sort_by_key(|draft| draft.order);
            self.ties += sorted.windows(2).filter(|pair| pair[0].order == pair[1].order).count() as u64;
            for (at, draft) in places.into_iter().zip(sorted) {
                drafts[at] = draft;
            }
        }
        if self.ties > 0 {
            quality.warnings.push(format!(
                "attempts with the time of another attempt of their execution, taken in the order of the log: {}; \
                 attempts.order is the time that orders them",
                self.ties
            ));
        }
    }
}
