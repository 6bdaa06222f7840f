//! Writes a log with the shape of a cell of Google 2019, to measure imports and replays of any size: `cargo run --release --example
//! google_log -- events 1000000 FOLDER`, or `table` or `trace` in place of `events`.
//!
//! A cell has about 12,500 machines with normalised capacities and ids of 12 digits (Tirmazi et al., EuroSys 2020; Wilkes et al., 2020).
//! `events` writes rows of `instance_events` in the columns of the shipped mapping `google-2019`: SUBMIT, SCHEDULE and FINISH of each task,
//! and `collection_events` with the users. `table` writes one row per task, with a header. The number is that of rows, so that `events`
//! has a third as many tasks. As in published logs, the rows of a file are in no order, and the events of a task are in several files.
//! `trace` writes the tasks of `table` as a canonical trace, sorted by submit time.
//!
//! The load is a choice of this program, not a fitted value: 40 tasks per second, lognormal durations with a mean of about 72 minutes and
//! demands with a mean of 0.058 of a machine use about four fifths of 12,500 machines of capacity 1. A job has Pareto many tasks (exponent
//! 1.3, at most 1,000). Jobs belong to 1,000 users; the part of user k falls with k.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, LogNormal, Pareto};

/// Tasks that are submitted per second.
const RATE: f64 = 40.0;
/// The mean number of tasks of a job, as drawn below.
const JOB: f64 = 3.5;
/// The files of one table.
const FILES: usize = 8;
/// The rows of one file among which the next row is drawn.
const SHUFFLED: usize = 1 << 16;
/// The most common requests, in machines: CPU and memory.
const SHAPES: [(&str, &str); 8] = [
    ("0.0125", "0.00625"),
    ("0.025", "0.03125"),
    ("0.05", "0.025"),
    ("0.0625", "0.0625"),
    ("0.03125", "0.09375"),
    ("0.125", "0.05"),
    ("0.0751953", "0.1"),
    ("0.0825195", "0.0703125"),
];

/// A file with shuffled rows.
struct ShuffledFile {
    out: BufWriter<File>,
    rows: Vec<String>,
}

impl ShuffledFile {
    fn push(&mut self, mut row: String, rng: &mut ChaCha8Rng) -> std::io::Result<()> {
        if self.rows.len() < SHUFFLED {
            self.rows.push(row);
            return Ok(());
        }
        let at = rng.random_range(0..SHUFFLED);
        std::mem::swap(&mut self.rows[at], &mut row);
        self.out.write_all(row.as_bytes())
    }

    fn finish(mut self) -> std::io::Result<()> {
        self.rows.iter().try_for_each(|row| self.out.write_all(row.as_bytes()))?;
        self.out.flush()
    }
}

fn create(folder: &Path, name: &str, header: &str) -> std::io::Result<ShuffledFile> {
    let mut out = BufWriter::with_capacity(1 << 18, File::create(folder.join(name))?);
    out.write_all(header.as_bytes())?;
    Ok(ShuffledFile { out, rows: Vec::new() })
}

fn write(form: &str, rows: u64, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    // Tasks are drawn apart from the order of rows, so that all forms have the same tasks.
    let (mut rng, mut order) = (ChaCha8Rng::seed_from_u64(2019), ChaCha8Rng::seed_from_u64(2020));
    let invalid = |_| std::io::Error::other("an invalid parameter of a distribution");
    let duration = LogNormal::new(1200f64.ln(), 1.6).map_err(invalid)?;
    let size = Pareto::new(1.0, 1.3).map_err(|_| std::io::Error::other("an invalid parameter of a distribution"))?;
    let gap = Exp::new(RATE / JOB).map_err(|_| std::io::Error::other("an invalid parameter of a distribution"))?;
    let header = "collection_id,instance_index,user,priority,submit_us,start_us,end_us,cpus,memory\n";
    let is_events = form == "events";
    let mut files = Vec::new();
    for at in 0..FILES {
        files.push(match form {
            "events" => create(folder, &format!("instance_events-{at:05}.csv"), "")?,
            "table" => create(folder, &format!("tasks-{at:05}.csv"), header)?,
            _ => break,
        });
    }
    let header = "job,user,submit_us,duration_us,cpu_norm,memory_norm,priority\n";
    let mut trace = (form == "trace").then(|| create(folder, "trace.csv", header)).transpose()?;
    let mut users = is_events.then(|| create(folder, "collection_events.csv", "")).transpose()?;
    // The window starts at 600 s. Ids are of 12 digits and do not follow the order of submission.
    let (mut now, mut written, mut job) = (600.0, 0, 0u64);
    while written < rows {
        now += gap.sample(&mut rng);
        let tasks = (size.sample(&mut rng) as u64).clamp(1, 1000);
        let id = 100_000_000_000 + job * 7_919_319_091 % 900_000_000_000;
        let user = (1000.0 * rng.random::<f64>().powi(2)) as u32;
        let priority = [25, 103, 111, 117, 200, 360][rng.random_range(0..6)];
        let (cpus, memory) = SHAPES[rng.random_range(0..SHAPES.len())];
        let submit = (now * 1e6) as u64;
        job += 1;
        if let Some(users) = &mut users {
            users.push(format!("{id},user{user}\n"), &mut order)?;
        }
        for index in 0..tasks {
            let start = submit + rng.random_range(100_000..5_000_000u64);
            let end = start + (duration.sample(&mut rng).clamp(1.0, 432_000.0) * 1e6) as u64;
            if is_events {
                for (time, kind) in [(submit, 0), (start, 3), (end, 6)] {
                    let machine = if kind == 0 { 0 } else { 1000 + order.random_range(0..12_500u64) };
                    let row = format!("{time},{kind},{id},{index},{priority},0,{cpus},{memory},{machine},1,,-1,,\n");
                    let file = order.random_range(0..FILES);
                    files[file].push(row, &mut order)?;
                }
                written += 3;
            } else if let Some(trace) = &mut trace {
                let (level, duration) = (
                    if priority >= 120 {
                        0
                    } else if priority >= 110 {
                        5
                    } else {
                        9
                    },
                    end - start,
                );
                let row = format!("{id},user{user},{submit},{duration},{cpus},{memory},{level}\n");
                trace.out.write_all(row.as_bytes())?;
                written += 1;
            } else {
                let row = format!("{id},{index},user{user},{priority},{submit},{start},{end},{cpus},{memory}\n");
                let file = order.random_range(0..FILES);
                files[file].push(row, &mut order)?;
                written += 1;
            }
            if written >= rows {
                break;
            }
        }
    }
    files.into_iter().chain(users).chain(trace).try_for_each(ShuffledFile::finish)
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [form, rows, folder]
            if ["events", "table", "trace"].contains(&form.as_str()) && rows.parse::<u64>().is_ok() =>
        {
            write(form, rows.parse().unwrap_or(0), Path::new(folder))
        }
        _ => Err(std::io::Error::other("expected `events`, `table` or `trace`, a number of rows and a folder")),
    }
}
