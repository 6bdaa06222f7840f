//! SWIM: Facebook's MapReduce jobs of 2009 and 2010, one row per job with the bytes read, shuffled and written.
//!
//! Rows have six tab-separated fields without a header: job, submit seconds, gap seconds, input bytes, shuffle bytes, output bytes.
//! Variants with paths have up to nine fields. Tasks, durations and demands are not in the data. They are derived from the bytes by the
//! named parameters of [`SwimOptions`], without randomness. A job becomes a row of maps and, if it shuffles, a row of reduces that starts
//! after all maps have ended.
//!
//! Simplifications: output bytes take no time (writing overlaps reading), and reduces do not start before all maps have ended. The file
//! consists of 24 one-hour windows drawn from months; the jumps between them are kept.
//!
//! Source: SWIM, UC Berkeley, New BSD; Chen et al., VLDB 2012. Demands: means of Ghodsi et al., NSDI 2011, Fig. 1.

use super::detect::are_numbers;
use super::{FirstNames, FormatRow, dim};
use crate::workload::{Input, TaskSet, Workload};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::{InputColumn, InputRow, InputRows, Separator};
use plimsoll_base::units::{Resources, Rounding, Span, TIME_MAX_US, Time, US_PER_S, Unit, UserId};

pub(super) static ROW: FormatRow = FormatRow {
    about: "SWIM, Facebook 2009 and 2010: bytes of map, shuffle and output",
    layout: "tab-separated, no header",
    source: "SWIM, New BSD; Chen et al., VLDB 2012",
    example: "job0\t49\t49\t67108865\t1073741825\t6\njob1\t101.5\t52\t7\t0\t4\n",
    columns: &[],
    recognises: |head| {
        let fields = head.fields(b'\t');
        // A line that begins like a comment is the header of another format.
        (6..=9).contains(&fields.len()) && !fields[0].is_empty() && !head.begins(b';') && are_numbers(&fields[1..6])
    },
    read: |input, options, _| read(input, &options.swim, options.strict),
};

/// The assumptions about a job beyond its bytes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwimOptions {
    /// Input bytes of one map: maps = max(1, ceil(input / map_bytes)). Default 64 MiB, Hadoop's block size at that time.
    pub map_bytes: u64,
    /// Shuffle bytes of one reduce: reduces = ceil(shuffle / reduce_bytes). Default 1 GiB.
    pub reduce_bytes: u64,
    /// The largest number of tasks of one job (at least 2). A job with more tasks gets fewer maps and reduces, in proportion, and its
    /// bytes are spread over fewer, longer tasks. Default 100,000.
    pub max_tasks: u32,
    /// The rate at which one map reads its input. Default 4 MiB/s. This is far below the rate of a disk, but with the start-up time a full
    /// 64 MiB map then takes 21 s, and the published median of Facebook's tasks is 23 s.
    pub map_bytes_per_s: u64,
    /// The rate at which one reduce reads its share of the shuffle. Default 4 MiB/s, so that a full reduce takes 261 s.
    pub reduce_bytes_per_s: u64,
    /// The time that every task takes before it reads its first byte. Default 5000 ms.
    pub start_up_ms: u64,
    /// Milli-cores of a map. Default 830, the mean of the published demands.
    pub map_cpu_milli: u64,
    /// Memory of a map. Default 615 MiB, 0.60 GiB.
    pub map_memory_mib: u64,
    /// Milli-cores of a reduce. Default 460.
    pub reduce_cpu_milli: u64,
    /// Memory of a reduce. Default 861 MiB, 0.84 GiB.
    pub reduce_memory_mib: u64,
}

impl Default for SwimOptions {
    fn default() -> SwimOptions {
        SwimOptions {
            map_bytes: 64 << 20,
            reduce_bytes: 1 << 30,
            max_tasks: 100_000,
            map_bytes_per_s: 4 << 20,
            reduce_bytes_per_s: 4 << 20,
            start_up_ms: 5000,
            map_cpu_milli: 830,
            map_memory_mib: 615,
            reduce_cpu_milli: 460,
            reduce_memory_mib: 861,
        }
    }
}

impl SwimOptions {
    /// Returns every parameter with its value and the least accepted value.
    fn named(&self) -> [(&'static str, u64, u64); 10] {
        [
            ("map_bytes", self.map_bytes, 1),
            ("reduce_bytes", self.reduce_bytes, 1),
            ("max_tasks", u64::from(self.max_tasks), 2),
            ("map_bytes_per_s", self.map_bytes_per_s, 1),
            ("reduce_bytes_per_s", self.reduce_bytes_per_s, 1),
            ("start_up_ms", self.start_up_ms, 0),
            ("map_cpu_milli", self.map_cpu_milli, 0),
            ("map_memory_mib", self.map_memory_mib, 0),
            ("reduce_cpu_milli", self.reduce_cpu_milli, 0),
            ("reduce_memory_mib", self.reduce_memory_mib, 0),
        ]
    }

    fn check(&self) -> Result<()> {
        /// The largest value of a parameter, which is beyond any real value; sums stay within 64 bits.
        const MOST: u64 = 1_000_000_000_000;
        match self.named().into_iter().find(|(_, value, least)| !(*least..=MOST).contains(value)) {
            None => Ok(()),
            Some((name, value, least)) => {
                Err(Error::plan(format!("swim.{name}"), value, format!("a whole number from {least} to {MOST}")))
            }
        }
    }

    /// Returns the numbers of maps and reduces of a job, and whether they were reduced to `max_tasks`.
    fn tasks(&self, input: u64, shuffle: u64) -> (u64, u64, bool) {
        let maps = input.div_ceil(self.map_bytes).max(1);
        let reduces = shuffle.div_ceil(self.reduce_bytes);
        let (all, most) = (u128::from(maps) + u128::from(reduces), u64::from(self.max_tasks));
        if all <= u128::from(most) {
            return (maps, reduces, false);
        }
        if reduces == 0 {
            return (most, 0, true);
        }
        let cut = (u128::from(reduces) * u128::from(most) / all) as u64;
        let cut = cut.clamp(1, most - 1);
        (most - cut, cut, true)
    }

    /// Returns the duration of each of `tasks` tasks for its part of `bytes`, or `None` if it exceeds the range of a trace.
    fn duration(&self, bytes: u64, tasks: u64, bytes_per_s: u64) -> Option<Span> {
        let speed = u128::from(tasks) * u128::from(bytes_per_s);
        let us = (u128::from(bytes) * u128::from(US_PER_S) + speed / 2) / speed + u128::from(self.start_up_ms) * 1000;
        u64::try_from(us).ok().filter(|&us| us <= TIME_MAX_US).map(Span)
    }
}

const JOB: InputColumn<'_> = InputColumn::new(0, "job_id");
const SUBMIT: InputColumn<'_> = InputColumn::new(1, "submit_time_s");
const GAP: InputColumn<'_> = InputColumn::new(2, "inter_submit_gap_s");
const INPUT: InputColumn<'_> = InputColumn::new(3, "map_input_bytes");
const SHUFFLE: InputColumn<'_> = InputColumn::new(4, "shuffle_bytes");
const OUTPUT: InputColumn<'_> = InputColumn::new(5, "reduce_output_bytes");

const BYTES: &str = "bytes, a whole number from 0";
const SECONDS: &str = "seconds from 0";

fn read(input: &Input, options: &SwimOptions, strict: bool) -> Result<Workload> {
    options.check()?;
    let mut workload =
        Workload { dims: vec![dim("cpu", Unit::Milli), dim("memory", Unit::Mebibyte)], ..<_>::default() };
    let assumptions = options.named().map(|(name, value, _)| (format!("swim.{name}"), value.to_string()));
    workload.quality.assumptions.extend(assumptions);
    workload.quality.assumptions.push(("swim.output".into(), "output bytes take no time".into()));
    let mut seen = FirstNames::default();
    let mut rows = InputRows::new(input.reader()?, input.path(), Separator::Tab);
    while let Some(row) = rows.read()? {
        let read = job(&row, options, &mut seen, &mut workload);
        workload.quality.count_row(read, strict)?;
    }
    Ok(workload)
}

/// Adds the task sets of one row.
fn job(row: &InputRow<'_>, options: &SwimOptions, seen: &mut FirstNames, workload: &mut Workload) -> Result<()> {
    row.expect_fields(6..=9, "6 (job, submit s, gap s, input, shuffle and output bytes), or up to 9 with paths")?;
    let name = row.name(JOB)?;
    let submit = Time(row.number(SUBMIT, US_PER_S, Rounding::Nearest, SECONDS)?);
    row.number(GAP, US_PER_S, Rounding::Nearest, SECONDS)?;
    let (input, shuffle) = (row.integer(INPUT, BYTES)?, row.integer(SHUFFLE, BYTES)?);
    let output = row.integer(OUTPUT, BYTES)?;
    let (maps, reduces, cut) = options.tasks(input, shuffle);
    let duration = |bytes, tasks: u64, speed| match tasks {
        0 => Ok(Span::ZERO),
        tasks => options
            .duration(bytes, tasks, speed)
            .ok_or_else(|| row.error("", "would run longer than a trace can hold; expected fewer bytes or more speed")),
    };
    let of_map = duration(input, maps, options.map_bytes_per_s)?;
    let of_reduce = duration(shuffle, reduces, options.reduce_bytes_per_s)?;
    seen.check(row, JOB, name)?;
    if input == 0 && shuffle == 0 && output == 0 {
        workload.quality.drop_row("all byte counts are zero", row.line);
        return Ok(());
    }
    if input == 0 {
        workload.quality.repair_row("zero input bytes: given one map");
    }
    if cut {
        workload.quality.repair_row("more than max_tasks tasks: bytes spread over fewer, longer ones");
    }
    let job = workload.job(name);
    let user = UserId(workload.users.intern(name));
    let (map, reduce) = (workload.stages.intern("map"), workload.stages.intern("reduce"));
    let stages = [
        (map, maps, of_map, [options.map_cpu_milli, options.map_memory_mib]),
        (reduce, reduces, of_reduce, [options.reduce_cpu_milli, options.reduce_memory_mib]),
    ];
    for (stage, tasks, duration, [cpu, memory]) in stages.into_iter().filter(|(_, tasks, ..)| *tasks > 0) {
        workload.sets.push(TaskSet {
            job,
            user,
            submit,
            duration,
            tasks: u32::try_from(tasks).expect("max_tasks fits 32 bits"),
            demand: Resources::from_slice(&[cpu, memory]),
            stage: Some(stage),
            after: if stage == reduce { vec![map] } else { Vec::new() },
            ..TaskSet::default()
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {

    use super::super::tests::{dropped, import, shared, strict_refusal};
    use super::super::{Format, FormatOptions, read};

    #[test]
    fn bytes_become_tasks_by_the_named_parameters() {
        let text = "job0\t49\t49\t67108865\t1073741825\t627471\njob1\t101.5\t52\t736346\t0\t432269\n";
        let workload = import(Format::Swim, text).expect("readable");
        let rows: Vec<_> = workload.sets.iter().map(|set| (set.submit.0, set.tasks, set.duration.0)).collect();
        // At 4 MiB/s, half of (64 MiB + 1 byte) takes 8 s, half of (1 GiB + 1 byte) takes 128 s, and 736,346 bytes take 0.175559 s. The
        // start-up time adds 5 s.
        assert_eq!(rows, [(49_000_000, 2, 13_000_000), (49_000_000, 2, 133_000_000), (101_500_000, 1, 5_175_559)]);
        assert_eq!(workload.sets[1].after, [0]);
        assert_eq!((workload.stages.name(0), workload.stages.name(1)), ("map", "reduce"));
        assert_eq!(workload.sets[0].demand.slice(3), [830, 615, 0]);
        assert_eq!(workload.sets[1].demand.slice(3), [460, 861, 0]);
        assert_eq!(workload.users.iter().collect::<Vec<_>>(), ["job0", "job1"]);
        assert!(workload.quality.assumptions.contains(&("swim.map_bytes".into(), "67108864".into())));
        assert!(workload.quality.assumptions.contains(&("tenants".into(), "job".into())));
    }

    #[test]
    fn variants_with_paths_read_alike() {
        let plain = "job0\t1\t1\t10\t20\t30\njob1\t2\t1\t0\t5\t0\n";
        let paths = "\u{feff}job0\t1\t1\t10\t20\t30\tinputPath1\t\t\r\njob1\t2\t1\t0\t5\t0\tin\"put\tout\r\n";
        let (plain, paths) =
            (import(Format::Swim, plain).expect("plain"), import(Format::Swim, paths).expect("with paths"));
        assert_eq!(plain.sets, paths.sets);
        assert_eq!(plain.jobs, paths.jobs);
        assert_eq!(paths.quality.repaired.values().sum::<u64>(), 1);
    }

    #[test]
    fn zero_rows_are_dropped_and_large_jobs_cut() {
        let text = "a\t1\t1\t0\t0\t0\nb\t1\t0\t0\t0\t7\nc\t2\t1\t6710886400\t107374182400\t0\n";
        let mut options = FormatOptions::default();
        options.swim.max_tasks = 20;
        let file = super::super::tests::file(text);
        let workload = read(file.path(), Format::Swim, &options).expect("readable");
        assert_eq!(workload.quality.rows_in, 3);
        assert_eq!(dropped(&workload.quality), 1);
        assert_eq!(workload.quality.repaired.values().sum::<u64>(), 2);
        // 100 maps and 100 reduces are reduced to 10 maps and 10 reduces. Every byte is still read: 640 MiB per map at 4 MiB/s.
        let tasks: Vec<_> = workload.sets.iter().map(|set| (set.tasks, set.duration.0)).collect();
        assert_eq!(tasks, [(1, 5_000_000), (10, 165_000_000), (10, 2_565_000_000)]);
    }

    #[test]
    fn malformed_rows_are_located() {
        let good = "a\t1\t1\t1\t1\t1\n";
        for (bad, want) in [
            ("b\t1\t1\t1\t1\n", "FILE, line 2: has 5 fields; expected 6 "),
            ("b\t1\t1\t1\t1\t1\t\t\t\t\n", "FILE, line 2: has 10 fields; expected 6 "),
            ("b\t1\t1\tx\t1\t1\n", "line 2, column 'map_input_bytes': 'x' is not a number; expected bytes"),
            ("b\t1\t1\t1\t-1\t1\n", "line 2, column 'shuffle_bytes': '-1' is negative; expected bytes"),
            ("b\tnan\t1\t1\t1\t1\n", "line 2, column 'submit_time_s': 'nan' is not finite; expected seconds"),
            ("\t1\t1\t1\t1\t1\n", "line 2, column 'job_id': is empty; expected a name"),
            ("a\t1\t1\t1\t1\t1\n", "line 2, column 'job_id': 'a' was on line 1 already"),
        ] {
            let message = strict_refusal(Format::Swim, &format!("{good}{bad}"));
            assert!(message.contains(want), "{message}");
        }
        let mut options = FormatOptions::default();
        options.swim.map_bytes = 0;
        let nothing = crate::workload::Input::Bytes("absent".into(), [].into());
        let message = super::super::read_input(&nothing, Format::Swim, &options).unwrap_err().to_string();
        assert_eq!(message, "swim.map_bytes: 0 is not accepted; expected a whole number from 1 to 1000000000000");
    }

    #[test]
    fn the_facebook_trace_of_2009_reads_whole() {
        let Some(path) = shared("swim/FB-2009_samples_24_times_1hr_0.tsv") else { return };
        let workload = read(&path, Format::Swim, &FormatOptions::default()).expect("readable");
        let quality = &workload.quality;
        assert_eq!(quality.rows_in, 5894);
        assert_eq!(quality.dropped["all byte counts are zero"], 33);
        assert_eq!(quality.repaired["zero input bytes: given one map"], 53);
        assert_eq!(workload.jobs.len() as u64 + dropped(quality), quality.rows_in);
        let tasks = |stage| -> u64 {
            workload.sets.iter().filter(|set| set.stage == Some(stage)).map(|set| u64::from(set.tasks)).sum()
        };
        // One job has 112,571 tasks and is cut to 100,000.
        assert_eq!(quality.repaired["more than max_tasks tasks: bytes spread over fewer, longer ones"], 1);
        assert_eq!(tasks(0) + tasks(1), 405_972 + 21_895 - 12_571);
        assert_eq!(workload.sets.iter().filter(|set| set.stage == Some(1)).count(), 5894 - 4448);
        assert!(quality.warnings.is_empty());
    }
}
