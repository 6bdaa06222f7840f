//! Jobs of a log that are submitted after other jobs (fields 17 and 18).

use std::collections::HashMap;

use super::{Log, PRECEDING, SwfDependencies, THINK, known};
use crate::workload::Preceding;
use plimsoll_base::rows::InputRow;
use plimsoll_base::units::{Rounding, Span, US_PER_S};

/// Fields 17 and 18 of a kept row.
pub(super) enum Link {
    /// No preceding job, and no positive think time.
    None,
    /// A think time, but no preceding job.
    ThinkAlone,
    /// The number of the preceding job, and the think time.
    After(u64, Span),
    /// A value that is no job number, such as the list `4&5&6`.
    Unreadable,
}

impl Link {
    pub fn read(row: &InputRow<'_>) -> Link {
        let think = known(row, THINK, US_PER_S, Rounding::Nearest, "");
        match (known(row, PRECEDING, 1, Rounding::Up, ""), think) {
            (Ok(None), Ok(Some(1..))) => Link::ThinkAlone,
            (Ok(None), _) => Link::None,
            (Ok(Some(_)), Ok(think)) => match row.integer(PRECEDING, "") {
                Ok(number) => Link::After(number, Span(think.unwrap_or(0))),
                Err(_) => Link::Unreadable,
            },
            _ => Link::Unreadable,
        }
    }
}

/// The numbers of rows with ignored fields 17 and 18, by reason.
#[derive(Default)]
struct IgnoredLinks {
    absent: u64,
    below: u64,
    unreadable: u64,
    think_alone: u64,
}

impl Log<'_> {
    /// Sets the preceding jobs, unless dependencies are ignored.
    pub(super) fn link(&mut self) {
        let (kept, named) =
            (self.links.len(), self.links.iter().filter(|link| !matches!(link, Link::None | Link::ThinkAlone)).count());
        if self.options.dependencies == SwfDependencies::Ignore {
            return self
                .assume("swf.dependencies", format!("ignored; {named} of {kept} kept rows have a preceding job"));
        }
        let rows: HashMap<u64, usize> = self.numbers.iter().copied().zip(0..).collect();
        let (mut followed, mut left) = (0, IgnoredLinks::default());
        for (at, link) in std::mem::take(&mut self.links).into_iter().enumerate() {
            match link {
                Link::None => {}
                Link::ThinkAlone => left.think_alone += 1,
                Link::Unreadable => left.unreadable += 1,
                Link::After(number, think) => match rows.get(&number) {
                    None => left.absent += 1,
                    Some(&before) if before >= at => left.below += 1,
                    Some(&before) => {
                        followed += 1;
                        self.follow(at, before, think);
                    }
                },
            }
        }
        self.assume(
            "swf.dependencies",
            format!("followed in {followed} of the {named} of {kept} kept rows that have a preceding job"),
        );
        for (rows, what) in [
            (left.absent, "a preceding job that is not among the kept rows"),
            (left.below, "a preceding job that is not above them"),
            (left.unreadable, "a preceding job or a think time that is not one number from 0"),
            (left.think_alone, "a think time without a preceding job"),
        ] {
            if rows > 0 {
                let warning =
                    format!("kept rows with {what} (fields 17 and 18), submitted at their submit time: {rows}");
                self.workload.quality.warnings.push(warning);
            }
        }
    }

    /// Makes the job of row `at` wait for the end of the job of row `before` and the think time.
    fn follow(&mut self, at: usize, before: usize, think: Span) {
        let (job, submit) = (self.workload.sets[before].job, self.workload.sets[before].submit);
        let job = self.workload.jobs[job.index()].clone();
        let set = &mut self.workload.sets[at];
        // The job cannot be submitted earlier, and the preceding job must come first in the order of submission.
        set.submit = set.submit.max(submit);
        set.preceding = Some(Box::new(Preceding { job, think }));
    }
}
