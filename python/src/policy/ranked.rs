//! Users ranked by a Python function, on arrays that are written in Rust and read in Python.

use std::cell::RefCell;
use std::sync::Arc;

use plimsoll::books::{Books, WEIGHT_ONE};
use plimsoll::error::{Error, Result};
use plimsoll::policy::{Ask, Capabilities, Policy, Queue, Rank, Setup, Stale, key_value};
use plimsoll::units::{MAX_DIMS, Time, UserId};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;

use super::kept::Kept;
use super::{Failing, cluster, half};

/// The number of rows of a user: for its next task and the tasks after it, ranked in one call.
const BLOCK: usize = 4;

/// The columns with one number per row, in their order in memory. The columns with one number per resource (`held`, `demand` and
/// `weights`) and the answers follow.
#[derive(Clone, Copy)]
enum RankColumn {
    Running,
    Waiting,
    Launch,
    User,
    Dominant,
    Weight,
    Priority,
    Release,
    Key,
}

const SINGLE: usize = 9;

/// The arrays of a ranking: columns one after the other, each with room for `room` rows.
#[derive(Clone, Copy, Default)]
struct Arrays {
    address: usize,
    room: usize,
}

impl Arrays {
    /// Returns the address of a number. The interpreter's lock is held, so no Python code reads the number at the same time.
    fn place(&self, column: usize, row: usize) -> *mut f64 {
        assert!(row < self.room, "the row is within the allocated room");
        (self.address as *mut f64).wrapping_add(column * self.room + row)
    }

    fn set(&self, column: usize, row: usize, value: f64) {
        // SAFETY: `Ranking.room` returned the address of an array of doubles with all columns of `room` rows, and owns that array.
        unsafe { self.place(column, row).write(value) }
    }

    fn get(&self, column: usize, row: usize) -> f64 {
        // SAFETY: as above.
        unsafe { self.place(column, row).read() }
    }

    /// Returns a column's number for the next task of each user, for the first `users` users.
    fn first(&self, column: usize, users: usize) -> impl Iterator<Item = f64> {
        let values = match users {
            0 => &[][..],
            // SAFETY: as above; the array is not written while it is read.
            _ => unsafe {
                std::slice::from_raw_parts(self.place(column, users * BLOCK - 1).sub(users * BLOCK - 1), users * BLOCK)
            },
        };
        values.iter().step_by(BLOCK).copied()
    }
}

/// The facts about the next task of a queue that books do not have.
#[derive(Clone, Copy, PartialEq)]
struct NextTask {
    priority: u8,
    release: Time,
    key: Option<u128>,
}

/// The state of a user at the time when its rows were written.
#[derive(Clone, Copy)]
struct Block {
    user: UserId,
    running: u64,
    held: [u64; MAX_DIMS],
    demand: [u64; MAX_DIMS],
    /// The value that the engine received last.
    told: f64,
    /// The next task, if the function was called for its queue.
    next: Option<NextTask>,
}

/// A policy with ranks from a function. The function ranks all waiting users together: once a round, and again if a user has launched
/// the tasks of all its rows, or a task with another demand. If the policy has an order of task sets, the function also receives facts about
/// next tasks, which the engine provides queue by queue; then it is called for each queue.
pub struct Ranked {
    _kept: Kept,
    failing: Failing,
    function: Arc<Py<PyAny>>,
    /// Whether the policy has an order of task sets.
    ordered: bool,
    state: RefCell<RankState>,
}

struct RankState {
    ranking: Py<PyAny>,
    units: Vec<f64>,
    capacity: Vec<f64>,
    arrays: Arrays,
    blocks: Vec<Block>,
    /// By user: the number of its block, from 1 (0 without one), and whether its rows are out of date.
    places: Vec<(u32, bool)>,
    anew: Vec<UserId>,
    /// The names of users that Python does not have yet.
    names: Vec<String>,
    now: Time,
    /// The queue for which the function is called.
    asked: Option<(UserId, NextTask)>,
    failed: Option<Error>,
}

impl Ranked {
    /// Errors: the arrays cannot be created.
    pub fn new(function: &Arc<Py<PyAny>>, setup: &Setup, failing: Failing, ordered: bool) -> Result<Ranked> {
        let (kept, (names, amounts)) = (Kept::new(), cluster(setup));
        let ranking = Python::attach(|py| {
            let made = half(py).and_then(|half| half.call_method1("Ranking", (&**function, names, amounts, ordered)));
            made.map(Bound::unbind).map_err(|raised| failing.error(py, None, function, raised))
        })?;
        let state = RankState {
            ranking,
            units: setup.dims.iter().map(|dim| dim.unit.scale() as f64).collect(),
            capacity: setup.capacity.slice(setup.dims.len()).iter().map(|amount| *amount as f64).collect(),
            arrays: Arrays::default(),
            blocks: Vec::new(),
            places: Vec::new(),
            anew: Vec::new(),
            names: Vec::new(),
            now: Time::ZERO,
            asked: None,
            failed: None,
        };
        Ok(Ranked { _kept: kept, failing, function: function.clone(), ordered, state: RefCell::new(state) })
    }

    /// Computes all values. Errors: the function raised an exception.
    fn ask(&self, state: &mut RankState, books: &Books) -> Result<()> {
        self.failing.stop.check()?;
        Python::attach(|py| {
            let asked = state.ask(py, books);
            asked.map_err(|raised| self.failing.error(py, Some(state.now), &self.function, raised))
        })
    }

    /// Returns the value of a row. Errors: it is NaN.
    fn value(&self, state: &RankState, row: usize) -> Result<f64> {
        let value = state.arrays.get(state.answers(), row);
        if !value.is_nan() {
            // Turns -0 into 0.
            return Ok(value + 0.0);
        }
        let user = state.blocks[row / BLOCK].user;
        Python::attach(|py| {
            let name = || state.ranking.getattr(py, "names")?.bind(py).get_item(user.index())?.extract::<String>();
            let name = name().unwrap_or_else(|_| user.0.to_string());
            let raised = PyValueError::new_err(format!("the rank of user '{name}' is NaN"));
            Err(self.failing.error(py, Some(state.now), &self.function, raised))
        })
    }

    fn current(&self, queue: &Queue, books: &Books) -> Result<f64> {
        let mut state = self.state.borrow_mut();
        let user = queue.user;
        let next = NextTask { priority: queue.priority, release: queue.release, key: queue.key };
        let known = |row: &usize| !self.ordered || state.blocks[row / BLOCK].next == Some(next);
        let row = match state.row(user, books).filter(known) {
            Some(row) => row,
            None => {
                state.touch(user);
                state.asked = self.ordered.then_some((user, next));
                self.ask(&mut state, books)?;
                state.row(user, books).expect("its rows have just been made")
            }
        };
        let value = self.value(&state, row)?;
        state.blocks[row / BLOCK].told = value;
        Ok(value)
    }
}

impl RankState {
    fn answers(&self) -> usize {
        SINGLE + 3 * self.units.len()
    }

    fn touch(&mut self, user: UserId) {
        if self.places.len() <= user.index() {
            self.places.resize(user.index() + 1, (0, false));
        }
        if !std::mem::replace(&mut self.places[user.index()].1, true) {
            self.anew.push(user);
        }
    }

    /// Returns the row of the next task of a user, if a row matches the user's current state.
    fn row(&self, user: UserId, books: &Books) -> Option<usize> {
        let at = self.places.get(user.index())?.0.checked_sub(1)? as usize;
        let block = &self.blocks[at];
        let launch = books.running(user).checked_sub(block.running).filter(|launch| *launch < BLOCK as u64)?;
        let held = books.allocated(user).iter().zip(block.held.iter().zip(block.demand));
        let same = held.into_iter().all(|(held, (then, demand))| *held == then + launch * demand);
        let head = books.head(user).iter().zip(block.demand).all(|(head, demand)| *head == demand);
        (same && head).then_some(at * BLOCK + launch as usize)
    }

    fn ask(&mut self, py: Python, books: &Books) -> PyResult<()> {
        for user in std::mem::take(&mut self.anew) {
            self.places[user.index()].1 = false;
            match (self.places[user.index()].0, books.waiting(user) > 0) {
                (0, false) => {}
                (at @ 1.., false) => self.leave(at as usize - 1),
                (at, true) => {
                    let at = if at == 0 { self.join(py, user)? } else { at as usize - 1 };
                    self.write(at, user, books);
                }
            }
        }
        if !self.names.is_empty() {
            self.ranking.call_method1(py, "know", (std::mem::take(&mut self.names),))?;
        }
        let rows = self.blocks.len() * BLOCK;
        self.ranking.call_method1(py, intern!(py, "ask"), (rows, self.now.seconds())).map(drop)
    }

    /// Adds a block for a user without one.
    fn join(&mut self, py: Python, user: UserId) -> PyResult<usize> {
        let at = self.blocks.len();
        if (at + 1) * BLOCK > self.arrays.room {
            let room = (2 * self.arrays.room).max(16 * BLOCK);
            let address = self.ranking.call_method1(py, "room", (room,))?.extract(py)?;
            self.arrays = Arrays { address, room };
        }
        let (held, demand) = ([0; MAX_DIMS], [0; MAX_DIMS]);
        self.blocks.push(Block { user, running: 0, held, demand, told: f64::NAN, next: None });
        self.places[user.index()].0 = at as u32 + 1;
        Ok(at)
    }

    /// Removes a block. The last block, if it is another one, moves to its place.
    fn leave(&mut self, at: usize) {
        let gone = self.blocks.swap_remove(at);
        self.places[gone.user.index()].0 = 0;
        let Some(moved) = self.blocks.get(at) else { return };
        self.places[moved.user.index()].0 = at as u32 + 1;
        let from = self.blocks.len() * BLOCK;
        for (column, row) in (0..self.answers()).flat_map(|column| (0..BLOCK).map(move |row| (column, row))) {
            self.arrays.set(column, at * BLOCK + row, self.arrays.get(column, from + row));
        }
    }

    /// Writes the rows of a user.
    fn write(&mut self, at: usize, user: UserId, books: &Books) {
        let (arrays, dims) = (self.arrays, self.units.len());
        let block = &mut self.blocks[at];
        block.running = books.running(user);
        block.held[..dims].copy_from_slice(books.allocated(user));
        block.demand[..dims].copy_from_slice(books.head(user));
        block.next = self.asked.filter(|(asked, _)| *asked == user).map(|(_, next)| next);
        let next = block.next;
        let class = books.weight_class(user);
        let weight = |weight: u64| weight as f64 / WEIGHT_ONE as f64;
        let (whole, each) = (books.weights().uniform(class), books.weights().each(class));
        for launch in 0..BLOCK {
            let row = at * BLOCK + launch;
            let set = |column: RankColumn, value: f64| arrays.set(column as usize, row, value);
            set(RankColumn::Running, (block.running + launch as u64) as f64);
            set(RankColumn::Waiting, books.waiting(user).saturating_sub(launch as u64) as f64);
            set(RankColumn::Launch, launch as f64);
            set(RankColumn::User, f64::from(user.0));
            set(RankColumn::Weight, whole.map_or(f64::NAN, weight));
            set(RankColumn::Priority, next.map_or(f64::NAN, |next| next.priority.into()));
            set(RankColumn::Release, next.map_or(f64::NAN, |next| next.release.seconds()));
            set(RankColumn::Key, next.and_then(|next| next.key).map_or(f64::NAN, key_value));
            let mut dominant = 0.0f64;
            for d in 0..dims {
                let held = (block.held[d] + launch as u64 * block.demand[d]) as f64;
                if self.capacity[d] > 0.0 {
                    dominant = dominant.max(held / self.capacity[d]);
                }
                arrays.set(SINGLE + d, row, held / self.units[d]);
                arrays.set(SINGLE + dims + d, row, block.demand[d] as f64 / self.units[d]);
                arrays.set(SINGLE + 2 * dims + d, row, weight(each[d]));
            }
            arrays.set(RankColumn::Dominant as usize, row, dominant);
        }
    }
}

impl Policy for Ranked {
    fn open(&mut self, user: UserId, name: &str) -> Result<()> {
        let state = self.state.get_mut();
        state.names.push(name.to_owned());
        state.touch(user);
        Ok(())
    }

    fn prepare(&mut self, now: Time, books: &Books, changed: &[UserId]) -> Result<Stale> {
        let mut state = self.state.borrow_mut();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        state.now = now;
        changed.iter().for_each(|user| state.touch(*user));
        if books.total_waiting() == 0 {
            return Ok(Stale::None);
        }
        if self.ordered {
            // Each queue is ranked again, with the facts of its next task.
            state.blocks.iter_mut().for_each(|block| block.next = None);
            return Ok(Stale::All);
        }
        self.ask(&mut state, books)?;
        let first = state.arrays.first(state.answers(), state.blocks.len());
        // The value of a new block is NaN, which differs from every value.
        let moved = |(block, value): (&Block, f64)| (block.told != value).then_some(block.user);
        let stale: Vec<UserId> = state.blocks.iter().zip(first).filter_map(moved).collect();
        for user in &stale {
            let at = state.places[user.index()].0 as usize - 1;
            state.blocks[at].told = self.value(&state, at * BLOCK)?;
        }
        Ok(Stale::Some(stale))
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        if self.state.borrow().failed.is_some() {
            return Rank::default();
        }
        match self.current(queue, books) {
            Ok(value) => Rank::new(ordered(value).into()),
            Err(error) => {
                // The error is returned at the next instant. Launches until then are discarded with the run.
                self.state.borrow_mut().failed.get_or_insert(error);
                Rank::default()
            }
        }
    }

    fn launched(&mut self, queue: &Queue, _ask: &Ask, _books: &Books) {
        self.state.get_mut().touch(queue.user);
    }
}

impl Capabilities for Ranked {}

/// Returns bits with the same order as the numbers.
fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if value.is_sign_negative() { !bits } else { bits | 1 << 63 }
}
