//! Work that depends on the workload alone, done once for all runs of a workload and a seed.
//!
//! [`SharedSupply`] has a supply, its rows if several runs read them, and values that are computed from the rows. [`Supplies`] makes each
//! shared supply when the first of its runs starts; other runs that need the supply wait. It drops the supply after the last of these
//! runs. Rows are read in advance only within the memory of [`ROW_MEMORY`](super::memory::ROW_MEMORY), and never for a closed loop. If the
//! rows are not read in advance, each run reads the workload itself.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use crate::memory::{Reservation, RowMemory};
use crate::supply::{Supply, mix};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Resources, Time};
use plimsoll_metrics::{FairService, Window};
use plimsoll_sim::books::Weights;
use plimsoll_sim::cluster::Mix;
use plimsoll_sim::workload::{Service, SharedRows, Source, WithServices};

/// A supply, with the values that all of its runs share.
pub struct SharedSupply {
    supply: Supply,
    /// The rows, and the memory reserved for them; `None` if each run reads the workload itself.
    rows: Option<(SharedRows, Reservation)>,
    mix: Mutex<Option<Mix>>,
    /// The fluid replays; `None` if each run computes its own.
    replays: Option<Replays>,
}

/// The fluid replays of the runs, by their inputs.
struct Replays {
    all: Mutex<Vec<Arc<Replay>>>,
    memory: RowMemory,
}

/// A fluid replay. The result is absent until the first run needs it; it is `None` if each run must compute the service itself.
struct Replay {
    inputs: ReplayInputs,
    result: Mutex<Option<Option<(Arc<FairService>, Reservation)>>>,
}

/// The inputs, besides the rows, of the fluid replay for the metric `speed`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayInputs {
    /// The capacity of the cluster.
    pub capacity: Resources,
    /// The weights of users.
    pub weights: Weights,
    /// Online services in addition to the rows.
    pub services: Vec<Service>,
    /// The measured window.
    pub window: Window,
    /// The horizon of the runs.
    pub horizon: Option<Time>,
}

impl From<Supply> for SharedSupply {
    /// Creates a shared supply without rows, so that each run reads the workload itself.
    fn from(supply: Supply) -> SharedSupply {
        SharedSupply { supply, rows: None, mix: Mutex::default(), replays: None }
    }
}

impl SharedSupply {
    /// Reads the rows up to the horizon `until`, if the memory suffices. `heartbeat` is called from time to time. Errors: those of
    /// `heartbeat`. An error of the workload is no error of this function, because it occurs again in the runs.
    fn with_rows(
        supply: Supply,
        until: Time,
        memory: &RowMemory,
        heartbeat: &mut dyn FnMut() -> Result<()>,
    ) -> Result<SharedSupply> {
        let mut shared = SharedSupply::from(supply);
        if !shared.supply.is_a_loop() {
            shared.replays = Some(Replays { all: Mutex::default(), memory: memory.clone() });
        }
        if shared.supply.is_streamed()
            && let Ok(mut source) = shared.supply.source()
        {
            let mut reservation = memory.reservation();
            let mut reserve = |bytes| heartbeat().map(|()| reservation.grow(bytes));
            let rows = SharedRows::read(&mut *source, until, &mut reserve)?;
            drop(source);
            shared.rows = rows.map(|rows| (rows, reservation));
        }
        Ok(shared)
    }

    /// Returns a new source that starts from the beginning. Errors: the first row is invalid, or the file has changed.
    pub fn source(&self) -> Result<Box<dyn Source + '_>> {
        match &self.rows {
            Some((rows, _)) => {
                self.supply.check()?;
                Ok(Box::new(rows.source(|| self.supply.source())))
            }
            None => self.supply.source(),
        }
    }

    /// Returns the most frequent demands, as [`Supply::mix`] does.
    pub fn mix(&self) -> Result<Mix> {
        let mut known = self.mix.lock().map_err(|_| Error::Interrupted)?;
        if known.is_none() {
            *known = Some(mix(&mut *self.source()?)?);
        }
        Ok(known.clone().unwrap_or_default())
    }

    /// Returns the service of each user in the fluid replay, computed once for all runs with equal inputs. Other runs with these inputs wait.
    /// Returns `None` if each run must compute the service itself: no other run shares this supply, its rows depend on the runs, the memory
    /// does not suffice, or the replay fails; then the runs fail in the same way. `heartbeat` is called from time to time. Errors: those of
    /// `heartbeat`.
    pub fn fair_service(
        &self,
        inputs: impl FnOnce() -> ReplayInputs,
        heartbeat: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<Arc<FairService>>> {
        let Some(replays) = &self.replays else { return Ok(None) };
        let inputs = inputs();
        let replay = {
            let mut all = replays.all.lock().map_err(|_| Error::Interrupted)?;
            let known = all.iter().find(|replay| replay.inputs == inputs).cloned();
            known.unwrap_or_else(|| {
                all.push(Arc::new(Replay { inputs, result: Mutex::default() }));
                Arc::clone(&all[all.len() - 1])
            })
        };
        let mut result = replay.result.lock().map_err(|_| Error::Interrupted)?;
        if result.is_none() {
            *result = Some(self.replay(&replay.inputs, &replays.memory, heartbeat)?);
        }
        Ok(result.as_ref().and_then(Option::as_ref).map(|(fair, _)| Arc::clone(fair)))
    }

    /// Returns the service of each user in the fluid replay for one run that continues, whether or not others share the supply. Returns `None`
    /// if the replay fails. Errors: as [`SharedSupply::fair_service`].
    pub fn fair_service_alone(
        &self,
        inputs: ReplayInputs,
        heartbeat: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<Arc<FairService>>> {
        let unlimited = RowMemory::new(u64::MAX);
        Ok(self.replay(&inputs, &unlimited, heartbeat)?.map(|(fair, _)| fair))
    }

    /// Computes the service of each user in the fluid replay; see [`SharedSupply::fair_service`].
    fn replay(
        &self,
        inputs: &ReplayInputs,
        memory: &RowMemory,
        heartbeat: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<(Arc<FairService>, Reservation)>> {
        let Ok(mut source) = self.source() else { return Ok(None) };
        if source.has_preceding() {
            return Ok(None);
        }
        if !inputs.services.is_empty() {
            let Ok(with) = WithServices::new(source, &inputs.services) else { return Ok(None) };
            source = Box::new(with);
        }
        let ReplayInputs { capacity, weights, window, horizon, .. } = inputs;
        let mut stopped = None;
        let mut go_on = || heartbeat().map_err(|error| stopped.insert(error)).is_ok();
        let fair = FairService::replay(&mut *source, capacity, weights, window, *horizon, &mut go_on);
        if let Some(error) = stopped {
            return Err(error);
        }
        let Ok(Some(fair)) = fair else { return Ok(None) };
        let mut reservation = memory.reservation();
        Ok(reservation.grow(fair.bytes()).then(|| (Arc::new(fair), reservation)))
    }

    /// Returns the number of tasks, if it is known.
    pub fn tasks(&self) -> Option<u64> {
        self.rows.as_ref().and_then(|(rows, _)| rows.tasks()).or_else(|| self.supply.tasks())
    }
}

/// A workload, by its index in the study, and a seed.
pub type Key = (usize, u64);

/// The shared supply of one key.
#[derive(Default)]
struct Slot {
    /// The number of runs that use the supply.
    runs: usize,
    /// The number of these runs that have not ended.
    left: usize,
    supply: Arc<Mutex<Option<Arc<SharedSupply>>>>,
}

/// The shared supplies of the runs that have not ended.
pub struct Supplies {
    slots: Mutex<HashMap<Key, Slot>>,
    memory: RowMemory,
}

impl Supplies {
    /// Limits the memory that the rows of all supplies take at one time to `memory` bytes.
    pub fn new(memory: u64) -> Supplies {
        Supplies { slots: Mutex::default(), memory: RowMemory::new(memory) }
    }

    /// Announces a run. All runs of a key are announced before the first of them starts.
    pub fn announce(&self, key: Key) -> Result<()> {
        let mut slots = self.slots.lock().map_err(|_| Error::Interrupted)?;
        let slot = slots.entry(key).or_default();
        (slot.runs, slot.left) = (slot.runs + 1, slot.left + 1);
        Ok(())
    }

    /// Returns the supply for an announced run. The first call for a key executes `make`, and reads the rows until the horizon `until` if
    /// several runs need them; other calls for the key wait. Errors: those of `make` and of `heartbeat`.
    pub fn get(
        &self,
        key: Key,
        until: Time,
        make: impl FnOnce() -> Result<Supply>,
        heartbeat: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Lease<'_>> {
        let (runs, supply) = {
            let mut slots = self.slots.lock().map_err(|_| Error::Interrupted)?;
            let slot = slots.entry(key).or_default();
            (slot.runs, slot.supply.clone())
        };
        let mut known = supply.lock().map_err(|_| Error::Interrupted)?;
        if known.is_none() {
            let made = make()?;
            *known = Some(Arc::new(match runs {
                0 | 1 => made.into(),
                _ => SharedSupply::with_rows(made, until, &self.memory, heartbeat)?,
            }));
        }
        let supply = known.clone().ok_or(Error::Interrupted)?;
        Ok(Lease { supplies: self, key, supply })
    }
}

/// The use of a shared supply by one run. The supply is dropped when the leases of all its runs are dropped.
pub struct Lease<'a> {
    supplies: &'a Supplies,
    key: Key,
    supply: Arc<SharedSupply>,
}

impl Deref for Lease<'_> {
    type Target = SharedSupply;

    fn deref(&self) -> &SharedSupply {
        &self.supply
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Ok(mut slots) = self.supplies.slots.lock() else { return };
        if let Some(slot) = slots.get_mut(&self.key) {
            slot.left = slot.left.saturating_sub(1);
            if slot.left == 0 {
                slots.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_sim::workload::{Input, TaskSet};

    fn trace() -> Supply {
        let rows: String = (0..9000).map(|row| format!("{row},u{},{row},1,1\n", row % 3)).collect();
        let text = format!("job,user,submit_s,duration_s,cpu\n{rows}");
        Supply::Csv(Input::Bytes("trace.csv".into(), text.into_bytes().into()), Vec::new())
    }

    fn sets(supply: &SharedSupply) -> Vec<TaskSet> {
        let mut source = supply.source().expect("rows");
        std::iter::from_fn(|| source.next_set().expect("valid rows")).collect()
    }

    #[test]
    fn a_supply_is_made_once_and_dropped_with_its_last_run() {
        let supplies = Supplies::new(1 << 24);
        let left = || supplies.memory.reservation().grow(1 << 24);
        let mut made = 0;
        (0..3).for_each(|_| supplies.announce((0, 7)).expect("no panic"));
        for run in 0..3 {
            let make = || {
                made += 1;
                Ok(trace())
            };
            let lease = supplies.get((0, 7), Time::NEVER, make, &mut || Ok(())).expect("a supply");
            assert_eq!((lease.tasks(), left()), (Some(9000), false), "run {run}");
            assert!(sets(&lease) == sets(&trace().into()));
        }
        assert_eq!((made, left(), supplies.slots.lock().expect("no panic").len()), (1, true, 0));
    }

    #[test]
    fn rows_stay_in_the_trace_for_a_single_run_and_without_memory() {
        for (runs, memory) in [(1, 1 << 24), (2, 300_000), (2, 0)] {
            let supplies = Supplies::new(memory);
            (0..runs).for_each(|_| supplies.announce((0, 0)).expect("no panic"));
            let lease = supplies.get((0, 0), Time::NEVER, || Ok(trace()), &mut || Ok(())).expect("a supply");
            assert!(lease.rows.is_none() && sets(&lease).len() == 9000, "{runs} {memory}");
            assert!(supplies.memory.reservation().grow(memory), "all memory is free again");
        }
    }

    #[test]
    fn an_interrupt_ends_the_reading_of_rows() {
        let supplies = Supplies::new(1 << 24);
        (0..2).for_each(|_| supplies.announce((0, 0)).expect("no panic"));
        let stopped = supplies.get((0, 0), Time::NEVER, || Ok(trace()), &mut || Err(Error::Interrupted));
        assert!(matches!(stopped, Err(Error::Interrupted)));
    }
}
