//! The switches of the mechanism: rules of the published simulators, and corrected variants.

use plimsoll_base::units::Span;

/// The end of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundEnd {
    /// With the longest micro-task, which is at most the round length (Gavel's simulator).
    #[default]
    Longest,
    /// After the round length.
    Fixed,
}

/// The treatment of a selected job that arrived after the last computation of fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewJobs {
    /// Its accelerators count as used, but it does not run (Gavel's simulator).
    #[default]
    Wait,
    /// It runs.
    Fill,
}

/// The order of the worker types in a selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TypeOrder {
    /// As listed for policies that are aware of types or pack jobs, otherwise a random permutation in each round (Gavel).
    #[default]
    Auto,
    /// As listed: indices of worker types.
    Listed(Vec<usize>),
    /// A random permutation in each round.
    Random,
}

/// The event that costs the overhead of a preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverheadWhen {
    /// The job did not run in the preceding round (Shockwave).
    #[default]
    AfterGap,
    /// The job did not keep its accelerators.
    OnMove,
}

/// The overhead of a preemption: checkpoint and restore together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// The progress that a job loses in its first round.
    pub lost: Span,
    /// The event that costs it.
    pub when: OverheadWhen,
    /// A micro-task that is shorter than the round by at least this much pays nothing (Shockwave: 5 s, for jobs that end).
    pub spared: Span,
}

/// Options of the mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The round length.
    pub round: Span,
    /// The end of a round.
    pub round_end: RoundEnd,
    /// The shortest time between two computations of fractions (Gavel: 1,920 s, Shockwave: 1,000 s).
    pub at_least: Span,
    /// The shortest time between two computations of ideal fractions; an arrival before has no fraction until a later arrival.
    pub ideal_at_least: Span,
    /// Whether the computation that follows one at time 0 needs no delay (the published simulators store 0 for "never").
    pub second_at_once: bool,
    /// The treatment of new jobs.
    pub new_jobs: NewJobs,
    /// The order of types.
    pub type_order: TypeOrder,
    /// Whether all types are sorted in one list.
    pub one_list: bool,
    /// The overhead.
    pub overhead: Overhead,
    /// The factor on the rates of each job in its micro-tasks, by id in millionths; empty: 1. Policies use the rates of the table.
    pub pace: Vec<u32>,
    /// The seed of the run; the order of types is drawn from `seed + 5`.
    pub seed: u64,
}

impl Default for Options {
    /// Returns the options of Gavel's figures: rounds of 360 s, at least 1,920 s between computations, no overhead, seed 0.
    fn default() -> Options {
        Options {
            round: Span(360_000_000),
            round_end: RoundEnd::default(),
            at_least: Span(1_920_000_000),
            ideal_at_least: Span(0),
            second_at_once: true,
            new_jobs: NewJobs::default(),
            type_order: TypeOrder::default(),
            one_list: false,
            overhead: Overhead::default(),
            pace: Vec::new(),
            seed: 0,
        }
    }
}

impl Options {
    /// Returns the options of Shockwave's simulator: rounds of 120 s, at least 1,000 s, and 20 s lost after a gap.
    pub fn shockwave() -> Options {
        let overhead = Overhead { lost: Span(20_000_000), when: OverheadWhen::AfterGap, spared: Span(5_000_000) };
        Options { round: Span(120_000_000), at_least: Span(1_000_000_000), overhead, ..Options::default() }
    }
}
