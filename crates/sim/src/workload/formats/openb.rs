//! The openb pod list of Alibaba's 2023 GPU cluster trace: one row per pod, with a part of a GPU, whole GPUs or none.
//!
//! The header names these columns: name, milli-cores, MiB, number of GPUs, milli-GPUs of each GPU, class of service, phase, and the times
//! of creation, scheduling and deletion in seconds. A pod is a job of one task that is submitted at its creation and runs from its
//! scheduling to its deletion. Pods that were never scheduled are dropped; pods that still ran at the end of the trace are cut at that
//! time. The machines are in a separate list, which [`crate::cluster::file`] reads.
//!
//! Not modelled: the GPU models that a pod accepts (a warning counts these pods). Source: Weng et al., USENIX ATC 2023;
//! cluster-trace-gpu-v2023.

use super::{FirstNames, FormatRow, Tenants, dim};
use crate::workload::{Input, TaskSet, Workload};
use plimsoll_base::error::Result;
use plimsoll_base::rows::{InputColumn, InputRow, InputRows, Separator};
use plimsoll_base::units::{Resources, Rounding, Span, Time, US_PER_S, Unit, UserId};

pub(super) static ROW: FormatRow = FormatRow {
    about: "Alibaba 2023 openb pod list: cores, memory and fractional GPUs",
    layout: "with a header",
    source: "cluster-trace-gpu-v2023; Weng et al., USENIX ATC 2023",
    example: "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
              scheduled_time\np0,12000,16384,8,1000,,LS,Running,10,500,20\n",
    columns: &[Tenants::Qos],
    recognises: |head| {
        let fields = head.fields(b',');
        ["name", "cpu_milli", "num_gpu", "gpu_milli"].iter().all(|name| fields.contains(&name.as_bytes()))
    },
    read: |input, options, tenants| read(input, &options.openb, options.strict, tenants),
};

/// Options for replaying pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenbOptions {
    /// Whether pods arrive in order of creation, one per second, and never leave, so that the cluster fills up. Pods that were never
    /// scheduled are included. Weng et al. (USENIX ATC 2023, 6.1) inflate a workload in this way. Default false.
    pub stay: bool,
}

/// The running time of a pod that stays: longer than any run.
const STAYS: Span = Span::from_secs(100 * 365 * 86_400);

/// The columns that are read, in any order; other columns are ignored.
const COLUMNS: [&str; 11] = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
];

/// Columns that lists without times lack; only `openb.stay` reads a list without them.
const OPTIONAL: [&str; 6] = ["gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"];

/// The columns of the file; `None` for a missing one.
struct Header([Option<InputColumn<'static>>; COLUMNS.len()]);

impl Header {
    /// Reads the first line. A list that is read with `stay` needs no times, classes or GPU models.
    fn read(row: &InputRow<'_>, stay: bool, tenants: Tenants) -> Result<Header> {
        let mut columns = [None; COLUMNS.len()];
        for (column, name) in columns.iter_mut().zip(COLUMNS) {
            let at = row.record.iter().position(|field| field == name.as_bytes());
            let optional = stay && OPTIONAL.contains(&name) && (name != "qos" || tenants != Tenants::Qos);
            if at.is_none() && !optional {
                let times = name.ends_with("_time") || name == "gpu_spec";
                let stay = if times && !stay { "; a list without times is read with openb.stay=true" } else { "" };
                let expected = COLUMNS.join(", ");
                return Err(row.error(name, format!("is missing; expected a header with {expected}{stay}")));
            }
            *column = at.map(|at| InputColumn::new(at, name));
        }
        Ok(Header(columns))
    }
}

/// One row of the file.
struct Pod {
    line: u64,
    name: String,
    qos: String,
    running: bool,
    picky: bool,
    demand: Resources,
    created_us: u64,
    scheduled_us: Option<u64>,
    deleted_us: Option<u64>,
}

impl Pod {
    fn read(row: &InputRow<'_>, header: &Header) -> Result<Pod> {
        const SECONDS: &str = "seconds from 0";
        // A truncated row must not be mistaken for a row with nulls at its end.
        let least = header.0.iter().flatten().map(|column| column.at + 1).max().unwrap_or(0);
        row.expect_fields(least..=usize::MAX, &format!("at least {least}, as in the header"))?;
        let [_, _, _, _, _, gpu_spec, qos, phase, created, deleted, scheduled] = header.0;
        let [name, cpu, memory, gpus, gpu_milli] =
            std::array::from_fn(|at| header.0[at].expect("the first five columns are required"));
        let mut demand = Resources::ZERO;
        demand[0] = row.number(cpu, 1, Rounding::Up, "milli-cores from 0")?;
        demand[1] = row.number(memory, 1, Rounding::Up, "MiB from 0")?;
        let each = row.number(gpu_milli, 1, Rounding::Up, "milli-GPUs from 0")?;
        let gpus_wanted = row.integer(gpus, "a whole number of GPUs from 0")?;
        demand[2] = gpus_wanted
            .checked_mul(each)
            .filter(|&milli| milli <= u64::MAX >> 4)
            .ok_or_else(|| row.wrong(gpus, "is too large", "a number of GPUs that a machine could have"))?;
        let time = |column: Option<InputColumn<'_>>| -> Result<Option<u64>> {
            let Some(column) = column else { return Ok(None) };
            if row.is_null(column) {
                Ok(None)
            } else {
                row.number(column, US_PER_S, Rounding::Nearest, SECONDS).map(Some)
            }
        };
        Ok(Pod {
            line: row.line,
            name: row.name(name)?.to_owned(),
            qos: qos.map(|qos| row.name(qos)).transpose()?.unwrap_or_default().to_owned(),
            running: phase.map(|phase| row.name(phase)).transpose()? == Some("Running"),
            picky: gpu_spec.is_some_and(|column| !row.is_null(column)),
            demand,
            created_us: match created {
                Some(created) => row.number(created, US_PER_S, Rounding::Nearest, SECONDS)?,
                None => 0,
            },
            scheduled_us: time(scheduled)?,
            deleted_us: time(deleted)?,
        })
    }
}

fn read(input: &Input, options: &OpenbOptions, strict: bool, tenants: Tenants) -> Result<Workload> {
    let dims = vec![dim("cpu", Unit::Milli), dim("memory", Unit::Mebibyte), dim("gpu", Unit::Milli)];
    let mut workload = Workload { dims, ..Workload::default() };
    let (mut rows, mut seen, mut pods) =
        (InputRows::new(input.reader()?, input.path(), Separator::Comma), FirstNames::default(), Vec::new());
    let Some(header) = rows.read()?.map(|row| Header::read(&row, options.stay, tenants)).transpose()? else {
        return Ok(workload);
    };
    while let Some(row) = rows.read()? {
        let read = Pod::read(&row, &header).and_then(|pod| {
            seen.check(&row, InputColumn::new(0, COLUMNS[0]), &pod.name)?;
            pods.push(pod);
            Ok(())
        });
        workload.quality.count_row(read, strict)?;
    }
    let end = pods.iter().filter_map(|pod| pod.deleted_us).max();
    let mut picky = 0;
    if options.stay {
        pods.sort_by_key(|pod| pod.created_us);
        for (pod, second) in pods.iter().zip(0..) {
            picky += u64::from(pod.picky);
            add(pod, Time::ZERO + Span::from_secs(second), STAYS, tenants, &mut workload);
        }
    } else {
        for pod in &pods {
            let before = workload.sets.len();
            add_pod(pod, end, tenants, &mut workload);
            picky += u64::from(pod.picky && workload.sets.len() > before);
        }
    }
    if picky > 0 {
        let warning =
            format!("kept pods that request certain GPU models (gpu_spec): {picky}; these requests are ignored");
        workload.quality.warnings.push(warning);
    }
    for (name, value) in [
        ("openb.duration", if options.stay { "for ever" } else { "from scheduling to deletion" }),
        ("openb.gpu", "num_gpu x gpu_milli, from one machine but not from certain devices"),
    ] {
        workload.quality.assumptions.push((name.into(), value.into()));
    }
    Ok(workload)
}

/// Adds a pod to the workload, or counts it as dropped with the reason. `end_us` is the last deletion of the trace.
fn add_pod(pod: &Pod, end_us: Option<u64>, tenants: Tenants, workload: &mut Workload) {
    let quality = &mut workload.quality;
    let Some(scheduled) = pod.scheduled_us else { return quality.drop_row("never scheduled", pod.line) };
    let Some(end) = pod.deleted_us.or(end_us) else {
        return quality.drop_row("no pod of the trace was deleted", pod.line);
    };
    if end < scheduled {
        return quality.drop_row("ends before it starts", pod.line);
    }
    if pod.deleted_us.is_none() || (pod.running && Some(end) == end_us) {
        quality.repair_row("still running at the end of the trace: cut there");
    }
    add(pod, Time(pod.created_us), Span(end - scheduled), tenants, workload);
}

fn add(pod: &Pod, submit: Time, duration: Span, tenants: Tenants, workload: &mut Workload) {
    let job = workload.job(pod.name.as_str());
    let user = if tenants == Tenants::Qos { &pod.qos } else { &pod.name };
    let user = UserId(workload.users.intern(user));
    workload.sets.push(TaskSet { job, user, submit, duration, tasks: 1, demand: pod.demand, ..TaskSet::default() });
}

#[cfg(test)]
mod tests {
    use super::super::tests::{dropped, file, import, refusal, shared, strict_refusal};
    use super::super::{Format, FormatOptions, read};
    use super::*;

    const TEXT: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
                        deletion_time,scheduled_time\r\n\
                        p0,12000,16384,8,1000,,LS,Running,10,500,20\r\n\
                        p1,6000,12288,1,460,V100M16|V100M32,BE,Succeeded,0,500.0,30.0\r\n\
                        p2,6000,12288,0,0,nan,BE,Pending,40,500,\r\n\
                        p3,6000,12288,0,0,,BE,Failed,40,45,50\r\n\
                        p4,1,1,0,0,,LS,Running,50,,60\r\n";

    #[test]
    fn pods_become_jobs_and_the_others_are_counted() {
        let workload = import(Format::Openb, TEXT).expect("readable");
        let rows: Vec<_> = workload
            .sets
            .iter()
            .map(|set| (workload.job_name(set.job), set.submit.0, set.duration.0, set.demand.0[2]))
            .collect();
        let s = US_PER_S;
        let expected = [("p1", 0, 470 * s, 460), ("p0", 10 * s, 480 * s, 8000), ("p4", 50 * s, 440 * s, 0)];
        assert_eq!(rows, expected.map(|(job, submit, duration, gpu)| (job.to_owned(), submit, duration, gpu)));
        let quality = &workload.quality;
        assert_eq!((quality.rows_in, dropped(quality)), (5, 2));
        assert_eq!(quality.dropped["never scheduled"], 1);
        assert_eq!(quality.dropped["ends before it starts"], 1);
        assert_eq!(quality.repaired["still running at the end of the trace: cut there"], 2);
        assert!(quality.warnings[0].contains("(gpu_spec): 1;"));
        assert_eq!(workload.users.len(), 3);
        let options = FormatOptions { openb: OpenbOptions { stay: true }, ..FormatOptions::default() };
        let stay = read(file(TEXT).path(), Format::Openb, &options).expect("readable");
        let rows = stay.sets.iter().map(|set| (stay.job_name(set.job), set.submit.0, set.duration));
        assert_eq!(rows.clone().map(|(name, ..)| name).collect::<Vec<_>>(), ["p1", "p0", "p2", "p3", "p4"]);
        assert!(rows.zip(0..).all(|((_, at, duration), n)| at == n * s && duration == STAYS));
        let options = FormatOptions { tenants: Some(Tenants::Qos), ..FormatOptions::default() };
        let workload = read(file(TEXT).path(), Format::Openb, &options).expect("readable");
        assert_eq!(workload.users.iter().collect::<Vec<_>>(), ["BE", "LS"]);
    }

    #[test]
    fn lists_without_times_fill_the_cluster() {
        let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,2048,1,500\np1,4000,8192,2,1000\n";
        let stay = |tenants| FormatOptions { tenants, openb: OpenbOptions { stay: true }, ..FormatOptions::default() };
        let workload = read(file(text).path(), Format::Openb, &stay(None)).expect("readable");
        let rows: Vec<_> = workload.sets.iter().map(|set| (set.submit.0 / US_PER_S, set.demand.0[2])).collect();
        assert_eq!(rows, [(0, 500), (1, 2000)]);
        let message = refusal(Format::Openb, text);
        assert!(message.contains("is missing") && message.contains("read with openb.stay=true"), "{message}");
        let error = read(file(text).path(), Format::Openb, &stay(Some(Tenants::Qos))).unwrap_err().to_string();
        assert!(error.contains("column 'qos': is missing"), "{error}");
    }

    #[test]
    fn malformed_rows_are_located() {
        let header = TEXT.lines().next().expect("a header");
        let good = "a,1,1,0,0,,LS,Running,1,2,1\nb,1,1,0,0,,LS,Running,1,2,1\n";
        for (bad, want) in [
            ("p,1,1,0,0,,LS,Running,1,2\n", "FILE, line 4: has 10 fields; expected at least 11"),
            ("p,x,1,0,0,,LS,Running,1,2,3\n", "line 4, column 'cpu_milli': 'x' is not a number; expected milli-cores"),
            ("p,1,1,0.5,0,,LS,Running,1,2,3\n", "column 'num_gpu': '0.5' is not a whole number"),
            ("p,1,1,0,0,,LS,Running,,2,3\n", "column 'creation_time': is empty; expected seconds"),
            ("p,1,1,999999999999999999,99999,,LS,Running,1,2,3\n", "'999999999999999999' is too large"),
            ("p,1,1,0,0,,LS,Running,1,2,1\np,1,1,0,0,,LS,Running,1,2,1\n", "column 'name': 'p' was on line 4 already"),
        ] {
            let message = strict_refusal(Format::Openb, &format!("{header}\n{good}{bad}"));
            assert!(message.contains(want), "{message}");
        }
        let message = refusal(Format::Openb, "name,cpu_milli\np,1\n");
        assert!(message.starts_with("FILE, line 1, column 'memory_mib': is missing; expected a header"), "{message}");
    }

    #[test]
    fn the_real_pod_list_reads_whole() {
        let Some(path) = shared("openb-2023/openb_pod_list_default.csv") else { return };
        let options = FormatOptions { tenants: Some(Tenants::Qos), ..FormatOptions::default() };
        let workload = read(&path, Format::Openb, &options).expect("readable");
        let quality = &workload.quality;
        assert_eq!((quality.rows_in, quality.dropped["never scheduled"], dropped(quality)), (8152, 897, 897));
        assert_eq!(workload.sets.len(), 7255);
        assert_eq!(quality.repaired["still running at the end of the trace: cut there"], 34);
        assert_eq!(workload.users.len(), 4);
        assert!(quality.warnings.is_empty(), "{:?}", quality.warnings);
    }
}
