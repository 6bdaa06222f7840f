//! Jobs of a log in the Standard Workload Format, by the rules of RLScheduler (Zhang et al., SC 2020).
//!
//! Parameters: `file` below the data folder, `starts` (positions of first jobs among the kept ones; the seed selects one, from 0) and `jobs`
//! (the number of jobs); without them, all jobs. A job occupies whole nodes; all jobs have one user, and the order of the rows is that of the job numbers.

use std::path::Path;

use super::{DataFolder, Parameters, write};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::read_text;

/// Writes `trace.csv`, `machines.csv` and `work.csv` (processor-seconds of each job; processors of all).
pub fn prepare(data: &DataFolder, parameters: &Parameters, into: &Path) -> Result<()> {
    let path = data.path(parameters.text("file")?)?;
    let text = read_text(&path)?;
    let header = |name: &str| -> Option<i64> {
        let line =
            text.lines().find_map(|line| line.strip_prefix(';')?.trim().strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().parse().ok()
    };
    let missing = || Error::trace(&path, 0, "", "has no header MaxProcs or MaxNodes");
    let nodes = header("MaxNodes").filter(|nodes| *nodes > 0);
    let processors = header("MaxProcs").filter(|processors| *processors > 0).or(nodes).ok_or_else(missing)?;
    let nodes = nodes.unwrap_or(processors);
    let per_node = (processors / nodes).max(1);
    let mut jobs: Vec<(i64, i64, i64, i64, i64)> = Vec::new();
    let mut asked: Vec<(i64, i64)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with(';') {
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().collect();
        let field = |number: usize| -> Result<i64> {
            let text = fields.get(number - 1).copied().unwrap_or("");
            let value = text.parse::<f64>().map_err(|_| {
                Error::trace(&path, at as u64 + 1, &format!("field {number}"), format!("'{text}' is not a number"))
            })?;
            Ok(value as i64)
        };
        let run = match field(4)? {
            0 => continue,
            run if run < 0 => 10,
            run => run,
        };
        let estimate = match field(9)? {
            -1 => run,
            estimate => estimate,
        };
        let wanted = field(5)?.max(field(8)?).max(1);
        asked.push((field(1)?, wanted * run));
        jobs.push((field(1)?, field(2)?, run, (wanted + per_node - 1) / per_node, estimate));
    }
    jobs.sort_by_key(|(number, ..)| *number);
    let bound = |name: &str, or: usize| -> Result<usize> {
        match parameters.text_or(name, "") {
            "" => Ok(or),
            text => text.parse().map_err(|_| Error::plan(name, format!("'{text}'"), "a whole number")),
        }
    };
    let starts: Vec<&str> = parameters.text_or("starts", "0").split_whitespace().collect();
    let seed = parameters.seeds.first().copied().unwrap_or(0) as usize;
    let start = starts.get(seed).and_then(|text| text.parse::<usize>().ok());
    let from =
        start.ok_or_else(|| Error::plan("starts", format!("'{}'", starts.join(" ")), "a position for each seed"))?;
    let count = bound("jobs", usize::MAX)?;
    let mut lines = vec!["job,user,submit_s,duration_s,estimate_s,tasks,gang,slots".to_owned()];
    let mut sequence: Vec<_> = jobs.into_iter().skip(from).take(count).collect();
    sequence.sort_by_key(|(_, submit, ..)| *submit);
    for (number, submit, run, nodes, estimate) in sequence {
        lines.push(format!("{number},all,{submit},{run},{estimate},{nodes},true,1"));
    }
    write(&into.join("trace.csv"), lines)?;
    // A job occupies whole nodes, but its work counts by processors.
    let work = asked.into_iter().map(|(number, work)| format!("{number},{work}"));
    let header = ["job,processor_s".to_owned(), format!("all,{processors}")];
    write(&into.join("work.csv"), header.into_iter().chain(work))?;
    write(&into.join("machines.csv"), ["name,slots".to_owned(), format!("pool,{nodes}")])
}
