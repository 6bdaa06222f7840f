//! `batch_task.csv` of Alibaba's 2017 cluster trace: task sets that Fuxi scheduled on about 1,300 machines.
//!
//! Rows have eight fields, with or without a header: created, ended, job, task, instances, status, and per instance hundredths of a core
//! and normalised memory. Only completed rows with both demands are kept. A row's span is taken as the duration of each of its instances,
//! which is an upper bound. Rows are unsorted, and the rows of a job have different creation times. So by default each task set becomes a
//! job, and its user is the original job.
//!
//! Not modelled: the online containers that shared the machines. The cluster is not in the data; [`ASSUMED_CLUSTER`] is used instead.
//! Source: Alibaba Cluster Trace Program, cluster-trace-v2017.

use super::detect::are_numbers;
use super::{FirstNames, FormatRow, dim};
use crate::workload::{Input, Names, TaskSet, Workload};
use plimsoll_base::error::Result;
use plimsoll_base::rows::{InputColumn, InputRow, InputRows, Separator};
use plimsoll_base::units::{JobId, Resources, Rounding, Span, Time, US_PER_S, Unit, UserId};

pub(super) static ROW: FormatRow = FormatRow {
    about: "Alibaba 2017 batch_task.csv: task sets with cores and normalised memory",
    layout: "8 fields, with or without a header",
    source: "Alibaba Cluster Trace Program, cluster-trace-v2017",
    example: "-64,65,3,4,15,Terminated,50,0.007\n60,61,4,7,393,Waiting,,\n",
    columns: &[],
    recognises: |head| {
        let fields = head.fields(b',');
        let is_word = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_alphabetic);
        is_header(fields.iter().copied())
            || (fields.len() == HEADER.len() && are_numbers(&fields[..5]) && is_word(fields[5]))
    },
    read: |input, options, _| read(input, &options.alibaba2017, options.strict),
};

/// The cluster to replay the trace on, according to the trace's description: 1,300 machines of 64 cores and memory 1.
const ASSUMED_CLUSTER: &str = "1300x64c1norm";

/// The meaning of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alibaba2017Jobs {
    /// Each task set is a job `jJOB.TASK`, submitted when it was created.
    #[default]
    TaskSet,
    /// All task sets of an original job are one job `jJOB`. It is submitted when its first task set was created, so other task sets are
    /// submitted before their creation.
    Job,
}

/// Options for reading `batch_task.csv`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Alibaba2017Options {
    /// The meaning of a job.
    pub jobs: Alibaba2017Jobs,
}

const HEADER: [&str; 8] = [
    "task_create_time",
    "task_end_time",
    "job_id",
    "task_id",
    "number_of_instances",
    "status",
    "number_of_cpus_requested_per_instance_in_the_task",
    "normalized_memory_requested_per_instance_in_the_task",
];

const fn column(at: usize) -> InputColumn<'static> {
    InputColumn::new(at, HEADER[at])
}

const CREATE: InputColumn<'_> = column(0);
const END: InputColumn<'_> = column(1);
const JOB: InputColumn<'_> = column(2);
const TASK: InputColumn<'_> = column(3);
const INSTANCES: InputColumn<'_> = column(4);
const STATUS: InputColumn<'_> = column(5);
const CPU: InputColumn<'_> = column(6);
const MEMORY: InputColumn<'_> = column(7);

/// Returns whether the fields of a first line are a header. Copies of the trace differ in the names of the other columns.
fn is_header<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut is = |skip: usize, name: &[u8]| fields.nth(skip) == Some(name);
    is(2, b"job_id") && is(0, b"task_id") && is(1, b"status")
}

fn read(input: &Input, options: &Alibaba2017Options, strict: bool) -> Result<Workload> {
    let mut trace = Trace { jobs: options.jobs, ..Trace::default() };
    trace.workload.dims = vec![dim("cpu", Unit::Milli), dim("memory", Unit::Normalised)];
    let mut rows = InputRows::new(input.reader()?, input.path(), Separator::Comma);
    let mut first = true;
    while let Some(row) = rows.read()? {
        if !(std::mem::take(&mut first) && is_header(row.record.iter())) {
            let read = trace.row(&row);
            trace.workload.quality.count_row(read, strict)?;
        }
    }
    Ok(trace.submit())
}

/// The rows read so far, with their signed creation times.
#[derive(Default)]
struct Trace {
    jobs: Alibaba2017Jobs,
    workload: Workload,
    created_us: Vec<i64>,
    seen: FirstNames,
    job_ids: Names,
}

impl Trace {
    fn row(&mut self, row: &InputRow<'_>) -> Result<()> {
        const SECONDS: &str = "seconds (negative ones lie before the trace's origin)";
        const WHOLE: &str = "a whole number from 0";
        row.expect_fields(8..=8, "8: created, ended, job, task, instances, status, cpu and memory")?;
        let created = row.signed(CREATE, US_PER_S, SECONDS)?;
        let ended = if row.is_null(END) { None } else { Some(row.signed(END, US_PER_S, SECONDS)?) };
        let (job, task) = (row.integer(JOB, WHOLE)?, row.integer(TASK, WHOLE)?);
        let instances = row.integer(INSTANCES, WHOLE)?;
        let status = row.name(STATUS)?;
        if !status.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(row.wrong(STATUS, "is not a status", "a word such as Terminated, Waiting, Running or Failed"));
        }
        let demand = self.demand(row)?;
        let tasks = u32::try_from(instances)
            .map_err(|_| row.wrong(INSTANCES, "is too large", "at most 4294967295 instances"))?;
        self.seen.check(row, TASK, &format!("j{job}.{task}"))?;
        let quality = &mut self.workload.quality;
        if status != "Terminated" {
            quality.drop_row(&format!("status {status}"), row.line);
            return Ok(());
        }
        let Some(demand) = demand else {
            quality.drop_row("lacks cpu or memory", row.line);
            return Ok(());
        };
        let Some(ended) = ended else {
            quality.drop_row("lacks an end time", row.line);
            return Ok(());
        };
        if ended < created {
            quality.drop_row("ends before it starts", row.line);
            return Ok(());
        }
        if tasks == 0 {
            quality.drop_row("has no instances", row.line);
            return Ok(());
        }
        let user = format!("j{job}");
        let id = match self.jobs {
            Alibaba2017Jobs::TaskSet => self.workload.job(&format!("j{job}.{task}")),
            Alibaba2017Jobs::Job => self.one_job(&user),
        };
        self.created_us.push(created);
        let user = UserId(self.workload.users.intern(&user));
        let duration = Span(ended.abs_diff(created));
        self.workload.sets.push(TaskSet { job: id, user, duration, tasks, demand, ..TaskSet::default() });
        Ok(())
    }

    /// Returns both demands of an instance, or `None` if one is absent.
    fn demand(&self, row: &InputRow<'_>) -> Result<Option<Resources>> {
        if row.is_null(CPU) || row.is_null(MEMORY) {
            return Ok(None);
        }
        let cpu = row.number(CPU, 10, Rounding::Up, "hundredths of a core from 0")?;
        let memory = row.number(MEMORY, 1_000_000, Rounding::Up, "a part of the largest machine's memory, from 0")?;
        Ok(Some(Resources::from_slice(&[cpu, memory])))
    }

    fn one_job(&mut self, name: &str) -> JobId {
        let (known, id) = (self.job_ids.len(), self.job_ids.intern(name));
        if id as usize == known { self.workload.job(name) } else { JobId(id) }
    }

    /// Sets the submit times. If a time is negative, all times are shifted so that the earliest is 0. In mode `job`, all rows of a job get
    /// the first of its times.
    fn submit(mut self) -> Workload {
        let origin = self.created_us.iter().copied().min().unwrap_or(0).min(0);
        let mut first: Vec<i64> = vec![i64::MAX; self.workload.jobs.len()];
        for (set, created) in self.workload.sets.iter().zip(&self.created_us) {
            let first = &mut first[set.job.index()];
            *first = (*first).min(*created);
        }
        for (set, created) in self.workload.sets.iter_mut().zip(&self.created_us) {
            let submitted = first[set.job.index()];
            if submitted < *created {
                self.workload.quality.repair_row("submitted with its job's first task set, before it was created");
            }
            set.submit = Time(submitted.abs_diff(origin));
        }
        let jobs = match self.jobs {
            Alibaba2017Jobs::TaskSet => "task-set",
            Alibaba2017Jobs::Job => "job",
        };
        for (name, value) in [
            ("alibaba-2017.jobs", jobs.to_owned()),
            ("alibaba-2017.duration", "the span of the task set, for every instance (an upper bound)".to_owned()),
            ("alibaba-2017.origin_us", origin.to_string()),
            ("alibaba-2017.cluster", ASSUMED_CLUSTER.to_owned()),
        ] {
            self.workload.quality.assumptions.push((name.to_owned(), value));
        }
        self.workload
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{dropped, file, import, shared, strict_refusal};
    use super::super::{Format, FormatOptions, Tenants, read};
    use super::*;
    use crate::cluster::ClusterSpec;

    const TEXT: &str = "task_create_time, task_end_time, job_id, task_id,number_of_instances, status, \
                        number_of_cpus_requested_per_instance_in_the_task,\
                        normalized_memory_requested_per_instance_in_the_task\r\n\
                        6459,6524,3,4,15740,Terminated,50,0.007956928\r\n\
                        -10,6533,3,5,1,Terminated,100,0.004\r\n\
                        6036,6046,4,7,393,Waiting,,\r\n\
                        6036,6046,4,8,393,Terminated,50,\r\n\
                        6036,6035,4,9,393,Terminated,50,0.1\r\n\
                        6036,,4,10,1,Running,50,0.1\r\n\
                        6036,6036,4,11,12.0,Terminated,50,0.1\r\n";

    #[test]
    fn usable_rows_are_kept_and_the_others_counted() {
        let workload = import(Format::Alibaba2017, TEXT).expect("readable");
        let rows: Vec<_> = workload
            .sets
            .iter()
            .map(|set| (workload.job_name(set.job), set.submit.0 / 1_000_000, set.duration.0, set.tasks))
            .collect();
        assert_eq!(
            rows,
            [("j3.5", 0, 6_543_000_000, 1), ("j4.11", 6046, 0, 12), ("j3.4", 6469, 65_000_000, 15740)]
                .map(|(job, submit, duration, tasks)| (job.to_owned(), submit, duration, tasks)),
            "sorted, and shifted by 10 s"
        );
        assert_eq!(workload.sets[2].demand.slice(2), [500, 7957]);
        assert_eq!(workload.users.iter().collect::<Vec<_>>(), ["j3", "j4"]);
        let quality = &workload.quality;
        assert_eq!((quality.rows_in, dropped(quality)), (7, 4));
        for reason in ["status Waiting", "status Running", "lacks cpu or memory", "ends before it starts"] {
            assert_eq!(quality.dropped[reason], 1, "{reason}");
        }
        assert!(quality.assumptions.contains(&("alibaba-2017.origin_us".into(), "-10000000".into())));
        let (_, headerless) = TEXT.split_once('\n').expect("a header");
        assert_eq!(import(Format::Alibaba2017, headerless).expect("readable").sets, workload.sets);
        let other = format!("create_ts,modify_ts,job_id,task_id,instance_num,status,plan_cpu,plan_mem\n{headerless}");
        assert_eq!(import(Format::Alibaba2017, &other).expect("readable").sets, workload.sets);
    }

    #[test]
    fn whole_jobs_are_submitted_with_their_first_task_set() {
        let mut options = FormatOptions { tenants: Some(Tenants::One), ..FormatOptions::default() };
        options.alibaba2017.jobs = Alibaba2017Jobs::Job;
        let workload = read(file(TEXT).path(), Format::Alibaba2017, &options).expect("readable");
        assert_eq!([0, 1].map(|job| workload.job_name(JobId(job))), ["j3", "j4"]);
        assert_eq!(workload.sets.iter().map(|set| set.submit.0 / 1_000_000).collect::<Vec<_>>(), [0, 0, 6046]);
        assert_eq!(workload.quality.repaired.values().sum::<u64>(), 1);
        assert_eq!(workload.users.len(), 1);
    }

    #[test]
    fn malformed_rows_are_located() {
        let good = "1,2,1,1,1,Terminated,50,0.1\n1,2,1,2,1,Terminated,50,0.1\n";
        for (bad, want) in [
            ("6459,6524,3,4,1,Terminated,50", "FILE, line 3: has 7 fields; expected 8"),
            ("created,6524,3,4,1,Terminated,50,0.1", "line 3, column 'task_create_time': 'created' is not a number"),
            ("1,2,3,4,1.5,Terminated,50,0.1", "column 'number_of_instances': '1.5' is not a whole number"),
            ("1,2,3,4,1,,50,0.1", "column 'status': is empty"),
            ("1,2,3,4,1,50,Terminated,0.1", "column 'status': '50' is not a status"),
            ("1,2,3,4,1,Terminated,-50,0.1", "in_the_task': '-50' is negative; expected hundredths of a core"),
            ("1,,3,4,x,Waiting,,", "column 'number_of_instances': 'x' is not a number"),
            ("1,2,3,4,1,Waiting,,\n1,2,3,4,1,Waiting,,", "line 4, column 'task_id': 'j3.4' was on line 3 already"),
            ("1,2,3,4,5000000000,Terminated,50,0.1", "is too large; expected at most 4294967295 instances"),
        ] {
            let message = strict_refusal(Format::Alibaba2017, &format!("{good}{bad}"));
            assert!(message.contains(want), "{message}");
        }
    }

    #[test]
    fn the_real_trace_has_ten_million_usable_instances() {
        let Some(path) = shared("alibaba-2017/batch_task.csv") else { return };
        let workload = read(&path, Format::Alibaba2017, &FormatOptions::default()).expect("readable");
        let quality = &workload.quality;
        assert_eq!(quality.rows_in, 80_553);
        let reasons: Vec<_> = quality.dropped.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        assert_eq!(
            reasons,
            [("lacks cpu or memory", 10), ("status Failed", 1126), ("status Running", 3567), ("status Waiting", 8847)]
        );
        assert_eq!(workload.sets.len() as u64 + dropped(quality), quality.rows_in);
        assert_eq!(workload.sets.len(), 67_003);
        assert_eq!(workload.sets.iter().map(|set| u64::from(set.tasks)).sum::<u64>(), 10_214_262);
        assert_eq!(workload.users.len(), 11_644);
        assert!(quality.assumptions.contains(&("alibaba-2017.origin_us".into(), "-1078000000".into())));
        assert!(workload.sets.is_sorted_by_key(|set| set.submit));
        let cluster = ClusterSpec::parse("cluster", ASSUMED_CLUSTER).expect("a cluster");
        assert!(
            workload.sets.iter().all(|set| (0..2).all(|dim| set.demand.0[dim] <= cluster.groups[0].capacity[dim].1))
        );
    }
}
