//! Forms of files and errors of mappings.

use plimsoll_base::error::Error;
use plimsoll_base::tree::Place;
use plimsoll_sim::workload::formats::{FormatOptions, detect, read_input};
use plimsoll_sim::workload::{CsvTrace, Input, Source, Workload};
use plimsoll_trace_import::{ImportOptions, Mapping, import, import_interruptible, recognise};

const LOG: &str = "id,submit,duration,cpu\n1,5,9,2\n2,6,9,1\n";
const MAP: &str = "mapping = 1\n[trace]\njob = \"id\"\nsubmit = \"submit\"\nduration = \"duration\"\ncpu = \"cpu\"\n";

/// [`LOG`], compressed with xz.
const XZ: &[u8] = &[
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x16, 0x00, 0x00,
    0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x26, 0x69, 0x64, 0x2c, 0x73, 0x75, 0x62, 0x6d, 0x69, 0x74, 0x2c, 0x64,
    0x75, 0x72, 0x61, 0x74, 0x69, 0x6f, 0x6e, 0x2c, 0x63, 0x70, 0x75, 0x0a, 0x31, 0x2c, 0x35, 0x2c, 0x39, 0x2c, 0x32,
    0x0a, 0x32, 0x2c, 0x36, 0x2c, 0x39, 0x2c, 0x31, 0x0a, 0x00, 0x00, 0x37, 0xb1, 0x7b, 0xeb, 0x9b, 0xb8, 0x34, 0xa4,
    0x00, 0x01, 0x3f, 0x27, 0x7c, 0x2a, 0x52, 0xdd, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59,
    0x5a,
];

fn input(name: &str, bytes: &[u8]) -> Input {
    Input::Bytes(name.into(), bytes.to_vec().into())
}

fn mapping(text: &str) -> Mapping {
    Mapping::parse("mapping", &Place::whole_text("map.toml", text)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn imported(map: &str, files: &[(&str, &str)]) -> Workload {
    let inputs: Vec<Input> = files.iter().map(|(name, text)| input(name, text.as_bytes())).collect();
    import(&mapping(map), &inputs, ImportOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(map: &str, files: &[(&str, &str)]) -> String {
    let inputs: Vec<Input> = files.iter().map(|(name, text)| input(name, text.as_bytes())).collect();
    match Mapping::parse("mapping", &Place::whole_text("map.toml", map)) {
        Err(error) => error.to_string(),
        Ok(mapping) => import(&mapping, &inputs, ImportOptions::default()).expect_err(map).to_string(),
    }
}

/// Returns job, submit time and duration in seconds of each row.
fn rows(workload: &Workload) -> Vec<(String, f64, f64)> {
    let row = |set: &plimsoll_sim::workload::TaskSet| {
        (workload.job_name(set.job), set.submit.seconds(), set.duration.seconds())
    };
    workload.sets.iter().map(row).collect()
}

#[test]
fn compressed_files_are_recognised_by_content() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, LOG.as_bytes()).expect("memory");
    let gzip = gzip.finish().expect("memory");
    let zstd = zstd::encode_all(LOG.as_bytes(), 1).expect("memory");
    let plain = rows(&imported(MAP, &[("log.csv", LOG)]));
    assert_eq!(plain, [("1".to_owned(), 0.0, 9.0), ("2".to_owned(), 1.0, 9.0)]);
    for (name, bytes) in [("gzip", gzip.as_slice()), ("zstd", &zstd), ("xz", XZ)] {
        let workload = import(&mapping(MAP), &[input("log", bytes)], ImportOptions::default()).expect(name);
        assert_eq!(rows(&workload), plain, "{name}");
        assert!(workload.quality.assumptions[0].1.starts_with(name), "{:?}", workload.quality);
        // A truncated file is an error, not a part of the log.
        assert!(
            import(&mapping(MAP), &[input("log", &bytes[..bytes.len() - 6])], ImportOptions::default()).is_err(),
            "{name}"
        );
    }
    let utf16: Vec<u8> = LOG.bytes().flat_map(|byte| [byte, 0]).collect();
    let error = import(&mapping(MAP), &[input("log", &utf16)], ImportOptions::default()).unwrap_err().to_string();
    assert!(error.contains("UTF-16") && error.contains("iconv"), "{error}");
}

#[test]
fn separators_and_forms_are_detected() {
    for text in [
        LOG.replace(',', ";"),
        LOG.replace(',', "|"),
        LOG.replace(',', "\t"),
        LOG.replace(',', "  "),
        LOG.replace('\n', "\r\n"),
        format!("\u{feff}{LOG}\n"),
        "{\"id\": 1, \"submit\": 5, \"duration\": 9, \"cpu\": 2}\n{\"cpu\": 1, \"id\": \"2\", \"submit\": 6.0, \"duration\": 9}\n".to_owned(),
        "[{\"id\": 1, \"submit\": 5, \"duration\": 9, \"cpu\": 2}, {\"id\": 2, \"submit\": 6, \"duration\": 9, \"cpu\": 1}]".to_owned(),
        "{\"n\": [1], \"jobs\": [{\"id\": 1, \"submit\": 5, \"duration\": 9, \"cpu\": 2}, {\"id\": 2, \"submit\": 6, \"duration\": 9, \"cpu\": 1}]}".to_owned(),
    ] {
        let workload = imported(MAP, &[("log", &text)]);
        assert_eq!(rows(&workload), [("1".to_owned(), 0.0, 9.0), ("2".to_owned(), 1.0, 9.0)], "{text}");
    }
    let positions = MAP.replace("\"id\"", "\"$1\"").replace("\"submit\"", "\"$2\"");
    assert_eq!(rows(&imported(&positions, &[("log", LOG)])).len(), 2);
    let map = "mapping = 1\ninput.header = false\n[trace]\nsubmit = \"$2\"\nduration = \"$3\"\ncpu = \"$4\"\n";
    assert_eq!(rows(&imported(map, &[("log", "1,5,9,2\n2,6,9,1\n")])).len(), 2);
    let two = imported(MAP, &[("a.csv", LOG), ("b.csv", "id,submit,duration,cpu\n3,1,9,2\n4,,9,2\n")]);
    assert_eq!(rows(&two)[0], ("3".to_owned(), 0.0, 9.0));
    assert_eq!(two.quality.first_dropped["no submit"], (3, "of b.csv".to_owned()));
}

#[test]
fn attempts_of_one_execution_are_one_row() {
    let log = "id,submit,duration,cpu\n1,5,9,2\n2,6,9,1\n1,7,3,2\n1,8,4,2\n";
    for (rule, submit, duration) in [("first", 0.0, 9.0), ("last", 0.0, 4.0), ("sum", 0.0, 16.0)] {
        let workload = imported(&format!("{MAP}[attempts]\nkey = \"id\"\nuse = \"{rule}\"\n"), &[("log", log)]);
        assert_eq!(rows(&workload)[0], ("1".to_owned(), submit, duration), "{rule}");
        assert_eq!(workload.quality.dropped.values().sum::<u64>(), 2);
    }
    let each = imported(MAP, &[("log", log)]);
    assert_eq!(each.sets.len(), 4);
    // All rows of a job are submitted with the first.
    assert_eq!(each.quality.repaired.values().sum::<u64>(), 2);
}

#[test]
fn jobs_may_wait_for_jobs_and_stages_for_stages() {
    let log = "id,submit,duration,cpu,before,s,a\n1,0,9,2,,,\n2,1,9,1,1,,\n3,2,9,1,9,,\n4,3,9,1,4,x,y\n4,3,9,1,4,y,x\n";
    let map = format!("{MAP}after_job = \"before\"\nstage = \"s\"\nafter = \"a\"\n");
    let workload = imported(&map, &[("log", log)]);
    let with: Vec<bool> = workload.sets.iter().map(|set| set.preceding.is_some()).collect();
    assert_eq!(with, [false, true, false, false, false]);
    assert!(workload.sets.iter().all(|set| set.after.is_empty()));
    let repaired: Vec<u64> = workload.quality.repaired.values().copied().collect();
    assert_eq!(repaired, [2, 1, 2], "{:?}", workload.quality.repaired);
}

#[test]
fn a_creation_is_a_submission_and_a_start() {
    // Rows of virtual machines in any order; the last machine is never deleted.
    let log = "vm,time,type,cpu\n7,300,1,\n7,100,0,2\n8,200,0,1\n";
    let map = "mapping = 1\n[fold]\nkey = \"vm\"\ntime = \"time\"\nevent = \"type\"\nsubmit = [0]\nstart = [0]\nend = { deleted = [1] }\n\
               [keep]\n\"outcome == 'deleted'\" = \"never deleted\"\n\
               [trace]\njob = \"vm\"\nsubmit = \"first_submit\"\nduration = \"last_end - last_start\"\ncpu = \"cpu\"\n";
    let workload = imported(map, &[("log.csv", log)]);
    assert_eq!(rows(&workload), [("7".to_owned(), 0.0, 200.0)]);
    assert_eq!(workload.quality.dropped["never deleted"], 1);
}

#[test]
fn wrong_mappings_are_refused_with_their_place() {
    let log = [("log.csv", LOG)];
    for (map, want) in [
        ("[trace]\n", "is no mapping; expected 'mapping = 1'"),
        ("mapping = 2\n", "line 1, column 11: mapping: 2 is no known version; expected 1"),
        ("mapping = 1\n", "'submit' is missing"),
        ("mapping = 1\ntrase = 1\n", "'trase' is no key of a mapping (did you mean 'trace'?)"),
        (
            &MAP.replace("cpu =", "cpus ="),
            "line 6, column 1: trace: 'cpus' is no column of a trace (did you mean 'cpu'?)",
        ),
        (
            &MAP.replace("\"cpu\"", "\"cpus\""),
            "line 6, column 7: cpu: expression 'cpus', character 1: 'cpus' is no column of log.csv (did you mean 'cpu'?)",
        ),
        (&MAP.replace("\"cpu\"", "\"cpu +\""), "character 6: expected a column"),
        (&MAP.replace("cpu =", "memory ="), "'memory' has no unit"),
        (&format!("{MAP}[missing]\nduration = \"unknown\"\n"), "'duration' is required"),
        (&format!("{MAP}[missing]\nuser = 0\n"), "'user' is no column of [trace]"),
        (&format!("{MAP}[time]\nzone = \"Europe/Berln\"\n"), "'Europe/Berln' is no time zone"),
        (&format!("{MAP}[time]\norigin = \"x\"\n"), "'x' is neither a number nor a time"),
        (&format!("{MAP}[fields]\ncpu = \"no\"\n"), "expected \"ignored: REASON\" or \"counted: REASON\""),
        (&format!("{MAP}[fields]\nx = \"ignored: y\"\n"), "'x' is no column of log.csv"),
        (&format!("{MAP}[input]\nformat = \"yaml\"\n"), "expected csv, json, json-lines or parquet"),
        (&format!("{MAP}[input]\nreader = \"x\"\n"), "'x' is no reader; expected batsim, kubernetes or philly"),
        (&format!("{MAP}[input]\nformat = \"parquet\"\n"), "is not Parquet, which the mapping expects"),
        (
            &format!("{MAP}[attempts]\nkey = \"id\"\nuse = \"lats\"\n"),
            "'lats' is not accepted; expected first, last, sum or each",
        ),
        (&format!("{MAP}[[table]]\nname = \"a\"\n[[table]]\nname = \"b\"\n"), "join: is missing"),
        (&format!("{MAP}[machines]\nname = \"id\"\n"), "machines: has no resource; expected a capacity"),
        (&format!("{MAP}[machines]\ncpus = 1\n"), "'cpus' is no column of machines; expected table, name, count"),
        (&format!("{MAP}[machines]\ntable = \"x\"\n"), "'x' is no table of the mapping"),
        (&format!("{MAP}[fold]\nkey = \"id\"\n"), "fold: 'end' is missing"),
    ] {
        let message = refusal(map, &log);
        assert!(message.contains(want), "{map}\n{message}");
    }
}

#[test]
fn wrong_logs_are_refused_with_their_line() {
    for (log, want) in [
        ("", "log.csv: has no rows"),
        ("id,submit,duration,cpu\n", "log.csv: has no rows"),
        ("id,submit,duration,cpu\n1,x,9,2\n", "log.csv, line 2, column 'submit': 'x' is neither a number nor a time"),
        ("id,submit,duration,cpu\n1,5,-9,2\n", "log.csv, line 2, column 'duration': -9 is negative"),
        ("id,submit,duration,cpu\n1,5,9\n", "line 2: has 3 fields; expected 4"),
        ("id,submit,duration,cpu\n1,5,9,\n2,5,,1\n", "has no usable row among 2: 1 no cpu, 1 no duration"),
        ("id,submit,duration,cpu\n1,5,9,\"2\n", "quote"),
        ("[{\"id\": 1}", "is not valid JSON"),
    ] {
        let message = refusal(MAP, &[("log.csv", log)]);
        assert!(message.contains(want), "{log}\n{message}");
    }
    let other = refusal(MAP, &[("a.csv", LOG), ("b.csv", "id,submit\n1,5\n")]);
    assert!(other.contains("b.csv: has the columns id, submit; expected those of the first file"), "{other}");
}

#[test]
fn samples_are_recognised_as_their_formats() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    for (file, want) in [
        ("philly/cluster_job_log.json", Some("philly")),
        ("alibaba-2018/batch_task.csv", Some("alibaba-2018")),
        ("alibaba-2018/batch_instance.csv", Some("alibaba-2018-instances")),
        ("pai-2020/pai_task_table.csv", Some("pai-2020")),
        ("pai-2020/pai_job_table.csv", None),
        ("spot-2026/job_info_df.csv", Some("spot-2026")),
        ("google-2011/task_events.csv", Some("google-2011")),
        ("slurm/sacct.txt", Some("slurm")),
        ("batsim/workload.json", Some("batsim")),
        ("kubernetes/pods.json", Some("kubernetes")),
        ("gavel/seven-columns.trace", Some("gavel")),
        ("gavel/twelve-columns.trace", Some("shockwave")),
        ("gavel/throughputs.csv", None),
        ("wta/tasks/schema-1.0/part.0.parquet", Some("wta")),
        ("wta/workflows/schema-1.0/part.0.parquet", None),
        ("swf/dag-with-names.swf", Some("swf-dag")),
    ] {
        let input = Input::open(&folder.join(file)).expect(file);
        assert_eq!(recognise(&input).expect(file).map(|shipped| shipped.name), want, "{file}");
    }
}

#[test]
fn the_standard_workload_format_gives_the_expected_tables() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/swf");
    for (dependencies, expected) in [("ignore", "expected.csv"), ("follow", "expected-dependencies.csv")] {
        let options: FormatOptions =
            toml::from_str(&format!("[swf]\ndependencies = \"{dependencies}\"")).expect("options");
        let log = Input::open(&folder.join("dependencies.swf")).expect("a log");
        let format = detect(&log).expect("readable").expect("a known format");
        let workload = read_input(&log, format, &options).expect("a log");
        let input = Input::open(&folder.join(expected)).expect(expected);
        let (mut expected, mut found) = (CsvTrace::new(&input).expect("a trace"), workload.source());
        while let Some(set) = expected.next_set().expect("readable") {
            let own = found.next_set().expect("rows in memory").expect("as many rows");
            let preceding = |source: &dyn Source, set: &plimsoll_sim::workload::TaskSet| {
                set.preceding.as_ref().map(|it| (source.job_names().text(&it.job), it.think))
            };
            assert_eq!(preceding(&found, &own), preceding(&expected, &set));
            assert_eq!(
                (own.submit, own.duration, own.demand, own.estimate),
                (set.submit, set.duration, set.demand, set.estimate)
            );
        }
        assert_eq!(found.next_set().expect("rows in memory"), None);
    }
}

/// A long import ends at the next check, also after a signal, and dates of digits only are read by their format.
#[test]
fn an_import_is_interrupted_and_formats_of_digits_are_times() {
    let rows: String = (0..5000).map(|row| format!("{row},{row},9,1\n")).collect();
    let log = input("log.csv", format!("id,submit,duration,cpu\n{rows}").as_bytes());
    let stop = || Err(Error::Interrupted);
    let error = import_interruptible(&mapping(MAP), &[log], ImportOptions::default(), &stop).expect_err("interrupted");
    assert!(matches!(error, Error::Interrupted), "{error}");
    let map = "mapping = 1\ntime.format = \"%Y%m%d%H%M\"\nkeep = { \"e >= s\" = \"the end is before the start\" }\n[trace]\n\
               job = \"id\"\nsubmit = \"s\"\nduration = \"e - s\"\ncpu = \"1\"\n";
    let workload = imported(map, &[("log.csv", "id,s,e\n1,202603312350,202604010010\n")]);
    assert_eq!(workload.sets.iter().map(|set| set.duration.0).collect::<Vec<_>>(), [1_200_000_000]);
    // Texts of dates in another order of their parts compare as times.
    let map = map.replace("%Y%m%d%H%M", "%d.%m.%Y");
    let workload = imported(&map, &[("log.csv", "id,s,e\n1,31.03.2026,01.04.2026\n")]);
    assert_eq!(workload.sets.iter().map(|set| set.duration.0).collect::<Vec<_>>(), [86_400_000_000]);
}

#[test]
fn a_quote_without_an_end_does_not_hide_rows() {
    let row = |id: u32, note: &str| format!("{id},{id},9,1,{note}\n");
    let log = |notes: &[&str]| {
        let rows = notes.iter().enumerate().map(|(at, note)| row(at as u32, note));
        format!("id,submit,duration,cpu,note\n{}", rows.collect::<String>())
    };
    // The quote is never closed: the log cannot be read.
    let error = refusal(MAP, &[("log.csv", &log(&["", "", "\"x", "", ""]))]);
    assert!(error.contains("log.csv, line 4: a quote opened on this line is not closed"), "{error}");
    // Another quote closes it: the row has other rows in it.
    let quality = imported(MAP, &[("log.csv", &log(&["", "", "\"x", "", "y\"", "", ""]))]).quality;
    let (line, problem) = &quality.first_dropped["unusable row"];
    assert!(*line == 4 && problem.contains("a field in quotes has 3 lines, and some have 5 fields"), "{problem}");
    // Fields with several lines are accepted.
    let workload = imported(MAP, &[("log.csv", &log(&["", "\"x\ny, z\nz\"", ""]))]);
    assert_eq!(workload.sets.len(), 3);
}

/// Quadratic algorithms need minutes for these logs.
#[test]
fn long_chains_and_records_with_many_keys_are_fast() {
    let begin = std::time::Instant::now();
    let chain: String = (1..=30_000).map(|stage| format!("1,5,9,1,{stage},{}\n", stage - 1)).collect();
    let map = format!("{MAP}stage = \"s\"\nafter = \"if a > 0 then a else missing\"\n");
    let workload = imported(&map, &[("log.csv", &format!("id,submit,duration,cpu,s,a\n{chain}"))]);
    assert!(workload.quality.repaired.is_empty() && workload.sets[29_999].after.len() == 1);
    let closed = chain.replacen(",1,0\n", ",1,30000\n", 1);
    let workload = imported(&map, &[("log.csv", &format!("id,submit,duration,cpu,s,a\n{closed}"))]);
    assert_eq!(
        workload.quality.repaired["stages of the job wait for each other; the dependencies are dropped"],
        30_000
    );
    let keys: String = (0..60_000).map(|key| format!(", \"k{key}\": 1")).collect();
    let record = format!("{{\"id\": 1, \"submit\": 5, \"duration\": 9, \"cpu\": 1{keys}}}\n");
    let reversed: String = (0..60_000).rev().map(|key| format!(", \"k{key}\": 1")).collect();
    let other = format!("{{\"id\": 2, \"submit\": 5, \"duration\": 9, \"cpu\": 1{reversed}}}\n");
    assert_eq!(imported(MAP, &[("log.json", &(record + &other))]).sets.len(), 2);
    assert!(begin.elapsed().as_secs() < 120, "{:?}", begin.elapsed());
}
