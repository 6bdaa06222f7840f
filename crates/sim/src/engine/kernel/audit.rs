//! Checks of the kernel's sums and indexes, for audited runs.

use std::collections::{BTreeMap, HashMap};

use super::Kernel;
use super::ids::JobSlot;
use super::site::devices_of;
use crate::cluster::Hardware;

impl Kernel<'_> {
    /// Recomputes all sums and compares them. Panics: if a sum differs (a programmer error); for audited runs.
    pub fn audit(&self) {
        self.books.audit(self.now);
        self.audit_waiting();
        self.audit_jobs();
        self.audit_gangs();
        self.audit_devices();
        self.site.audit_partitions(self.now);
    }

    /// Recomputes for each job the number of tasks that have not ended.
    fn audit_jobs(&self) {
        let mut left: BTreeMap<JobSlot, u64> = BTreeMap::new();
        for slot in self.work.sets.by_row() {
            let set = &self.work.sets[slot];
            *left.entry(set.job).or_default() += u64::from(set.left);
        }
        for (job, sum) in left {
            // Tasks that are too large for the cluster count for the job, but have no set.
            assert!(
                u64::from(self.work.jobs[job].left) >= sum,
                "the remaining tasks of a job add up at {:?}",
                self.now
            );
        }
    }

    /// Recomputes the demand of waiting tasks, if the books keep it.
    fn audit_waiting(&self) {
        let (dims, sets) = (self.books.dims(), &self.work.sets);
        let mut sums = vec![0u128; self.books.users() * dims];
        for slot in sets.by_row() {
            let set = &sets[slot];
            if set.awaits_stage() || set.release > self.now || !set.is_listed() {
                continue;
            }
            for (d, demand) in sets.needs(slot).0.iter().enumerate() {
                sums[set.user.index() * dims + d] += u128::from(*demand) * u128::from(set.waiting);
            }
        }
        self.books.audit_waiting_demand(&sums, self.now);
    }

    /// Checks that no gang has started in part. Panics: if one has (a programmer error); for audited runs.
    pub fn audit_gangs(&self) {
        for slot in self.work.sets.by_row() {
            let set = &self.work.sets[slot];
            assert!(!set.is_gang() || set.waiting == 0 || set.waiting == set.left, "a gang in part at {:?}", self.now);
        }
    }

    /// Checks the assigned devices. Panics: if more of a device is assigned than exists, or a task has other amounts than it needs (a
    /// programmer error); for audited runs.
    pub fn audit_devices(&self) {
        if self.site.devices.is_none() {
            return;
        }
        let made_of = self.site.machines.hardware().map(Hardware::dims).unwrap_or_default();
        let mut sums: HashMap<_, u32> = HashMap::new();
        for running in self.running.iter() {
            let all = devices_of(&self.site.devices, running);
            for &dim in &made_of {
                let milli: u64 =
                    all.iter().filter(|held| usize::from(held.dim) == dim).map(|held| u64::from(held.milli)).sum();
                assert_eq!(milli, self.work.sets.needs(running.set).1[dim], "devices of a task at {:?}", self.now);
            }
            for held in all {
                *sums.entry((running.machine, held.dim, held.device)).or_default() += u32::from(held.milli);
            }
        }
        assert!(sums.values().all(|milli| *milli <= 1000), "a device twice at {:?}", self.now);
    }
}
