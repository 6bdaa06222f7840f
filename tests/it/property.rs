//! Searches drawn cases for one that violates a law. `proptest` reduces the first such case and stores its seed in `tests/it/*.found`;
//! later runs try the stored seeds first. The tests define how cases are drawn and reduced. Every run draws the same cases;
//! `PROPTEST_RNG_SEED=7 PROPTEST_CASES=10000 cargo test --release --test it twin` draws other cases. If `PROPTEST_MAX_SHRINK_ITERS` is 0, a
//! failing case is neither reduced nor stored.

use std::fmt::Debug;

use proptest::prelude::{Strategy, TestCaseError};
use proptest::strategy::{NewTree, ValueTree};
use proptest::test_runner::{Config, FailurePersistence, FileFailurePersistence, RngSeed, TestError, TestRunner};
use rand::Rng;

/// A case that violates a law, and the violation.
#[derive(Debug)]
pub struct Broken<T> {
    pub case: T,
    pub problem: String,
}

/// Draws cases until one violates a law, and reduces this case. `file` is the source file of the test.
pub fn search<T: Clone + Debug>(
    file: &'static str,
    cases: u32,
    draw: fn(u64) -> T,
    smaller: fn(&T) -> Vec<T>,
    law: impl Fn(&T) -> Result<(), String>,
) -> Result<(), Broken<T>> {
    let given = Config::default();
    let limited = std::env::var_os("PROPTEST_MAX_SHRINK_ITERS").is_some();
    let reduces = !limited || given.max_shrink_iters > 0;
    let stored = || Box::new(FileFailurePersistence::WithSource("found")) as Box<dyn FailurePersistence>;
    let config = Config {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() { given.cases } else { cases },
        rng_seed: if given.rng_seed == RngSeed::Random { RngSeed::Fixed(1) } else { given.rng_seed },
        max_shrink_iters: if limited { given.max_shrink_iters } else { 10_000 },
        failure_persistence: reduces.then(stored),
        source_file: Some(file),
        ..given
    };
    let law = |case: T| law(&case).map_err(TestCaseError::fail);
    match TestRunner::new(config).run(&Draws { draw, smaller }, law) {
        Ok(()) => Ok(()),
        Err(TestError::Fail(problem, case)) => Err(Broken { case, problem: problem.to_string() }),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

#[derive(Debug)]
struct Draws<T> {
    draw: fn(u64) -> T,
    smaller: fn(&T) -> Vec<T>,
}

impl<T: Clone + Debug> Strategy for Draws<T> {
    type Tree = Shrinking<T>;
    type Value = T;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let case = (self.draw)(runner.rng().next_u64());
        Ok(Shrinking { case, before: None, next: 0, useless: 0, smaller: self.smaller })
    }
}

/// Leaves out one part at a time until no part can be left out.
struct Shrinking<T> {
    case: T,
    /// The case before the last step.
    before: Option<T>,
    /// The index of the next smaller case. `useless` counts the smaller cases tried since the last one that violated the law.
    next: usize,
    useless: usize,
    smaller: fn(&T) -> Vec<T>,
}

impl<T: Clone + Debug> ValueTree for Shrinking<T> {
    type Value = T;

    fn current(&self) -> T {
        self.case.clone()
    }

    fn simplify(&mut self) -> bool {
        // The case violates the law, so it is kept. The part after the removed part now has its index.
        (self.before, self.useless) = (None, 0);
        self.step()
    }

    fn complicate(&mut self) -> bool {
        let Some(before) = self.before.take() else { return false };
        self.case = before;
        self.next += 1;
        self.step()
    }
}

impl<T> Shrinking<T> {
    /// Moves to a smaller case if an untried one exists.
    fn step(&mut self) -> bool {
        let mut smaller = (self.smaller)(&self.case);
        if self.useless >= smaller.len() {
            return false;
        }
        self.next %= smaller.len();
        self.useless += 1;
        self.before = Some(std::mem::replace(&mut self.case, smaller.swap_remove(self.next)));
        true
    }
}

/// A wrong law is detected, and the reported case is the smallest.
#[test]
fn a_broken_law_ends_with_the_smallest_case() {
    let without = |all: &Vec<u64>| {
        let each = (0..all.len()).map(|at| [&all[..at], &all[at + 1..]].concat());
        let less = (0..all.len()).filter(|&at| all[at] > 0).map(|at| {
            let mut less = all.clone();
            less[at] /= 2;
            less
        });
        each.chain(less).collect()
    };
    let draw = |seed: u64| (0..20).map(|at| seed.rotate_left(at) % 100).collect::<Vec<u64>>();
    let law = |all: &Vec<u64>| {
        if all.iter().filter(|&&one| one > 9).count() < 2 { Ok(()) } else { Err("two are above 9".into()) }
    };
    // Without a source file no seed is stored.
    let broken = search("", 100, draw, without, law).expect_err("a case with two above 9");
    assert_eq!(broken.problem, "two are above 9");
    assert!(broken.case.len() == 2 && broken.case.iter().all(|one| (10..20).contains(one)), "{:?}", broken.case);
    assert!(search("", 100, draw, without, |_| Ok(())).is_ok());
}
