//! A shard: the part of a study's runs that one of several machines or jobs executes.
//!
//! Runs are assigned to shards by their ids, without communication. The index of the shard and the number of shards are given, or are read
//! from the environment of a job array.

use plimsoll_base::error::{Error, Result};

/// One of several shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The index, from 0.
    pub index: u64,
    /// The number of shards.
    pub of: u64,
}

/// The environment variables that a job scheduler sets for the jobs of an array: the index, the first index, the step, and the number of
/// jobs or the last index.
struct Array {
    index: &'static str,
    first: Option<&'static str>,
    /// The first index if the environment does not specify it.
    from: u64,
    step: Option<&'static str>,
    count: Option<&'static str>,
    last: Option<&'static str>,
}

const ARRAYS: [Array; 7] = [
    Array {
        index: "SLURM_ARRAY_TASK_ID",
        first: Some("SLURM_ARRAY_TASK_MIN"),
        from: 0,
        step: Some("SLURM_ARRAY_TASK_STEP"),
        count: Some("SLURM_ARRAY_TASK_COUNT"),
        last: None,
    },
    Array { index: "HQ_TASK_ID", first: None, from: 0, step: None, count: None, last: None },
    Array { index: "JOB_COMPLETION_INDEX", first: None, from: 0, step: None, count: None, last: None },
    Array { index: "PBS_ARRAY_INDEX", first: None, from: 0, step: None, count: None, last: None },
    Array {
        index: "SGE_TASK_ID",
        first: Some("SGE_TASK_FIRST"),
        from: 1,
        step: Some("SGE_TASK_STEPSIZE"),
        count: None,
        last: Some("SGE_TASK_LAST"),
    },
    Array { index: "LSB_JOBINDEX", first: None, from: 1, step: None, count: None, last: Some("LSB_JOBINDEX_END") },
    Array {
        index: "AWS_BATCH_JOB_ARRAY_INDEX",
        first: None,
        from: 0,
        step: None,
        count: Some("AWS_BATCH_JOB_ARRAY_SIZE"),
        last: None,
    },
];

impl Shard {
    /// Parses `I/N` with I from 0, `auto` (the index and the size of a job array, from the environment) or `auto/N` (N shards; only the
    /// index is from the environment, relative to the scheduler's usual first index). Errors: [`Error::Plan`].
    pub fn parse(text: &str, environment: impl Fn(&str) -> Option<String>) -> Result<Shard> {
        let wrong = |expected: &str| Error::plan("--shard", format!("'{text}'"), expected);
        let usual = "I/N with I from 0 to N - 1, such as 0/4; auto; or auto/N";
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong(usual));
        let (index, of) = match text.split_once('/') {
            Some(("auto", of)) => (None, Some(number(of)?)),
            Some((index, of)) => (Some(number(index)?), Some(number(of)?)),
            None if text == "auto" => (None, None),
            None => return Err(wrong(usual)),
        };
        let shard = match (index, of) {
            (Some(index), Some(of)) => Shard { index, of },
            (_, of) => Shard::array(of, &environment)?,
        };
        if shard.index < shard.of { Ok(shard) } else { Err(wrong(&format!("{usual}; here it is {shard}"))) }
    }

    fn array(of: Option<u64>, environment: &impl Fn(&str) -> Option<String>) -> Result<Shard> {
        let read = |name: &str| environment(name).and_then(|value| value.trim().parse::<u64>().ok());
        let Some((array, index)) = ARRAYS.iter().find_map(|array| Some((array, read(array.index)?))) else {
            let names: Vec<&str> = ARRAYS.iter().map(|array| array.index).collect();
            let expected = format!("a job array, which sets one of {}; or I/N", names.join(", "));
            return Err(Error::plan("--shard", "'auto'", expected));
        };
        if let Some(of) = of {
            // If only a part of an array is repeated, its bounds differ, but the indices of its jobs are the same.
            return Ok(Shard { index: index.saturating_sub(array.from), of });
        }
        let first = array.first.and_then(read).unwrap_or(array.from);
        let step = array.step.and_then(read).unwrap_or(1).max(1);
        let last = || array.last.and_then(read).filter(|&last| last >= first).map(|last| (last - first) / step + 1);
        let count = array.count.and_then(read).or_else(last).ok_or_else(|| {
            let expected = format!("auto/N with the number of shards, since {} comes without one", array.index);
            Error::plan("--shard", "'auto'", expected)
        })?;
        Ok(Shard { index: index.saturating_sub(first) / step, of: count })
    }

    /// Returns whether each of these runs belongs to the shard. Every `of`-th run belongs to it, in the order of ids. Ids are practically
    /// random, so each shard has long and short runs.
    pub fn own(&self, ids: &[&str]) -> Vec<bool> {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|&at| ids[at]);
        let mut own = vec![false; ids.len()];
        for (rank, at) in order.into_iter().enumerate() {
            own[at] = rank as u64 % self.of == self.index;
        }
        own
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_read_from_text_and_job_arrays() {
        let read = |text: &str, set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            Shard::parse(text, value).map_err(|error| error.to_string())
        };
        let shard = |index, of| Ok(Shard { index, of });
        assert_eq!(read("2/5", &[]), shard(2, 5));
        let slurm = [("SLURM_ARRAY_TASK_ID", "7"), ("SLURM_ARRAY_TASK_MIN", "5"), ("SLURM_ARRAY_TASK_COUNT", "4")];
        assert_eq!(read("auto", &slurm), shard(2, 4));
        assert_eq!(read("auto/9", &slurm), shard(7, 9));
        let sge = [("SGE_TASK_ID", "5"), ("SGE_TASK_FIRST", "1"), ("SGE_TASK_LAST", "9"), ("SGE_TASK_STEPSIZE", "2")];
        assert_eq!(read("auto", &sge), shard(2, 5));
        assert_eq!(read("auto/3", &[("JOB_COMPLETION_INDEX", "0")]), shard(0, 3));
        assert_eq!(read("auto", &[("AWS_BATCH_JOB_ARRAY_INDEX", "1"), ("AWS_BATCH_JOB_ARRAY_SIZE", "2")]), shard(1, 2));
        // SGE sets this value for jobs without an array.
        assert!(
            read("auto", &[("SGE_TASK_ID", "undefined")]).is_err_and(|error| error.contains("SLURM_ARRAY_TASK_ID"))
        );
        assert!(read("auto", &[("PBS_ARRAY_INDEX", "1")]).is_err_and(|error| error.contains("auto/N")));
        for text in ["3/3", "x/3", "1", "1/0", "-1/2", "auto/x"] {
            assert!(read(text, &[]).is_err_and(|error| error.contains("--shard")), "{text}");
        }
    }

    #[test]
    fn every_run_is_one_shard_s() {
        let ids = ["c", "a", "e", "b", "d"];
        let of = 3;
        let owns: Vec<Vec<bool>> = (0..of).map(|index| Shard { index, of }.own(&ids)).collect();
        for at in 0..ids.len() {
            assert_eq!(owns.iter().filter(|own| own[at]).count(), 1, "{}", ids[at]);
        }
        assert_eq!(owns[0], [false, true, false, false, true], "a and d, the first and the fourth in order");
    }
}
