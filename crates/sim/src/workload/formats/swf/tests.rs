//! Tests of the Standard Workload Format's reader.

use super::super::tests::{dropped, file, import, refusal, shared, strict_refusal};
use super::super::{Format, FormatOptions, read};
use super::*;

const LOG: &str = "; Version: 2.2\n; UnixStartTime: 749458803\n;MaxProcs: 128\n; Note: a: b\n\n\
                   1  0 5 1451 128 -1 -1 64 -1 -1 1 7 1 -1 -1 -1 -1 -1\n\
                   \t2 10.5 -1 0 4 -1 -1 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1\r\n\
                   3 3 -1.0 5 0 -1 -1 0 -1 -1 1 7 1 -1 -1 -1 -1 -1\n\
                   4 11 -1 -1 2 -1 -1 -1 -1 -1 5 8 1 -1 -1 -1 -1 -1\n\
                   5 12 -1 0 2 -1 -1 -1 -1 -1 5 8 1 -1 -1 -1 -1 -1\n\
                   6 4 -1 9 2 -1 -1 -1 -1 -1 0 8 1 -1 -1 -1 -1 -1\n\
                   6 4 -1 4 2 -1 -1 -1 -1 -1 2 8 1 -1 -1 -1 -1 -1\n\
                   8 -1 -1 4 2 -1 -1 -1 -1 -1 1 8 1 -1 -1 -1 -1 -1\n";

/// Returns a row of a log with the given job number, submit time, used memory, requested memory and further fields.
fn row(number: u32, submit: &str, used: &str, requested: &str, more: &str) -> String {
    format!("{number} {submit} 0 60 4 -1 {used} 4 -1 {requested} 1 3 1 -1 -1 -1 -1 -1{more}\n")
}

#[test]
fn jobs_are_single_tasks_of_their_processors() {
    let workload = import(Format::Swf, LOG).expect("readable");
    let rows: Vec<_> = workload
        .sets
        .iter()
        .map(|set| {
            let names = (workload.job_name(set.job), workload.users.name(set.user.0));
            (names, set.submit.0, set.duration.0, set.tasks, set.demand.0[0])
        })
        .collect();
    assert_eq!(
        rows,
        [
            (("1".to_owned(), "7"), 0, 1_451_000_000, 1, 64_000),
            (("6".to_owned(), "8"), 4_000_000, 9_000_000, 1, 2000),
            (("2".to_owned(), "unknown"), 10_500_000, 0, 1, 4000),
        ]
    );
    let quality = &workload.quality;
    assert_eq!((quality.rows_in, dropped(quality)), (8, 5));
    for reason in [
        "processors unknown",
        "run time unknown",
        "submit time unknown",
        "failed or cancelled before it ran (status 0 or 5)",
        "part of a job that was swapped out (status 2 to 4)",
    ] {
        assert_eq!(quality.dropped[reason], 1, "{reason}");
    }
    assert!(quality.assumptions.contains(&("swf.header.MaxProcs".into(), "128".into())));
    assert!(quality.assumptions.contains(&("tenants".into(), "column".into())));
    assert_eq!(quality.warnings, ["rows earlier than the one above them: 1; sorted by submit time"]);
}

#[test]
fn the_requested_time_is_the_estimate() {
    let row = |number: u32, requested: &str| {
        format!("{number} {number} 0 60 4 -1 -1 4 {requested} -1 1 3 1 -1 -1 -1 -1 -1\n")
    };
    let log: String =
        ["3600", "-1", "0", "90.5", "-1.0"].iter().zip(1..).map(|(time, number)| row(number, time)).collect();
    let workload = import(Format::Swf, &log).expect("readable");
    let estimates: Vec<_> = workload.sets.iter().map(|set| set.estimate.map(|estimate| estimate.0)).collect();
    assert_eq!(estimates, [Some(3_600_000_000), None, None, Some(90_500_000), None]);
    let event = ("swf.estimates".to_owned(), "requested time, which 2 of 5 kept rows have".to_owned());
    assert!(workload.quality.assumptions.contains(&event), "{:?}", workload.quality.assumptions);
    assert!(strict_refusal(Format::Swf, &(row(1, "60") + &row(2, "soon"))).contains("requested_time"));
}

#[test]
fn gangs_and_other_users_are_options() {
    let options = FormatOptions {
        tenants: Some(Tenants::Job),
        swf: SwfOptions { parallel: SwfParallel::Gang, ..SwfOptions::default() },
        ..FormatOptions::default()
    };
    let workload = read(file(LOG).path(), Format::Swf, &options).expect("readable");
    assert_eq!(workload.users.iter().collect::<Vec<_>>(), ["1", "6", "2"]);
    let gang = &workload.sets[0];
    assert_eq!((gang.tasks, gang.demand.0[0], gang.gang), (64, 1000, true));
}

#[test]
fn memory_is_a_dimension_when_it_is_known() {
    let memory = |text: &str, memory: SwfMemory| {
        let swf = SwfOptions { memory, ..SwfOptions::default() };
        let options = FormatOptions { swf, ..FormatOptions::default() };
        let workload = read(file(text).path(), Format::Swf, &options).expect("readable");
        let demands: Vec<_> = workload.sets.iter().map(|set| set.demand.0[1]).collect();
        (workload.dims.len(), demands, workload.quality)
    };
    // 4 processors with 1000 KiB each have 3.9 MiB in total, rounded up to 4; requested memory takes precedence over used memory.
    let known = format!("; x\n{}{}", row(1, "0", "1000", "-1", ""), row(2, "1", "9", "2048", ""));
    assert_eq!(memory(&known, SwfMemory::Complete).1, [4, 8]);
    let partly = format!("{known}{}", row(3, "2", "-1", "-1", ""));
    let (dims, _, quality) = memory(&partly, SwfMemory::Complete);
    assert_eq!((dims, quality.warnings.len()), (1, 1), "{:?}", quality.warnings);
    let (dims, demands, quality) = memory(&partly, SwfMemory::Partial);
    assert_eq!((dims, demands), (2, vec![4, 8, 0]));
    assert_eq!(quality.repaired["memory unknown: no demand"], 1);
    assert_eq!(memory(&known, SwfMemory::Ignore).0, 1);
    let huge = format!("; x\n{}", row(1, "0", "900000000000000", "-1", ""));
    assert_eq!(memory(&huge, SwfMemory::Complete).2.warnings.len(), 1);
}

/// Reads a workload with these options.
fn read_with(text: &str, swf: SwfOptions) -> Workload {
    read(file(text).path(), Format::Swf, &FormatOptions { swf, ..FormatOptions::default() }).expect("readable")
}

/// Returns the value of an assumption.
fn assumption<'a>(workload: &'a Workload, name: &str) -> &'a str {
    let found = workload.quality.assumptions.iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn memory_is_of_a_processor_or_of_the_job() {
    let log = format!("; MaxMemory: 4194304\n{}{}", row(1, "0", "-1", "4194304", ""), row(2, "1", "-1", "1048576", ""));
    let memory = |workload: &Workload| workload.sets.iter().map(|set| set.demand.0[1]).collect::<Vec<_>>();
    let processor = read_with(&log, SwfOptions::default());
    assert_eq!(memory(&processor), [16_384, 4096]);
    let want = "per processor; 2 of 2 kept rows have memory and several processors";
    assert_eq!(assumption(&processor, "swf.memory_of"), want);
    let want = "kept rows of jobs with more memory than the header's MaxMemory 4194304: 1; with swf.memory_of=job: 0";
    assert_eq!(processor.quality.warnings, [want]);
    let of_job = SwfOptions { memory_of: SwfMemoryOf::Job, ..SwfOptions::default() };
    let job = read_with(&log, of_job.clone());
    assert_eq!((memory(&job), job.quality.warnings.len()), (vec![4096, 1024], 0));
    // The tasks of a gang share the memory of their job, rounded up.
    let gang = read_with(&log, SwfOptions { parallel: SwfParallel::Gang, ..of_job.clone() });
    assert_eq!((gang.sets[0].tasks, memory(&gang)), (4, vec![1024, 256]));
    // 300 GiB for a job of 4 processors are 75 GiB per processor, which is below the bound of 256 GiB. 300 GiB per processor are above it,
    // so the field is read as bytes.
    let large = format!("; x\n{}", row(1, "0", "-1", "314572800", ""));
    assert_eq!(memory(&read_with(&large, of_job.clone())), [307_200]);
    assert_eq!(memory(&read_with(&large, SwfOptions::default())), [1200]);
    // A field in bytes is compared with the header's kilobytes.
    let bytes = format!("; MaxMemory: 1024\n{}", row(1, "0", "-1", "2097152", ""));
    let unit = SwfOptions { memory_unit: SwfMemoryUnit::Byte, ..of_job };
    assert_eq!(read_with(&bytes, unit).quality.warnings.len(), 1);
}

#[test]
fn processors_are_requested_or_allocated() {
    let log = format!("; MaxNodes: 6 (4, 2)\n{}{}", row(1, "0", "-1", "-1", ""), row(2, "1", "-1", "-1", "")).replacen(
        " 60 4 -1 -1 4 ",
        " 60 2 -1 -1 8 ",
        1,
    );
    let cores = |workload: &Workload| workload.sets.iter().map(|set| set.demand.0[0] / 1000).collect::<Vec<_>>();
    let requested = read_with(&log, SwfOptions::default());
    assert_eq!(cores(&requested), [8, 4]);
    let want = "requested, else allocated; the two differ in 1 of 2 kept rows";
    assert_eq!(assumption(&requested, "swf.processors"), want);
    assert!(requested.quality.warnings[0].contains("header's MaxNodes 6: 1;"), "{:?}", requested.quality.warnings);
    let options = SwfOptions { processors: SwfProcessors::Allocated, ..SwfOptions::default() };
    let allocated = read_with(&log, options.clone());
    assert_eq!((cores(&allocated), allocated.quality.warnings.len()), (vec![2, 4], 0));
    // If the chosen number is unknown, the other number is used.
    assert_eq!(cores(&read_with(&log.replace(" 60 2 ", " 60 0 "), options)), [8, 4]);
}

#[test]
fn files_that_stray_from_the_standard_are_read_with_warnings() {
    // No header, three more fields, times since 1970 and memory in bytes.
    let more = " -1 node1,node2 x";
    let text =
        format!("{}{}", row(1, "1356998400", "-1", "536870912", more), row(2, "1356998460", "-1", "1073741824", more));
    let workload = import(Format::Swf, &text).expect("readable");
    assert_eq!(workload.sets.iter().map(|set| set.submit.0).collect::<Vec<_>>(), [0, 60_000_000]);
    assert_eq!(workload.sets.iter().map(|set| set.demand.0[1]).collect::<Vec<_>>(), [2048, 4096]);
    for (warning, want) in workload.quality.warnings.iter().zip(["no header", "up to 21 fields", "1970", "bytes"]) {
        assert!(warning.contains(want), "{warning}");
    }
    assert_eq!(workload.quality.warnings.len(), 4);
    let with_start = format!("; UnixStartTime: 1356998390\n{text}");
    let workload = import(Format::Swf, &with_start).expect("readable");
    assert_eq!(workload.sets[0].submit.0, 10_000_000);
}

#[test]
fn malformed_rows_are_located() {
    let good = format!("; x\n{}{}", row(8, "0", "-1", "-1", ""), row(9, "0", "-1", "-1", ""));
    for (bad, want) in [
        ("1 2 3\n", "FILE, line 4: has 3 fields; expected 18"),
        (row(1, "x", "-1", "-1", "").as_str(), "line 4, column 'submit_time': 'x' is not a number; expected seconds"),
        (row(1, "-2", "-1", "-1", "").as_str(), "line 4, column 'submit_time': '-2' is negative; expected seconds"),
        (row(1, "0", "-1", "a", "").as_str(), "column 'requested_memory': 'a' is not a number"),
        (
            row(1, "0", "900000000000000", "-1", "").replace(" 4 -1 ", " 4000000 -1 ").as_str(),
            "'requested_memory': is too large",
        ),
        (
            format!(";\n{}\n", LOG.lines().nth(5).expect("a row")).replace(" 1 7 ", " 6 7 ").as_str(),
            "line 5, column 'status'",
        ),
        (format!("{0}{0}", row(1, "0", "-1", "-1", "")).as_str(), "line 5, column 'job_number': '1' was on line 4"),
    ] {
        let message = strict_refusal(Format::Swf, &format!("{good}{bad}"));
        assert!(message.contains(want), "{message}");
    }
}

#[test]
fn rows_with_impossible_values_are_left_out_and_counted() {
    let good: String = (1..6).map(|number| row(number, "0", "-1", "-1", "")).collect();
    let text = format!(
        "; x\n{good}{}{}1 2 3\n",
        row(7, "4", "-1", "-1", "").replace(" 60 4", " -1359980917 4"),
        row(8, "99999999999999999999", "-1", "-1", "")
    );
    let workload = import(Format::Swf, &text).expect("readable");
    let quality = &workload.quality;
    assert_eq!((quality.rows_in, workload.sets.len()), (8, 5));
    for (reason, line, problem) in [
        ("unusable run_time", 7, "'-1359980917' is negative; expected seconds, or -1 if unknown"),
        ("unusable submit_time", 8, "'99999999999999999999' is too large; expected seconds, or -1 if unknown"),
        ("unusable row", 9, "has 3 fields; expected 18 separated by blanks"),
    ] {
        assert_eq!((quality.dropped[reason], &quality.first_dropped[reason]), (1, &(line, problem.to_owned())));
    }
    // If most rows are malformed, the file is in another format, so it is rejected.
    let message = refusal(Format::Swf, &format!("{}a b\nc d\n", row(1, "0", "-1", "-1", "")));
    assert_eq!(
        message,
        "FILE, line 2: has 2 fields; expected 18 separated by blanks (2 of 3 rows cannot be read as swf)"
    );
}

#[test]
fn the_nasa_log_reads_whole() {
    let Some(path) = shared("swf/NASA-iPSC-1993-3.1-cln.swf") else { return };
    let workload = read(&path, Format::Swf, &FormatOptions::default()).expect("readable");
    let quality = &workload.quality;
    assert_eq!((quality.rows_in, dropped(quality), workload.sets.len()), (18_239, 0, 18_239));
    assert_eq!(workload.users.len(), 69);
    assert_eq!(workload.sets.iter().filter(|set| set.duration == Span::ZERO).count(), 173);
    assert_eq!(workload.sets.iter().map(|set| set.demand.0[0]).max(), Some(128_000));
    assert_eq!(quality.warnings, ["no row has a wait time: submit times may be start times"]);
    assert_eq!(workload.dims.len(), 1);
}

#[test]
fn preceding_jobs_that_cannot_be_followed_are_counted() {
    let row = |number: u32, submit: u32, status: u32, preceding: &str, think: &str| {
        format!("{number} {submit} 0 {} 4 -1 -1 4 -1 -1 {status} 3 1 -1 -1 -1 {preceding} {think}\n", 60 * (status % 5))
    };
    let log = ["; x\n".to_owned()]
        .into_iter()
        .chain([
            row(1, 5, 1, "-1", "-1"),
            row(2, 6, 5, "-1", "-1"),
            // Follows the job of the row above, with a think time.
            row(3, 2, 1, "1", "2.5"),
            // The rows below have, in this order: a think time alone, a dropped job, a missing job, the next job, the job itself, and a
            // list.
            row(4, 6, 1, "-1", "7"),
            row(5, 6, 1, "2", "0"),
            row(6, 6, 1, "99", "-1"),
            row(7, 6, 1, "8", "-1"),
            row(8, 6, 1, "8", "-1"),
            row(9, 6, 1, "4&5&6", "-1"),
            row(10, 6, 1, "3", "-9"),
            row(11, 6, 1, "3", "-1"),
        ])
        .collect::<String>();
    let workload = read_with(&log, SwfOptions::default());
    let of = |name: &str| {
        let set = workload.sets.iter().find(|set| workload.job_name(set.job) == name).expect("a job");
        let preceding = set.preceding.as_ref();
        (set.submit.0 / 1_000_000, preceding.map(|it| (workload.job_names.text(&it.job), it.think.0 / 100_000)))
    };
    assert_eq!(of("3"), (5, Some(("1".to_owned(), 25))));
    assert_eq!(of("11"), (6, Some(("3".to_owned(), 0))));
    assert_eq!(workload.sets.iter().filter(|set| set.preceding.is_some()).count(), 2);
    let event = "followed in 2 of the 8 of 10 kept rows that have a preceding job";
    assert_eq!(assumption(&workload, "swf.dependencies"), event);
    let rest = "(fields 17 and 18), submitted at their submit time";
    for warning in [
        format!("kept rows with a preceding job that is not among the kept rows {rest}: 2"),
        format!("kept rows with a preceding job that is not above them {rest}: 2"),
        format!("kept rows with a preceding job or a think time that is not one number from 0 {rest}: 2"),
        format!("kept rows with a think time without a preceding job {rest}: 1"),
    ] {
        assert!(workload.quality.warnings.contains(&warning), "{warning}: {:?}", workload.quality.warnings);
    }
    let ignored = read_with(&log, SwfOptions { dependencies: SwfDependencies::Ignore, ..SwfOptions::default() });
    assert!(ignored.sets.iter().all(|set| set.preceding.is_none()));
    assert_eq!(assumption(&ignored, "swf.dependencies"), "ignored; 8 of 10 kept rows have a preceding job");
    assert!(ignored.quality.warnings.iter().all(|warning| !warning.contains("preceding")));
}

#[test]
fn a_log_without_users_is_warned_of() {
    let row = |number: u32, user: i32| format!("{number} {number} 0 60 4 -1 -1 4 -1 -1 1 {user} 1 -1 -1 -1 -1 -1\n");
    let warned = |users: [i32; 2]| {
        let log = format!("; x\n{}{}", row(1, users[0]), row(2, users[1]));
        let warnings = read_with(&log, SwfOptions::default()).quality.warnings;
        warnings.iter().any(|warning| warning.contains("all jobs are of one user, 'unknown'"))
    };
    assert!(warned([-1, -1]) && !warned([-1, 3]) && !warned([3, 3]));
}
