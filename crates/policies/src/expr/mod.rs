//! Policies defined by an expression: the user with the least value is served first, or the task set with the least value.
//!
//! An expression with divisors that are constants of the run is computed exactly, in integers of up to 252 bits ([`exact`]). Otherwise it
//! is computed in fixed point ([`fixed`]): every product and quotient is rounded down to 2^-64. In a rank, values of the whole cluster and
//! the instant are those at the beginning of a round; in a condition of admission, values of the whole cluster are current.

mod environment;
mod exact;
mod fixed;
mod functions;
mod lex;
mod names;
mod order;
mod parse;
mod program;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ethnum::I256;

use self::environment::{Environment, Stop};
use self::exact::{Exact, Ranged};
use self::fixed::Rounded;
use self::names::Var;
use self::parse::{Ast, Parts, Test};
use self::program::{Check, Fixed, Number, ProgramNode, View};
use super::{
    Ask, Capabilities, Needs, Parsed, Policy, PolicyRow, Queue, Rank, RankOrder, Reason, Setup, Stale, Verdict, line,
};
use crate::job_order::JobOrder;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Resources, Time, UserId};
use plimsoll_sim::books::Books;

pub use self::names::{Clause, NAMES, Name, Of, ValueUnit};

/// `expr:(RANK)`, `expr:(RANK; admit CONDITION; order KEY)`, `expr:(order KEY)`
pub static ROW: PolicyRow = PolicyRow {
    name: "expr",
    spelling: "expr:(RANK)",
    rank: RankOrder::Lowest("value of RANK"),
    meaning: "The user with the least value of an expression first; (RANK; admit CONDITION; order KEY) has more parts; (order KEY) \
              is one queue.",
    source: "the definition is the user's",
    example: "expr:(max(held[r] / (capacity[r] * weight[r])))",
    checked: "expr:(max(held[r] / (capacity[r] * weight[r])))",
    variants: &[],
    keys: &[],
    read: |given| {
        let text = given.unwrap_or_default();
        let Parts { rank, admit, order } = parse::parse(text)?;
        let mut named = Vec::new();
        rank.iter().for_each(|rank| rank.names(&mut |var| named.push(var)));
        let decoded = named.contains(&Var::Key);
        let job_order = order.map(|order| order::named(text, order, decoded)).transpose()?;
        let name = text.to_owned();
        let parsed = Parsed::new(Some(name.clone()), move |setup| {
            Ok(Box::new(Expression::new(&name, rank.as_ref(), admit.as_ref(), setup)?))
        });
        Ok(parsed.ordered(job_order))
    },
};

/// Returns the order of task sets by the least value of an expression, such as `job_attained`. [`key_value`] decodes its keys. Errors: the
/// expected form.
pub fn order_by(text: &str) -> std::result::Result<Arc<dyn JobOrder>, String> {
    match parse::parse(&format!("(order {text})"))? {
        Parts { rank: None, admit: None, order: Some(order) } => order::named(text, order, true),
        _ => Err("one value, such as job_attained".to_owned()),
    }
}

/// Returns the value of a key of an order by [`order_by`], in the units of expressions (seconds, cores, GiB).
pub fn key_value(key: u128) -> f64 {
    Fixed::from_key(key).number()
}

/// A compiled number.
#[derive(Clone, Debug)]
enum Formula {
    /// Exact, with its least value.
    Narrow(ProgramNode<i128>, i128),
    /// Exact in more bits, with its least value.
    Wide(ProgramNode<I256>, I256),
    /// Rounded to fixed point.
    Rounded(ProgramNode<Fixed>),
}

/// The number of bits of a rank, and of a key.
const RANK_BITS: u32 = 255;
const KEY_BITS: u32 = 128;

/// The bound below which integers are [`Formula::Narrow`].
const NARROW: I256 = I256::from_words(0, 1 << 126);

impl Formula {
    /// Compiles a number for keys of this number of bits. Errors: the problem.
    fn new(ast: &Ast, setup: Option<&Setup>, bits: u32) -> std::result::Result<Formula, String> {
        let mut exact = Exact::new(Environment::new(setup));
        match exact.number(ast) {
            Ok(Ranged { node, low, .. }) if exact.most < NARROW => {
                Ok(Formula::Narrow(node.map(&|value: I256| value.as_i128()), low.as_i128()))
            }
            Ok(Ranged { node, low, high }) if (high - low).unsigned_abs().leading_zeros() >= 256 - bits => {
                Ok(Formula::Wide(node, low))
            }
            Ok(_) | Err(Stop::Inexact) => Formula::rounded(ast, setup),
            Err(stop) => Err(stop.text()),
        }
    }

    /// Compiles a number to fixed point. Errors: the problem.
    fn rounded(ast: &Ast, setup: Option<&Setup>) -> std::result::Result<Formula, String> {
        match Rounded(Environment::new(setup)).number(ast) {
            Ok(node) => Ok(Formula::Rounded(node)),
            Err(stop) => Err(stop.text()),
        }
    }

    fn rank(&self, view: &impl View, class: usize) -> Rank {
        match self {
            Formula::Narrow(node, low) => node.value(view, class).rank(*low),
            Formula::Wide(node, low) => node.value(view, class).rank(*low),
            Formula::Rounded(node) => node.value(view, class).rank(Fixed::ZERO),
        }
    }

    fn key(&self, view: &impl View) -> u128 {
        match self {
            Formula::Narrow(node, low) => node.value(view, 0).key(*low),
            Formula::Wide(node, low) => node.value(view, 0).key(*low),
            Formula::Rounded(node) => node.value(view, 0).key(Fixed::ZERO),
        }
    }
}

/// A compiled condition.
#[derive(Clone, Debug)]
enum Condition {
    Narrow(Check<i128>),
    Wide(Check<I256>),
    Rounded(Check<Fixed>),
}

impl Condition {
    fn new(test: &Test, setup: &Setup) -> std::result::Result<Condition, String> {
        let mut exact = Exact::new(Environment::new(Some(setup)));
        match exact.check(test) {
            Ok(check) if exact.most < NARROW => Ok(Condition::Narrow(check.map(&|value: I256| value.as_i128()))),
            Ok(check) => Ok(Condition::Wide(check)),
            Err(Stop::Inexact) => match Rounded(Environment::new(Some(setup))).check(test) {
                Ok(check) => Ok(Condition::Rounded(check)),
                Err(stop) => Err(stop.text()),
            },
            Err(stop) => Err(stop.text()),
        }
    }

    fn is_true(&self, view: &impl View, class: usize) -> bool {
        match self {
            Condition::Narrow(check) => check.is_true(view, class),
            Condition::Wide(check) => check.is_true(view, class),
            Condition::Rounded(check) => check.is_true(view, class),
        }
    }
}

impl Stop {
    fn text(self) -> String {
        match self {
            Stop::Wrong(problem) => problem,
            Stop::Inexact => "smaller numbers".to_owned(),
        }
    }
}

/// The totals of all users.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
struct All {
    now: Time,
    held: Resources,
    running: u64,
    waiting: u64,
    backlogged: u32,
    active: u32,
}

impl All {
    fn new(now: Time, books: &Books) -> All {
        All {
            now,
            held: *books.total_held(),
            running: books.total_running(),
            waiting: books.total_waiting(),
            backlogged: books.backlogged(),
            active: books.active(),
        }
    }
}

/// The values of a user's queue that an expression reads.
struct QueueValues<'a> {
    queue: &'a Queue,
    books: &'a Books,
    all: &'a All,
    /// The request in a condition of admission; `None` in a rank.
    ask: Option<&'a Ask<'a>>,
}

impl View for QueueValues<'_> {
    fn read(&self, var: Var, d: usize) -> u128 {
        let (user, books) = (self.queue.user, self.books);
        match var {
            Var::Held => books.allocated(user)[d].into(),
            Var::Demand => self.ask.map_or_else(|| books.head(user)[d], |ask| ask.demand[d]).into(),
            Var::Wanted => books.wanted(user, d),
            Var::Service => books.service(user, d),
            Var::TotalHeld => self.all.held.0[d].into(),
            Var::Running => books.running(user).into(),
            Var::Waiting => books.waiting(user).into(),
            Var::Priority => self.queue.priority.into(),
            Var::Release => self.queue.release.0.into(),
            Var::Place => self.queue.place.into(),
            Var::Tasks => self.ask.map_or(1, |ask| ask.tasks).into(),
            Var::TotalRunning => self.all.running.into(),
            Var::TotalWaiting => self.all.waiting.into(),
            Var::Backlogged => self.all.backlogged.into(),
            Var::Active => self.all.active.into(),
            Var::Now => self.all.now.0.into(),
            Var::Key => self.queue.key.unwrap_or_default(),
            _ => unreachable!("a name of task sets or a constant: {var:?}"),
        }
    }
}

/// Serves the user with the lowest value of an expression.
///
/// Cost: O(parts of the expression) per rank; all ranks in each round if it uses values of all users, `now` or `service`.
struct Expression {
    /// The rank of a user; `None` for the task sets of all users in one order.
    rank: Option<Formula>,
    admit: Option<Condition>,
    needs: Needs,
    /// The users with a rank that may have changed since the last round.
    stale: Moves,
    all: All,
}

/// The users with a rank that may have changed since the last round, in addition to users with a changed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moves {
    Nobody,
    Changed,
    Everybody,
}

impl Expression {
    /// Compiles the parts of an expression. Errors: [`Error::Policy`] for an unknown resource or an expression that is invalid in the run.
    fn new(text: &str, rank: Option<&Ast>, admit: Option<&Test>, setup: &Setup) -> Result<Expression> {
        let wrong = |expected: String| Error::policy("expr", format!("'{text}'"), expected);
        let mut named = Vec::new();
        rank.iter().for_each(|rank| rank.names(&mut |var| named.push(var)));
        let stale = if named.iter().any(|var| var.is_of_all()) {
            Moves::Everybody
        } else if named.iter().any(|var| matches!(var, Var::Waiting | Var::Wanted)) {
            Moves::Changed
        } else {
            Moves::Nobody
        };
        if let Some(test) = admit {
            test.names(&mut |var| named.push(var));
        }
        let needs = Needs {
            waiting_demand: named.contains(&Var::Wanted),
            integrals: named.contains(&Var::Service),
            one_line: rank.is_none(),
            ..Needs::default()
        };
        let rank = rank.map(|rank| Formula::new(rank, Some(setup), RANK_BITS)).transpose().map_err(wrong)?;
        let admit = admit.map(|test| Condition::new(test, setup)).transpose().map_err(wrong)?;
        Ok(Expression { rank, admit, needs, stale, all: All::default() })
    }
}

impl Var {
    /// Returns whether the value may change without an event of the user. For example, the user's next task, and with it the demand, may
    /// change with time.
    fn is_of_all(self) -> bool {
        use Var::*;
        matches!(self, Demand | Service | TotalHeld | TotalRunning | TotalWaiting | Backlogged | Active | Now)
    }
}

/// The reason why a task is not admitted.
const NOT_ADMITTED: Reason = Reason::Rule("the condition after 'admit'");

impl Policy for Expression {
    fn needs(&self) -> Needs {
        self.needs.clone()
    }

    fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        if self.stale == Moves::Everybody {
            self.all = All::new(now, books);
        }
        Ok(match self.stale {
            Moves::Nobody => Stale::None,
            Moves::Changed => Stale::Some(changed.to_vec()),
            Moves::Everybody => Stale::All,
        })
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let Some(rank) = &self.rank else { return line::rank(queue) };
        let seen = QueueValues { queue, books, all: &self.all, ask: None };
        rank.rank(&seen, books.weight_class(queue.user))
    }

    fn admit(&self, queue: &Queue, ask: &Ask, books: &Books) -> Verdict {
        let Some(condition) = &self.admit else { return Verdict::Yes };
        let all = All::new(Time::ZERO, books);
        let seen = QueueValues { queue, books, all: &all, ask: Some(ask) };
        match condition.is_true(&seen, books.weight_class(queue.user)) {
            true => Verdict::Yes,
            false => Verdict::No(NOT_ADMITTED),
        }
    }
}

impl Capabilities for Expression {
    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl Checkpoint for Expression {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Expression { rank: _, admit: _, needs: _, stale: _, all } = self;
        visitor.value(all)
    }
}
