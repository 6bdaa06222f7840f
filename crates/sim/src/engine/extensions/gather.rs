//! The room of machines for a task, including the room of running tasks that may be stopped for it: the common part of the preemption
//! rules.

use std::collections::HashMap;

use crate::policy::{Ask, Room, RunningView, Victims};
use plimsoll_base::units::{MachineId, Resources};

/// By machine, the free amounts with those of the victims so far, and the victims by key.
#[derive(Default)]
pub struct Gathered(HashMap<MachineId, (Resources, Vec<(u64, u32)>)>);

impl Gathered {
    /// Adds as many of equal tasks (key, machine, number, and amounts of each) as are needed for the shortage there. Returns the proposal
    /// once that machine has enough room.
    pub fn add(
        &mut self,
        ask: &Ask,
        running: &dyn RunningView,
        (key, machine, count): (u64, MachineId, u32),
        each: &[u64],
    ) -> Option<Victims> {
        let (room, asked) = self.0.entry(machine).or_insert_with(|| (running.free(machine), Vec::new()));
        let count = short(ask.footprint, room, each).min(u64::from(count)) as u32;
        if count == 0 {
            return None;
        }
        add(room, each, count);
        asked.push((key, count));
        covers(room, ask.footprint).then(|| Victims { tasks: std::mem::take(asked), room: Room::Kept, cause: None })
    }
}

/// Returns how many tasks of these amounts are needed to cover the shortage of each resource that they use.
pub fn short(need: &[u64], room: &Resources, each: &[u64]) -> u64 {
    let needs = need.iter().zip(room.0).zip(each).filter(|((need, room), each)| *need > room && **each > 0);
    needs.map(|((need, room), each)| (need - room).div_ceil(*each)).max().unwrap_or(0)
}

pub fn covers(room: &Resources, need: &[u64]) -> bool {
    need.iter().zip(room.0).all(|(need, room)| *need <= room)
}

pub fn add(sum: &mut Resources, each: &[u64], count: u32) {
    sum.0.iter_mut().zip(each).for_each(|(sum, each)| *sum += each * u64::from(count));
}
