//! A table of the jobs in the system, by number.
//!
//! Jobs are numbered in the order of their submission. Entries are in pages of consecutive numbers, and a page exists while one of its jobs
//! is in the table. So an access needs no hash, and memory grows with the jobs in the system, plus 8 bytes for every [`PAGE`] jobs.

use plimsoll_base::units::JobId;

/// The number of jobs in a page.
const PAGE: usize = 64;

/// Some consecutive jobs.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(bound(serialize = "T: serde::Serialize", deserialize = "T: serde::Deserialize<'de>"))]
struct Page<T> {
    /// The values; those of jobs that are not in the table have no meaning.
    #[serde(with = "plimsoll_base::checkpoint::array")]
    jobs: [T; PAGE],
    /// A bit for each job in the table.
    present: u64,
}

const _: () = assert!(PAGE == u64::BITS as usize, "a page has a bit for each job");

/// Values of jobs in the system.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct JobTable<T> {
    pages: Vec<Option<Box<Page<T>>>>,
    /// An unused page.
    spare: Option<Box<Page<T>>>,
    count: usize,
}

impl<T> Default for JobTable<T> {
    fn default() -> JobTable<T> {
        JobTable { pages: Vec::new(), spare: None, count: 0 }
    }
}

impl<T: Copy + Default> JobTable<T> {
    /// Returns whether the table has no job.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the value of a job; `new` makes it if the job is not in the table.
    pub fn get_or_insert_with(&mut self, job: JobId, new: impl FnOnce() -> T) -> &mut T {
        let (page, at) = (job.index() / PAGE, job.index() % PAGE);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let spare = &mut self.spare;
        let page = self.pages[page].get_or_insert_with(|| {
            spare.take().unwrap_or_else(|| Box::new(Page { jobs: [T::default(); PAGE], present: 0 }))
        });
        let value = &mut page.jobs[at];
        if page.present & (1 << at) == 0 {
            page.present |= 1 << at;
            self.count += 1;
            *value = new();
        }
        value
    }

    /// Removes a job, and returns its value.
    pub fn remove(&mut self, job: JobId) -> Option<T> {
        let (page, at) = (job.index() / PAGE, job.index() % PAGE);
        let place = self.pages.get_mut(page)?;
        let page = place.as_mut()?;
        if page.present & (1 << at) == 0 {
            return None;
        }
        let value = page.jobs[at];
        self.count -= 1;
        page.present &= !(1 << at);
        if page.present == 0 {
            self.spare = place.take();
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn a_table_has_the_entries_of_a_map_and_no_page_without_jobs() {
        let (mut table, mut map) = (JobTable::default(), HashMap::new());
        let mut draws = ChaCha8Rng::seed_from_u64(1);
        for step in 0..20_000u32 {
            // Most jobs are recent; a few stay for long.
            let job = JobId(step / 4 - draws.random_range(0..=(step / 4).min(300)));
            if draws.random_bool(0.5) {
                *table.get_or_insert_with(job, || 0u32) += step;
                *map.entry(job).or_insert(0u32) += step;
            } else {
                assert_eq!(table.remove(job), map.remove(&job), "job {job:?}");
            }
            assert_eq!(table.is_empty(), map.is_empty());
        }
        for job in map.keys().copied().collect::<Vec<_>>() {
            assert_eq!(table.remove(job), map.remove(&job));
        }
        assert!(table.is_empty() && table.pages.iter().all(Option::is_none));
    }
}
