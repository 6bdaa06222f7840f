//! Several rows of one execution: the first, the last, the sum, or each in the order of time.
//!
//! Logs are often unsorted or sorted by the end of a job, so the order of the file decides only between equal times.

use plimsoll_base::error::Result;

use crate::bind::BoundFormula;
use crate::draft::SetDraft;
use crate::mapping::AttemptRule;
use crate::report::RowReport;
use crate::spill::{Decoder, Encoder, Sorted, Sorter, Spill};
use crate::tables::InterruptWatch;

/// The expressions of `[attempts]`.
pub struct BoundAttempts {
    /// The key.
    pub key: BoundFormula,
    /// The time that orders the rows of a key.
    pub order: Option<BoundFormula>,
    /// The rule.
    pub rule: AttemptRule,
}

/// The drafts of a log with attempts.
pub struct Attempts {
    rule: AttemptRule,
    /// The number of resources.
    dims: usize,
    /// All drafts, in the order of keys and then of the log. Keys begin with 1, and those of drafts without a key are empty.
    keyed: Sorter,
    key: Encoder,
    value: Encoder,
}

impl Attempts {
    /// Creates an empty collection of drafts with `dims` resources.
    pub fn new(rule: AttemptRule, dims: usize, spill: &Spill) -> Attempts {
        let keyed = spill.sorter();
        Attempts { rule, dims, keyed, key: Encoder::default(), value: Encoder::default() }
    }

    /// Adds the draft of a row with its key, if it has one. Errors: a temporary file cannot be written.
    pub fn add(&mut self, key: Option<&str>, row: u64, draft: &SetDraft) -> Result<()> {
        self.key.clear();
        key.iter().for_each(|key| _ = self.key.integer(1).key_text(key.as_bytes()));
        self.key.key_sequence(row);
        draft.encode(self.dims, self.value.clear());
        self.keyed.push(&self.key.bytes, &self.value.bytes)
    }

    /// Replaces the attempts of each key by the draft that represents them, in the place of the first one, or sorts them by time within
    /// their places. Returns the drafts in the order of the log. Errors: a temporary file cannot be used, or those of `watch`.
    pub fn finish(self, report: &mut RowReport, spill: &Spill, watch: &mut InterruptWatch<'_>) -> Result<Sorted> {
        let Attempts { rule, dims, keyed, key, value } = self;
        let mut placed = PlacedDrafts { dims, sorter: spill.sorter(), key, value };
        let mut ties = 0;
        let keyed = keyed.finish()?;
        let mut cursor = keyed.cursor()?;
        let (mut group, mut drafts): (Vec<u8>, Vec<(u64, SetDraft)>) = (Vec::new(), Vec::new());
        while cursor.advance()? {
            watch.check()?;
            let (key, row) = Decoder::split_sequence(cursor.key())?;
            let draft = SetDraft::decode(dims, cursor.value())?;
            if key != group || key.is_empty() {
                ties += placed.push_group(&mut drafts)?;
                group = key.to_owned();
            }
            match drafts.first_mut().filter(|_| rule != AttemptRule::Each) {
                None => drafts.push((row, draft)),
                Some((_, known)) => {
                    ties += u64::from(known.order == draft.order);
                    merge(known, draft, rule, row, report);
                }
            }
        }
        ties += placed.push_group(&mut drafts)?;
        if ties > 0 {
            report.quality.warnings.push(format!(
                "attempts with the time of another attempt of their execution, taken in the order of the log: {ties}; \
                 attempts.order is the time that orders them"
            ));
        }
        placed.sorter.finish()
    }
}

/// Drafts in the order of the log.
struct PlacedDrafts {
    dims: usize,
    sorter: Sorter,
    key: Encoder,
    value: Encoder,
}

impl PlacedDrafts {
    /// Adds the drafts of a key, sorted by time within their places. Returns the number of equal times.
    fn push_group(&mut self, group: &mut Vec<(u64, SetDraft)>) -> Result<u64> {
        let (places, mut drafts): (Vec<u64>, Vec<SetDraft>) = group.drain(..).unzip();
        drafts.sort_by_key(|draft| draft.order);
        for (row, draft) in places.into_iter().zip(&drafts) {
            self.key.clear().key_sequence(row);
            draft.encode(self.dims, self.value.clear());
            self.sorter.push(&self.key.bytes, &self.value.bytes)?;
        }
        Ok(drafts.windows(2).filter(|pair| pair[0].order == pair[1].order).count() as u64)
    }
}

/// Merges the draft of a later row with the one that represents its key so far.
fn merge(known: &mut SetDraft, draft: SetDraft, rule: AttemptRule, row: u64, report: &mut RowReport) {
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
    report.drop_row_at(row, reason, dropped.line, dropped.file as usize);
}
