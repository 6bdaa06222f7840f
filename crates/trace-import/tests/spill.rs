//! Imports with a small bound of memory equal imports in memory: rows, report and errors.

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::Place;
use plimsoll_sim::workload::formats::Tenants;
use plimsoll_sim::workload::write::{Layout, csv};
use plimsoll_sim::workload::{Input, Quality, Source};
use plimsoll_trace_import::{ImportOptions, Mapping, Spill, import, import_sorted};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn inputs(files: &[(String, String)]) -> Vec<Input> {
    files.iter().map(|(name, text)| Input::Bytes(name.into(), text.as_bytes().to_vec().into())).collect()
}

/// Writes a source as a canonical trace.
fn trace<S: Source>(open: impl Fn() -> Result<S>) -> Result<String> {
    let layout = Layout::scan(&mut open()?)?;
    let mut bytes = Vec::new();
    csv(&mut bytes, Path::new("t.csv"), &mut open()?, &layout)?;
    Ok(String::from_utf8(bytes).expect("a trace is text"))
}

/// Imports with a bound of memory; returns the trace and the report.
fn bounded(
    map: &Mapping,
    files: &[(String, String)],
    options: ImportOptions,
    memory: u64,
) -> Result<(String, Quality)> {
    let folder = tempfile::tempdir().expect("a folder");
    let spill = Spill { memory, folder: folder.path().to_owned() };
    let imported = import_sorted(map, &inputs(files), options, &spill, &|| Ok(()))?;
    let text = trace(|| imported.source())?;
    // The temporary files have no names.
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    Ok((text, imported.quality))
}

fn in_memory(map: &Mapping, files: &[(String, String)], options: ImportOptions) -> Result<(String, Quality)> {
    let workload = import(map, &inputs(files), options)?;
    Ok((trace(|| Ok(workload.source()))?, workload.quality))
}

const ROWS: &str = "mapping = 1\n[[table]]\nname = \"main\"\nfiles = [\"log*\"]\n[[table]]\nname = \"who\"\nfiles = [\"who*\"]\n\
                    join = { key = \"id\", of = \"id\", missing = \"MISSING\" }\n[keep]\n\"cpu != 7\" = \"seven\"\n[trace]\njob = \"id\"\n\
                    user = \"coalesce(who.team, 'none')\"\nsubmit = \"submit\"\nduration = \"end - start\"\ncpu = \"cpu\"\nstage = \"stage\"\n\
                    after = \"after\"\nafter_job = \"before\"\ndeadline = \"due\"\n[warn]\n\"cpu > 2\" = \"large\"\n\
                    [fields]\ntag = \"counted: a tag\"\n";

const EVENTS: &str = "mapping = 1\n[[table]]\nname = \"main\"\nfiles = [\"log*\"]\n[[table]]\nname = \"who\"\nfiles = [\"who*\"]\n\
                      join = { key = \"id\", of = \"id\", missing = \"MISSING\" }\n[fold]\nkey = \"concat(id, ' ', task)\"\ntime = \"time\"\n\
                      event = \"kind\"\nsubmit = [\"submit\"]\nstart = [\"start\"]\nend = { done = [\"end\"], failed = [\"fail\"] }\n[keep]\n\
                      \"outcome == 'done'\" = \"not done\"\n\"known(last_start)\" = \"no start\"\n[trace]\njob = \"id\"\n\
                      user = \"coalesce(who.team, 'none')\"\nsubmit = \"first_submit\"\nduration = \"last_end - last_start\"\ncpu = \"cpu\"\n\
                      [warn]\n\"starts > 1\" = \"several starts\"\n";

/// Writes the joined table: some keys are repeated, some are absent.
fn who(rng: &mut ChaCha8Rng, jobs: u32) -> (String, String) {
    let mut text = "id,team\n".to_owned();
    for _ in 0..jobs {
        writeln!(text, "j{},t{}", rng.random_range(0..jobs), rng.random_range(0..4)).expect("a string grows");
    }
    ("who.csv".to_owned(), text)
}

/// Writes rows of jobs in any order in two files. Some are damaged.
fn rows(rng: &mut ChaCha8Rng, count: u32, jobs: u32) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for file in 0..2 {
        let mut text = "id,submit,start,end,cpu,stage,after,before,due,tag\n".to_owned();
        for _ in 0..count / 2 {
            let mut pick = |most: u32| rng.random_range(0..most);
            let (job, submit) = (pick(jobs), if pick(40) == 0 { "x".to_owned() } else { (5 + pick(60)).to_string() });
            let start = 100 + pick(3);
            let (before, after) = (pick(3 * jobs), ["", "a", "b", "a;b", "zz"][pick(5) as usize]);
            let before = if before < jobs + 3 { format!("j{before}") } else { String::new() };
            let (due, tag) =
                (if pick(4) == 0 { pick(300).to_string() } else { String::new() }, ["", "y"][pick(2) as usize]);
            let (end, cpu, stage) = (start + pick(50), pick(9), ["", "a", "b"][pick(3) as usize]);
            writeln!(text, "j{job},{submit},{start},{end},{cpu},{stage},{after},{before},{due},{tag}")
                .expect("a string grows");
        }
        files.push((format!("log{file}.csv"), text));
    }
    files
}

/// Writes events in any order in two files, with times that are fractions.
fn events(rng: &mut ChaCha8Rng, count: u32, jobs: u32) -> Vec<(String, String)> {
    let mut files = vec!["id,task,time,kind,cpu\n".to_owned(), "id,task,time,kind,cpu\n".to_owned()];
    for _ in 0..count {
        let mut pick = |most: u32| rng.random_range(0..most);
        let kind = ["submit", "submit", "start", "start", "end", "end", "end", "fail", "resize", "", "pause"]
            [pick(11) as usize];
        let time = ["-3", "0.5", "0.25", "1/3", "7", "7.125", "19", "x", ""][pick(9) as usize].to_owned();
        let time = if pick(3) > 0 { format!("{}.{}", pick(40), pick(3)) } else { time };
        let cpu = ["", "1", "2", "n/a"][pick(4) as usize];
        let file = pick(2) as usize;
        writeln!(files[file], "j{},{},{time},{kind},{cpu}", pick(jobs), pick(2)).expect("a string grows");
    }
    (0..).zip(files).map(|(at, text)| (format!("log{at}.csv"), text)).collect()
}

#[test]
fn a_bound_of_memory_changes_neither_the_trace_nor_the_report() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut compared, mut refused, mut reasons) = (0, 0, std::collections::BTreeSet::new());
    for round in 0..60u32 {
        let attempts = match round % 6 {
            0 => String::new(),
            1 => "[attempts]\nkey = \"concat(id, cpu)\"\nuse = \"first\"\n".to_owned(),
            2 => "[attempts]\nkey = \"if cpu > 4 then id else ''\"\nuse = \"last\"\norder = \"start\"\n".to_owned(),
            3 => "[attempts]\nkey = \"id\"\nuse = \"sum\"\norder = \"end\"\n".to_owned(),
            4 => "[attempts]\nkey = \"id\"\nuse = \"each\"\n".to_owned(),
            _ => "[time]\norigin = 20\n".to_owned(),
        };
        let jobs = [4, 30, 200][round as usize / 2 % 3];
        let missing = ["drop", "keep"][round as usize / 4 % 2];
        let (map, mut files) = match round % 4 {
            3 => (EVENTS.to_owned(), events(&mut rng, 900, jobs)),
            _ => (format!("{ROWS}{attempts}"), rows(&mut rng, 400, jobs)),
        };
        let merge = if round % 5 == 1 { map.replace("[trace]\n", "[trace]\nmerge = true\n") } else { map };
        files.push(who(&mut rng, jobs));
        let text = merge.replace("MISSING", missing);
        let mapping = match Mapping::parse("mapping", &Place::whole_text("map.toml", text.clone())) {
            Ok(mapping) => mapping,
            Err(error) => panic!("{error}\n{text}"),
        };
        let tenants = [None, None, Some(Tenants::Job), Some(Tenants::RoundRobin(3)), Some(Tenants::Hash(2))];
        let options = ImportOptions { strict: round % 17 == 16, tenants: tenants[round as usize % 5] };
        let whole = in_memory(&mapping, &files, options);
        for memory in [1000, 20_000] {
            match (&whole, bounded(&mapping, &files, options, memory)) {
                (Ok(whole), Ok(bounded)) => {
                    assert_eq!(*whole, bounded, "round {round}, {memory} bytes");
                    compared += 1;
                    reasons.extend(bounded.1.dropped.into_keys().chain(bounded.1.repaired.into_keys()));
                }
                (Err(whole), Err(bounded)) => {
                    assert_eq!(whole.to_string(), bounded.to_string(), "round {round}");
                    refused += 1;
                }
                (whole, bounded) => {
                    panic!("round {round}: {:?} and {:?}", whole.is_ok(), bounded.map(|(text, _)| text))
                }
            }
        }
    }
    assert!(compared > 80 && refused > 0, "{compared} compared, {refused} refused");
    assert!(reasons.len() > 12, "{reasons:#?}");
}

#[test]
fn an_interrupt_while_records_are_merged_leaves_no_files() {
    let text: String =
        (0..9000).fold("id,submit\n".to_owned(), |text, row| format!("{text}{},{}\n", row % 5000, 9000 - row));
    let map = "mapping = 1\n[trace]\njob = \"id\"\nsubmit = \"submit\"\nduration = \"1\"\ncpu = \"1\"\n";
    let mapping = Mapping::parse("mapping", &Place::whole_text("map.toml", map)).expect("a mapping");
    let folder = tempfile::tempdir().expect("a folder");
    let spill = Spill { memory: 50_000, folder: folder.path().to_owned() };
    let calls = Cell::new(0);
    // Reading the rows calls the interrupt twice; then the rows of jobs are merged.
    let interrupt = || {
        calls.set(calls.get() + 1);
        if calls.get() > 2 { Err(Error::Interrupted) } else { Ok(()) }
    };
    let options = ImportOptions { strict: false, tenants: None };
    let input = [Input::Bytes("log.csv".into(), text.into_bytes().into())];
    let error = import_sorted(&mapping, &input, options, &spill, &interrupt).err().expect("interrupted");
    assert!(matches!(error, Error::Interrupted) && calls.get() == 3, "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
