//! Machines that slow down when their memory is over-committed, as under slots.
//!
//! Tasks progress at a rate that falls with the load of their machine, so their end times change while they run. After each round,
//! [`Hosts`] recomputes the rates and ends of tasks on machines with a changed load. Machines with unchanged load cost nothing.

use super::extension::Extension;
use crate::cluster::Cluster;
use crate::engine::kernel::pace::{MOST, ONE, millionths};
use crate::engine::kernel::{Change, Kernel, Reader, Ticket};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Time};
use plimsoll_base::visit_values;

/// The maximum number of points of a curve.
const POINTS: usize = 8;

/// The slowdown of tasks on a machine, by its load: the memory that its tasks use over its capacity.
///
/// Between points the slowdown is linear. Up to the first point it is 1; after the last one it continues the last segment. As text:
/// `1:1,1.25:4`, loads and slowdowns.
///
/// With ` by size` after the points, they apply to a task that uses as much memory as the machine has. Other tasks slow down in proportion
/// to their memory, because a task waits for its missing pages, and their number is proportional to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowdown {
    /// Loads and slowdowns, in millionths; only the first `len` are used.
    points: [(u64, u64); POINTS],
    len: usize,
    /// Whether tasks slow down in proportion to their memory.
    by_size: bool,
}

/// The suffix for tasks that slow down in proportion to their memory.
const BY_SIZE: &str = " by size";

impl Slowdown {
    /// Returns whether tasks are slower at any load. A curve with only slowdowns of 1 has no effect.
    pub fn slows(&self) -> bool {
        self.points[..self.len].iter().any(|&(_, slowdown)| slowdown > ONE)
    }

    /// Returns the slowdown of a machine with this use and capacity, in millionths.
    pub fn at(&self, used: u64, capacity: u64) -> u64 {
        if used == 0 {
            return ONE;
        }
        let load = (u128::from(used) * u128::from(ONE)).checked_div(u128::from(capacity)).unwrap_or(MOST.into());
        let load = load.min(MOST.into()) as u64;
        let points = &self.points[..self.len];
        match points.partition_point(|(at, _)| *at < load) {
            0 => ONE,
            _ if points.len() == 1 => points[0].1,
            behind => {
                let to = behind.min(points.len() - 1);
                let ((x0, y0), (x1, y1)) = (points[to - 1], points[to]);
                y0 + (u128::from(load - x0) * u128::from(y1 - y0) / u128::from(x1 - x0)) as u64
            }
        }
    }

    /// Returns the slowdown of a task of this size on a machine with this slowdown, in millionths.
    fn task_slowdown(&self, slowdown: u64, size: u64, capacity: u64) -> u64 {
        if !self.by_size || capacity == 0 {
            return slowdown;
        }
        let more = u128::from(slowdown - ONE) * u128::from(size.min(capacity)) / u128::from(capacity);
        ONE + more as u64
    }
}

impl std::fmt::Display for Slowdown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = |value: u64| value as f64 / ONE as f64;
        let points: Vec<String> =
            self.points[..self.len].iter().map(|(at, by)| format!("{}:{}", number(*at), number(*by))).collect();
        f.write_str(&points.join(","))?;
        f.write_str(if self.by_size { BY_SIZE } else { "" })
    }
}

impl std::str::FromStr for Slowdown {
    type Err = Error;

    fn from_str(text: &str) -> Result<Slowdown> {
        let wrong = |given: &str, expected: &str| Error::plan("slowdown", format!("'{given}'"), expected);
        let (points, by_size) = text.strip_suffix(BY_SIZE).map_or((text, false), |points| (points, true));
        let mut curve = Slowdown { points: [(0, 0); POINTS], len: 0, by_size };
        for part in points.split(',') {
            const EXPECTED: &str = "load:slowdown points such as 1:1,1.25:4, and perhaps ' by size' behind them";
            let point =
                part.trim().split_once(':').and_then(|(at, by)| Some((millionths(at.trim())?, millionths(by.trim())?)));
            let point = point.ok_or_else(|| wrong(part, EXPECTED))?;
            if curve.len == POINTS {
                return Err(wrong(text, "at most 8 points"));
            }
            if point.1 < ONE || point.1.max(point.0) > MOST {
                return Err(wrong(part, "a slowdown from 1 to 1000 at a load up to 1000"));
            }
            if let Some(&(at, by)) = curve.points[..curve.len].last()
                && (point.0 <= at || point.1 < by)
            {
                return Err(wrong(
                    part,
                    "a higher load than at the point before, and a slowdown that is no less (a monotone curve)",
                ));
            }
            curve.points[curve.len] = point;
            curve.len += 1;
        }
        Ok(curve)
    }
}

/// Equal running tasks of one entry on a machine.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct SlowedTasks {
    ticket: Ticket,
    /// The work left of each task, in millionths of a microsecond at full speed.
    left: u128,
    /// The amount of memory that each task uses.
    size: u64,
    /// The progress per microsecond, in millionths.
    rate: u64,
    /// The end at the present rate.
    end: Time,
}

/// The load and the tasks of a machine.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Host {
    capacity: u64,
    used: u64,
    /// The instant of the last update of the progress.
    since: Time,
    tasks: Vec<SlowedTasks>,
    touched: bool,
}

impl Host {
    fn settle(&mut self, now: Time) {
        let span = u128::from(now.since(self.since).0);
        self.since = now;
        if span > 0 {
            for task in &mut self.tasks {
                task.left = task.left.saturating_sub(span * u128::from(task.rate));
            }
        }
    }
}

/// The loads of all machines, and the progress of their tasks.
#[derive(Clone, Debug)]
pub struct Hosts {
    reader: Reader,
    curve: Slowdown,
    hosts: Vec<Host>,
    touched: Vec<MachineId>,
}

impl Hosts {
    /// Creates the state of machines that slow down by the memory of their tasks; `None` if memory is not a resource.
    pub fn new(reader: Reader, curve: Slowdown, cluster: &Cluster) -> Option<Hosts> {
        let dim = cluster.memory()?;
        let host = |capacity| Host { capacity, used: 0, since: Time::ZERO, tasks: Vec::new(), touched: false };
        let hosts = cluster.capacities.iter().map(|capacity| host(capacity.0[dim])).collect();
        Some(Hosts { reader, curve, hosts, touched: Vec::new() })
    }

    fn touch(&mut self, machine: MachineId, now: Time) -> &mut Host {
        let host = &mut self.hosts[machine.index()];
        host.settle(now);
        if !std::mem::replace(&mut host.touched, true) {
            self.touched.push(machine);
        }
        host
    }

    fn apply_load(&mut self, change: Change, now: Time) {
        match change {
            Change::Started { ticket, tasks, size, end } => {
                let host = self.touch(tasks.machine, now);
                host.used += size * u64::from(tasks.count.get());
                // Tasks without an end time keep none.
                if end == Time::NEVER {
                    return;
                }
                let left = u128::from(end.since(now).0) * u128::from(ONE);
                host.tasks.push(SlowedTasks { ticket, left, size, rate: ONE, end });
            }
            Change::Ended { machine, amount } => self.touch(machine, now).used -= amount,
            _ => {}
        }
    }
}

impl Extension for Hosts {
    /// Moves the ends of tasks on machines with a changed load. Errors: [`Kernel::within_time`]'s.
    fn after_round(&mut self, kernel: &mut Kernel) -> Result<bool> {
        while let Some(change) = kernel.next_change(self.reader) {
            self.apply_load(change, kernel.now());
        }
        for machine in std::mem::take(&mut self.touched) {
            let host = &mut self.hosts[machine.index()];
            host.touched = false;
            let slowdown = self.curve.at(host.used, host.capacity);
            host.tasks.retain(|task| kernel.running(task.ticket).is_some());
            for task in &mut host.tasks {
                task.rate = (ONE * ONE / self.curve.task_slowdown(slowdown, task.size, host.capacity)).max(1);
                let left = task.left.div_ceil(u128::from(task.rate));
                let end = Time(kernel.now().0.saturating_add(u64::try_from(left).unwrap_or(u64::MAX)));
                if end != task.end
                    && let Some(ticket) = kernel.reschedule(task.ticket, end)?
                {
                    (task.ticket, task.end) = (ticket, end);
                }
            }
        }
        Ok(false)
    }
}

impl Checkpoint for Hosts {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Hosts { reader: _, curve: _, hosts, touched } = self;
        visit_values!(visitor; hosts, touched);
        Ok(())
    }
}
