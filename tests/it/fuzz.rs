//! Generated and damaged input to every reader. Each input is read, or refused with a short error; no input makes a reader panic
//! or hang. A trace that a reader accepts is unchanged after it is written as a trace and read again.
//!
//! `arbitrary` creates the inputs from random bytes: lines and values of the files in `tests/corpus/` and in the repository are removed,
//! duplicated, swapped and replaced. An input with a new kind of answer is itself mutated later. An input that makes a reader panic or hang
//! is reduced and stored in `tests/corpus/READER/`; every later run begins with the stored inputs.
//!
//! `PLIMSOLL_FUZZ_SECONDS=600 cargo test --release --test it fuzz` runs each reader for 600 seconds, and `PLIMSOLL_FUZZ_SEED=2` selects
//! other random bytes.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arbitrary::{Result as Drawn, Unstructured};
use plimsoll::books::Weights;
use plimsoll::cluster::{ClusterSpec, file as machines};
use plimsoll::error::{Error, Result};
use plimsoll::experiment::Study;
use plimsoll::experiment::failover::FailoverPlan;
use plimsoll::experiment::machines::machines_from;
use plimsoll::fair::read as instance;
use plimsoll::output::read::Results;
use plimsoll::output::schema::Table;
use plimsoll::output::trace::ParquetTrace;
use plimsoll::output::{trace, verify};
use plimsoll::policy::{BUILT_IN, Registry, Setup};
use plimsoll::queues::{FORMATS, import};
use plimsoll::trace_import::{ImportOptions, Mapping, Shipped, guess, import as import_log};
use plimsoll::tree::Place;
use plimsoll::units::{Dim, Resources};
use plimsoll::workload::formats::{Format, FormatOptions, read_input};
use plimsoll::workload::synthetic::random::stream;
use plimsoll::workload::write::{Layout, csv};
use plimsoll::workload::{CsvTrace, Input, Source};
use rand::Rng;

use crate::fuzz_inputs::Pool;
use crate::replay::{plimsoll as program, run, said};
use crate::study_run::{Scratch, contents};

/// The number of inputs for each reader, unless `PLIMSOLL_FUZZ_SECONDS` is set.
const INPUTS: u64 = 500;

/// A reader that takes longer than this for an answer hangs.
const HANG: Duration = Duration::from_secs(60);

/// Returns the kind of an answer: the words of its error, without values.
fn shape(answer: &Result<()>) -> String {
    let Err(error) = answer else { return "read".to_owned() };
    let words = error.to_string();
    let words = words.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the answer to an input, or `None` if the reader panics or hangs.
fn answer(read: &dyn Fn(&Path) -> Result<()>, path: &Path, input: &[u8]) -> Option<Result<()>> {
    std::fs::write(path, input).expect("a temporary file is writable");
    let start = Instant::now();
    let answer = catch_unwind(AssertUnwindSafe(|| read(path))).ok()?;
    (start.elapsed() < HANG).then_some(answer)
}

/// Returns a smaller input that still makes the reader panic or hang. It removes halves, quarters and so on of the input.
fn cut_down(read: &dyn Fn(&Path) -> Result<()>, path: &Path, mut input: Vec<u8>) -> Vec<u8> {
    let mut piece = input.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < input.len() {
            let end = input.len().min(at + piece);
            let less = [&input[..at], &input[end..]].concat();
            if answer(read, path, &less).is_none() { input = less } else { at = end }
        }
        piece /= 2;
    }
    input
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(here(folder)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect(folder).path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number")))
}

/// Runs a reader on its corpus, on `texts`, and then on generated inputs.
fn fuzz(
    name: &str,
    mut texts: Vec<Vec<u8>>,
    make: fn(&Pool, &mut Unstructured) -> Drawn<Vec<u8>>,
    read: impl Fn(&Path) -> Result<()>,
) {
    let corpus = format!("tests/corpus/{name}");
    texts.extend(files(&corpus).iter().map(|file| std::fs::read(file).expect("a file of the corpus")));
    let mut pool = Pool::new(texts);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("input");
    let mut random = stream(setting("PLIMSOLL_FUZZ_SEED").unwrap_or(1), name);
    let (start, time) = (Instant::now(), setting("PLIMSOLL_FUZZ_SECONDS").map(Duration::from_secs));
    let (mut seen, mut count, mut sound) = (HashSet::new(), 0, 0);
    let mut waiting = pool.texts.clone();
    while !waiting.is_empty() || time.map_or(count < INPUTS, |time| start.elapsed() < time) {
        let input = waiting.pop().unwrap_or_else(|| {
            let mut bytes = [0; 512];
            random.fill_bytes(&mut bytes);
            make(&pool, &mut Unstructured::new(&bytes)).expect("bytes that have run out are zeros")
        });
        let Some(answer) = answer(&read, &path, &input) else {
            let input = cut_down(&read, &path, input);
            let kept = here(&corpus).join(&blake3::hash(&input).to_hex()[..12]);
            std::fs::create_dir_all(here(&corpus)).and_then(|()| std::fs::write(&kept, &input)).expect("writable");
            panic!(
                "{name}: a panic or a hang on the input stored in {}:\n{}",
                kept.display(),
                String::from_utf8_lossy(&input)
            );
        };
        if let Err(error) = &answer {
            let message = error.to_string();
            let shown = || String::from_utf8_lossy(&input);
            // The message may quote a part of the input; it is shortened when it is printed.
            let most = 20_000 + 8 * input.len();
            assert!(!message.is_empty() && message.len() < most, "{} bytes of message: {}", message.len(), shown());
        }
        count += 1;
        sound += u64::from(answer.is_ok());
        if seen.insert(shape(&answer)) && seen.len() < 300 {
            pool.texts.push(input);
        }
    }
    println!("{name}: {count} inputs, {sound} of them sound, {} kinds of answers", seen.len());
    assert!(sound > 0 && sound < count && seen.len() > 1, "{name}: too easy: {sound} of {count} inputs are sound");
}

/// Fuzzes a reader of text, beginning with its corpus and with the files of these folders that have this extension.
fn fuzz_text(name: &str, folders: &[&str], ending: &str, read: impl Fn(&Path) -> Result<()>) {
    let files = folders.iter().flat_map(|folder| files(folder));
    let files = files.filter(|file| file.extension().is_some_and(|found| found == ending));
    let texts = files.map(|file| std::fs::read(file).expect("a file of the repository")).collect();
    fuzz(name, texts, Pool::text, read);
}

/// Reads a file into memory, so that no modification time is checked: the test rewrites the file for every input.
fn in_memory(path: &Path) -> Input {
    Input::Bytes(path.to_owned(), std::fs::read(path).expect("a file").into())
}

/// Returns the trace of a source, as CSV.
fn written(scanned: &mut dyn Source, source: &mut dyn Source) -> Result<Vec<u8>> {
    let layout = Layout::scan(scanned)?;
    let mut bytes = Vec::new();
    csv(&mut bytes, Path::new("trace.csv"), source, &layout)?;
    Ok(bytes)
}

/// Asserts that a workload is unchanged after it is written and read again.
fn come_back(bytes: Vec<u8>) {
    let text = String::from_utf8(bytes.clone()).expect("a trace is text");
    let input = Input::Bytes("written.csv".into(), bytes.into());
    let open = || CsvTrace::new(&input).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again = written(&mut open(), &mut open()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(text, String::from_utf8_lossy(&again));
}

fn public(name: &str, format: Format) {
    fuzz_text(name, &[], "", |path| {
        let workload = read_input(&in_memory(path), format, &FormatOptions::default())?;
        come_back(written(&mut workload.source(), &mut workload.source())?);
        Ok(())
    });
}

#[test]
fn trace_csv() {
    fuzz_text("trace.csv", &["traces/paper"], "csv", |path| {
        let input = in_memory(path);
        come_back(written(&mut CsvTrace::new(&input)?, &mut CsvTrace::new(&input)?)?);
        Ok(())
    });
}

#[test]
fn trace_parquet() {
    let traces = files("tests/corpus/trace.csv").into_iter().chain(files("traces/paper"));
    let parquet = |path: PathBuf| {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut trace = CsvTrace::new(&in_memory(&path)).ok()?;
        let layout = Layout::scan(&mut CsvTrace::new(&in_memory(&path)).ok()?).ok()?;
        trace::write(file.path(), &mut trace, &layout, &[]).ok()?;
        Some(std::fs::read(file.path()).expect("it was written"))
    };
    fuzz("trace.parquet", traces.filter_map(parquet).collect(), Pool::bytes, |path| {
        let open = || ParquetTrace::new(&in_memory(path), &[]);
        come_back(written(&mut open()?, &mut open()?)?);
        Ok(())
    });
}

#[test]
fn public_formats() {
    Format::ALL.iter().for_each(|&format| public(format.name(), format));
}

/// Imports a log by a mapping. A workload that is imported can be written as a trace and read again.
fn imported(mapping: &Mapping, input: Input) -> Result<()> {
    let workload = import_log(mapping, &[input], ImportOptions::default())?;
    come_back(written(&mut workload.source(), &mut workload.source())?);
    Ok(())
}

/// Every sample of one file is damaged and imported by its mapping.
#[test]
fn foreign_logs() {
    for (name, sample, ending) in [
        ("alibaba-2018", "alibaba-2018", "csv"),
        ("google-2011", "google-2011", "csv"),
        ("slurm", "slurm", "txt"),
        ("philly", "philly", "json"),
        ("batsim", "batsim", "json"),
        ("kubernetes", "kubernetes", "json"),
    ] {
        let mapping = Shipped::find(name).expect(name).mapping().expect(name);
        let folder = format!("crates/trace-import/tests/samples/{sample}");
        fuzz_text(&format!("log.{name}"), &[&folder], ending, |path| imported(&mapping, in_memory(path)));
    }
}

#[test]
fn mappings_of_logs() {
    let log =
        b"timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,a\n2017-10-09 07:02,1,2,2,b\n";
    fuzz_text("mapping", &["crates/trace-import/mappings"], "toml", |path| {
        let text = String::from_utf8_lossy(&std::fs::read(path).expect("a file")).into_owned();
        let mapping = Mapping::parse("mapping", &Place::whole_text("mapping.toml", text))?;
        imported(&mapping, Input::Bytes("log.csv".into(), log[..].into()))
    });
}

#[test]
fn guessed_mappings() {
    fuzz_text("guess", &["crates/trace-import/tests/samples/spot-2026", "traces/paper"], "csv", |path| {
        let text = guess(&[in_memory(path)])?;
        // Without a question about a required column, the guess is a mapping.
        Mapping::parse("mapping", &Place::whole_text("guess.toml", text)).map(drop)
    });
}

#[test]
fn machines_csv() {
    fuzz_text("machines", &[], "", |path| machines::read(path).map(drop));
}

#[test]
fn machines_in_words() {
    fuzz_text("spec", &[], "", |path| {
        let text = String::from_utf8_lossy(&std::fs::read(path).expect("a file")).into_owned();
        ClusterSpec::parse("machines", text.lines().next().unwrap_or_default()).map(drop)
    });
}

#[test]
fn machine_events_csv() {
    fuzz_text("machine-events", &[], "", |path| {
        let file = here("traces/quota/label-machines.csv").display().to_string();
        let cluster = machines_from("machines", &file, Path::new(""))?;
        plimsoll::cluster::events::read(path, &cluster).map(drop)
    });
}

#[test]
fn weights_csv() {
    fuzz_text("weights", &[], "", |path| {
        let dims = [Dim::parse("cpu").0, Dim::parse("memory_gib").0];
        Weights::read(&plimsoll::pinned::Pinned::new(path)?, &dims).map(drop)
    });
}

#[test]
fn quota_toml() {
    fuzz_text("quota", &["experiments/quota"], "toml", |path| {
        Registry::new(BUILT_IN).policy_in(&format!("quota:{}", path.display()), Path::new("")).map(drop)
    });
}

/// Expressions are parsed, and built for a cluster.
#[test]
fn expressions() {
    fuzz_text("expression", &[], "", |path| {
        let text = String::from_utf8_lossy(&std::fs::read(path).expect("a file")).into_owned();
        let policy = Registry::new(BUILT_IN).policy(text.trim_end())?;
        let (dims, weights) = ([Dim::parse("cpu").0, Dim::parse("memory_gib").0], Weights::default());
        let mut capacity = Resources::ZERO;
        capacity.0[..2].copy_from_slice(&[64_000, 131_072]);
        policy.build(&Setup { dims: &dims, capacity, machines: 2, weights: &weights, labels: None }).map(drop)
    });
}

#[test]
fn instance_toml() {
    fuzz_text("instance", &["traces/instances"], "toml", |path| instance::open(&path.to_owned().into()).map(drop));
}

#[test]
fn plan_toml() {
    fuzz_text("plan", &["experiments", "experiments/paper"], "toml", |path| {
        Study::read(path, &[], &Registry::new(BUILT_IN)).map(drop)
    });
}

#[test]
fn failover_toml() {
    let plan = std::fs::read(here("experiments/paper/fuxi-failover.toml")).expect("a file of the repository");
    fuzz("failover", vec![plan], Pool::text, |path| {
        let text = String::from_utf8_lossy(&std::fs::read(path).expect("a file")).into_owned();
        FailoverPlan::read(&plimsoll::tree::Place::whole_text(path, text), &[]).map(drop)
    });
}

/// Fuzzes the import of each format of queues. The imported text is valid TOML.
#[test]
fn queues_of_schedulers() {
    for (format, files, _) in crate::queues::SAMPLES {
        let row = *FORMATS.iter().find(|row| row.name == format).expect(format);
        let texts = files.iter().map(|file| std::fs::read(crate::queues::folder().join(file)).expect(file)).collect();
        fuzz(&format!("queues-{format}"), texts, Pool::text, |path| {
            let text = plimsoll::rows::read_text(path)?;
            let made = import(vec![(path.to_owned(), text)], Some(row))?;
            let read: std::result::Result<toml::Table, _> = made.text.parse();
            assert!(read.is_ok(), "{:?}\n{}", read, made.text);
            Ok(())
        });
    }
}

/// Returns a folder with the results of a small study.
fn results() -> Scratch {
    let place = Scratch::in_memory(
        "name = \"small\"\npolicies = [\"drf\", \"fifo\"]\nseeds = 2\ntables = [\"runs\", \"users\"]\n[cluster]\nmachines = \"2x4c8g\"\n\
         [workload]\ngenerator = \"synthetic\"\njobs = 20\narrival = { distribution = \"exponential\", mean = 2.0 }\n\
         [[workload.class]]\nname = \"wide\"\nusers = 3\ntasks = { distribution = \"uniform\", min = 1, max = 9 }\n\
         duration = { distribution = \"uniform\", min = 4, max = 12 }\ndemand = { cpu = 1, memory_gib = 1 }\n",
    );
    place.run("out", &[]);
    place
}

/// Returns the values in the tables of a folder, by table, policy, run and column.
fn values(folder: &Path) -> Result<BTreeMap<String, Vec<Option<f64>>>> {
    let results = Results::open(folder)?;
    let mut all = BTreeMap::new();
    for (table, columns) in [(Table::Runs, ["completion_mean_s", "jain"]), (Table::Users, ["jobs", "wait_mean_s"])] {
        for part in results.table(table, &columns, None)? {
            for column in columns {
                all.insert(format!("{table:?} {} {} {column}", part.policy, part.run), part.numbers(column)?);
            }
        }
    }
    Ok(all)
}

/// Values read from damaged results are unchanged, or reported as missing.
#[test]
fn results_folder() {
    let place = results();
    let folder = place.path("out");
    let (whole, sound) = (contents(&folder), values(&folder).expect("results"));
    for kind in ["done/", "experiment.json", "runs/", "users/"] {
        let name = whole.keys().find(|name| name.starts_with(kind)).expect("a file of every kind");
        let (file, corpus) = (folder.join(name), format!("results-{}", kind.trim_end_matches('/')));
        fuzz(&corpus, vec![whole[name].clone()], Pool::bytes, |path| {
            std::fs::copy(path, &file).expect("a temporary file is writable");
            let found = values(&folder)?;
            assert!(found.iter().all(|(key, values)| sound.get(key) == Some(values)), "{name}: other values are read");
            let missing = || Error::trace(&folder, 0, "", "runs are missing");
            if found.len() == sound.len() { Ok(()) } else { Err(missing()) }
        });
        std::fs::write(&file, &whole[name]).expect("a temporary file is writable");
    }
}

/// Returns the unpacked files of an archive, by name.
fn unpacked(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).expect("a file")).expect("an archive");
    let mut all = BTreeMap::new();
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).expect("an entry");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("sound");
        all.insert(entry.name().expect("a name").into_owned(), bytes);
    }
    all
}

/// A bundle that passes verification unpacks to the packed files.
#[test]
fn bundle_zip() {
    let place = results();
    let output = run(program(&["bundle", "out", "-o", "b.zip"]).current_dir(place.path("")));
    assert!(output.status.success(), "{}", said(&output));
    let zip = place.path("b.zip");
    let whole = unpacked(&zip);
    fuzz("bundle", vec![std::fs::read(&zip).expect("it was written")], Pool::bytes, |path| {
        verify::verify(path)?;
        assert!(unpacked(path) == whole, "the verified archive unpacks to other files");
        Ok(())
    });
}
