//! `plimsoll trace` through the binary: import, generate, stats, head, validate.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::frame::Frame;
use crate::replay::{files, plimsoll, run, said};

const SWIM: &str = "job0\t49\t49\t67108865\t1073741825\t627471\njob1\t101.5\t52\t736346\t0\t432269\n\
                    job2\t102\t1\t0\t0\t0\njob3\t130\t28\t0\t5\t7\n";
const ALIBABA: &str = "6459,6524,3,4,15740,Terminated,50,0.007956928\n6036,6046,4,7,393,Waiting,,\n\
                       60,61,4,8,12,Terminated,150,0.25\n70,75,4,9,1,Terminated,100,0.5\n";
const SWF: &str = "; MaxProcs: 128\n1 0 5 14 8 -1 9 64 -1 -1 1 7 1 -1 -1 -1 -1 -1\n\
                   2 1 -1 3 4 -1 -1 -1 -1 9 1 5 1 1 1 1 1 1\n3 9 0 10 2 -1 -1 2 -1 -1 1 7 1 1 1 1 1 1\n";
const OPENB: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
                     scheduled_time\np0,12000,16384,8,1000,,LS,Running,10,500,20\n\
                     p1,6000,12288,1,460,V100M16,BE,Succeeded,12,90,30\np2,6000,12288,0,0,,BE,Pending,40,500,\n";

/// Each format with a sample, machines that are large enough for the sample, and the numbers of rows read, rows dropped and tasks.
const SAMPLES: [(&str, &str, &str, [u64; 3]); 4] = [
    ("swim", SWIM, "4x4c8g", [4, 1, 7]),
    ("alibaba-2017", ALIBABA, "900x64c1norm", [4, 1, 15753]),
    ("swf", SWF, "1x128c", [3, 0, 3]),
    ("openb", OPENB, "2x64c256g8gpu", [3, 1, 2]),
];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("a temporary file is writable");
    path.to_str().expect("temporary paths are text").to_owned()
}

fn trace(args: &[&str]) -> Output {
    run(plimsoll(&["trace"]).args(args))
}

/// Runs `plimsoll trace` and returns its standard output. Panics: if it fails.
pub fn good(args: &[&str]) -> String {
    let output = trace(args);
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn piped(args: &[&str], input: &str) -> Output {
    let mut command = plimsoll(&["trace"]);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    // The binary may exit before it reads the input.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the binary ends")
}

/// Replays a trace and returns the `jobs` table.
pub fn jobs(dir: &Path, trace: &str, machines: &str, extra: &[&str]) -> Frame {
    let out = dir.join(format!("out-{}", trace.replace(['/', '\\'], "_")));
    let mut command = plimsoll(&["replay", trace, "--machines", machines, "--policy", "drf"]);
    let output = run(command.args(extra).arg("-o").arg(&out));
    assert!(output.status.success(), "{trace}: {}", said(&output));
    let table = files(&out.join("jobs")).pop().expect("a jobs table");
    Frame::open(&table)
}

#[test]
fn every_format_imports_and_replays_as_the_file_itself_does() {
    for (format, text, machines, [rows_in, dropped, tasks]) in SAMPLES {
        let dir = folder();
        let source = file(dir.path(), "source", text);
        let direct = jobs(dir.path(), &source, machines, &["--from", format]);
        for (ending, asked) in [("csv", true), ("parquet", true), ("csv", false)] {
            let out = dir.path().join(format!("t.{ending}"));
            let out = out.to_str().expect("text");
            let mut args = vec!["import", &source, "-o", out];
            // Samples are also recognised without `--format`.
            args.extend(asked.then_some(["--format", format]).into_iter().flatten());
            let output = trace(&args);
            assert!(output.status.success() && output.stdout.is_empty(), "{format}: {}", said(&output));
            let message = said(&output);
            assert!(message.contains(&format!("{format}: {rows_in} rows read")), "{message}");
            let beside = json(&std::fs::read_to_string(format!("{out}.json")).expect("a report"));
            assert_eq!(beside["format"], format);
            assert_eq!((beside["rows_in"].as_u64(), beside["tasks"].as_u64()), (Some(rows_in), Some(tasks)));
            assert_eq!(beside["rows_kept"].as_u64(), Some(rows_in - dropped));
            assert_eq!(beside["source_blake3"].as_str().map(str::len), Some(64));
            assert_eq!(jobs(dir.path(), out, machines, &[]), direct, "{format}, {ending}");
        }
    }
}

#[test]
fn random_workloads_come_back_exactly_with_every_column() {
    let dir = folder();
    // Names with unusual characters, and numbers that floats cannot represent exactly.
    let mut text =
        String::from("job,user,submit_us,duration_us,tasks,cpu,disk_mib,io_norm,stage,after,priority,gang,label\n");
    let mut seed = 7u64;
    let mut next = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed ^ (seed >> 32)) % most
    };
    let decimal = |value: u64, digits: usize| {
        let scale = 10u64.pow(digits as u32);
        let text = format!("{}.{:0digits$}", value / scale, value % scale);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    for job in 0..400u64 {
        let user = next(9);
        // The second row waits for the first.
        for row in 0..2 {
            let stage = if row == 0 { "a b" } else { "é" };
            let after = if row == 0 { "" } else { "a b" };
            text.push_str(&format!(
                "\"j, {job}\",\"u\"\"{}\",{},{},{},{},{},{},{stage},{after},{},{},{}\n",
                user,
                9_007_199_254_740_993 + job,
                next(1_000_000_000_000_000_000),
                1 + next(5),
                decimal(next(999_999_999_999_999), 3),
                9_007_199_254_740_993 + next(1000),
                decimal(next(999_999_999), 6),
                next(10),
                next(2) == 1,
                ["", "ssd", "gpu v100"][next(3) as usize],
            ));
        }
    }
    let source = file(dir.path(), "source.csv", &text);
    let parquet = dir.path().join("t.parquet");
    let parquet = parquet.to_str().expect("text");
    assert_eq!(good(&["import", &source, "--resource", "io"]), text, "CSV to CSV");
    good(&["import", &source, "--resource", "io", "-o", parquet]);
    assert_eq!(good(&["import", parquet, "--resource=io_norm"]), text, "Parquet to CSV");
    let fine = text.replacen("true", "yes", 1).replacen(".5,", ".50,", 1);
    assert_eq!(good(&["import", "--resource=io", &file(dir.path(), "fine.csv", &fine)]), text, "other spellings");
    let huge = "job,user,submit_s,duration_s,cpu\na,u,0,1,100000000000000.001\n";
    let huge = file(dir.path(), "huge.csv", huge);
    let output = trace(&["import", &huge, "-o", parquet]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("huge.csv, line 2") && said(&output).contains(".csv"), "{}", said(&output));
}

#[test]
fn resources_of_other_names_are_those_of_the_machines_or_declared() {
    let dir = folder();
    let source = file(dir.path(), "t.csv", "job,user,submit_s,duration_s,cpu,licence\na,u,0,1,1,2\n");
    let machines = file(dir.path(), "m.csv", "cpu,licence\n4,4\n");
    let refused = |args: &[&str]| {
        let output = trace(args);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("t.csv, line 1, column 'licence': is not a trace column"), "{}", said(&output));
    };
    for verb in ["head", "validate", "stats", "import"] {
        refused(&[verb, &source]);
        good(&[verb, &source, "--resource", "licence"]);
    }
    refused(&["validate", &source, "--machines", "4x4c"]);
    good(&["validate", &source, "--machines", &machines]);
    good(&["stats", &source, "--machines", &machines]);
    jobs(dir.path(), &source, &machines, &[]);
    let text = |resources: &str| {
        format!(
            "name = \"p\"\npolicies = [\"drf\"]\n[cluster]\nmachines = \"4x4c\"\n[workload]\ntrace = \"t.csv\"\n{resources}"
        )
    };
    let plan = |resources| {
        run(plimsoll(&["run"]).arg(file(dir.path(), "p.toml", &text(resources))).arg("-o").arg(dir.path().join("o")))
    };
    assert!(said(&plan("")).contains("resources = [\"licence\"]"), "{}", said(&plan("")));
    // If the plan declares the resource, the error is that the machines lack it.
    let declared = plan("resources = [\"licence\"]\n");
    assert!(said(&declared).contains("the cluster has no licence"), "{}", said(&declared));
}

#[test]
fn standard_input_works_for_every_format_and_verb() {
    for (format, text, _, _) in SAMPLES {
        let output = piped(&["import", "-", "--format", format], text);
        assert!(output.status.success(), "{format}: {}", said(&output));
        let csv = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(csv.starts_with("job,user,submit_us,duration_us"), "{csv}");
        for verb in ["head", "stats", "validate"] {
            let output = piped(&[verb, "-"], text);
            assert!(output.status.success() && !output.stdout.is_empty(), "{verb} {format}: {}", said(&output));
        }
        assert!(piped(&["head", "-"], &csv).status.success());
    }
}

#[test]
fn tenants_and_parameters_change_the_import_and_are_recorded() {
    let dir = folder();
    let source = file(dir.path(), "source", SWIM);
    let out = dir.path().join("t.csv");
    let out = out.to_str().expect("text");
    good(&["import", &source, "--tenants", "hash:3", "--set", "swim.map_bytes=33554432", "-o", out]);
    let text = std::fs::read_to_string(out).expect("readable");
    assert!(text.contains("\njob0,u") && text.contains(",3,0.83,615,map,"), "{text}");
    let beside = json(&std::fs::read_to_string(format!("{out}.json")).expect("a report"));
    assert_eq!(beside["assumptions"]["tenants"], "hash:3");
    assert_eq!(beside["assumptions"]["swim.map_bytes"], "33554432");
    let gang = good(&["import", &file(dir.path(), "swf", SWF), "--set", "swf.parallel=gang"]);
    assert!(gang.contains("gang,after_job,think_us\n1,7,0,14000000,64,1,true,,\n"), "{gang}");
}

#[test]
fn wrong_requests_are_refused_with_what_would_be_accepted() {
    let dir = folder();
    let swim = file(dir.path(), "swim.tsv", SWIM);
    let csv = file(dir.path(), "t.csv", "job,user,submit_s,duration_s,cpu\na,u,0,1,1\n");
    let empty = file(dir.path(), "empty.csv", "");
    let twice = file(dir.path(), "twice.csv", "job,user,submit_s,duration_s,cpu\na,u,0,1,1\nb,u,1,1,1\na,u,2,1,1\n");
    let lost = file(dir.path(), "lost.csv", "job,user,submit_s,duration_s,cpu,after\na,u,0,1,1,mop\n");
    let folder = dir.path().to_str().expect("text");
    let missing = dir.path().join("missing.csv");
    let missing = missing.to_str().expect("text");
    let table: &[(&str, &[&str])] = &[
        ("import @swim --format swin", &["--from", "'swin'", "did you mean 'swim'", "alibaba-2017"]),
        ("import @swim --format swf", &["swim.tsv, line 1", "18"]),
        ("import @swim --set swim.map_byte=1", &["--set", "map_byte", "map_bytes"]),
        ("import @swim --set swim.map_bytes", &["--set", "swim.map_bytes=134217728"]),
        ("import @swim --set swf.parallel=gang", &["--set", "swf.parallel", "swim"]),
        ("import @csv --set swf.parallel=gang", &["--set", "canonical"]),
        ("import @swim --set swim.map_bytes=0", &["swim.map_bytes", "from 1"]),
        ("import @swim --tenants hash", &["--tenants", "'hash'", "hash:K"]),
        ("import @swim --tenants column", &["--tenants", "swim has no user column"]),
        ("import @csv --tenants one", &["--tenants", "canonical"]),
        ("import @swim -o t.txt", &["--output", "'t.txt'", ".parquet"]),
        ("import @empty", &["empty.csv", "empty"]),
        ("import @empty --format openb", &["empty.csv", "no rows"]),
        ("import @missing", &["missing.csv"]),
        ("import @folder", &["is a folder"]),
        ("validate @twice", &["twice.csv, line 4", "'job'", "appeared before"]),
        ("validate @lost", &["lost.csv, line 2", "'after'", "mop"]),
        ("validate @csv --from swim", &["t.csv, line 1", "6"]),
        ("validate @csv --format yaml", &["--format", "'yaml'"]),
        ("validate @csv --machines many", &["--machines", "400x16c32g"]),
        ("head @missing", &["missing.csv"]),
        ("stats facebok", &["'facebok'", "did you mean 'facebook'"]),
        ("stats closed-loop", &["closed-loop", "plimsoll run"]),
        ("generate closed-loop", &["closed-loop", "plimsoll run"]),
        ("generate facebok", &["'facebok'", "did you mean 'facebook'"]),
        ("generate synthetic", &["synthetic", "--plan"]),
        ("generate", &["generator", "--plan"]),
        ("generate facebook --set lod=1", &["lod", "Did you mean 'load'"]),
        ("generate bench --set load=0", &["workload.load", "above 0"]),
        ("generate facebook --plan @missing", &["missing.csv"]),
    ];
    let paths = [
        ("@swim", swim.as_str()),
        ("@csv", &csv),
        ("@empty", &empty),
        ("@twice", &twice),
        ("@lost", &lost),
        ("@folder", folder),
        ("@missing", missing),
    ];
    for (line, says) in table {
        let path = |word| paths.iter().find(|(name, _)| *name == word).map_or(word, |(_, path)| *path);
        let args: Vec<&str> = line.split_whitespace().map(path).collect();
        let output = trace(&args);
        let message = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(output.stdout.is_empty(), "{args:?} wrote to stdout");
        for part in *says {
            assert!(message.contains(part), "{args:?}: {part:?} is not in: {message}");
        }
    }
    let left = files(dir.path()).len();
    assert_eq!(left, 5, "only the inputs are left");
}

#[test]
fn stats_of_the_facebook_generator_stand_beside_the_published_ones() {
    let dir = folder();
    let figures = dir.path().join("figures");
    let args = ["stats", "facebook", "--set", "hours=0.2", "--machines", "400x16c32g", "--format", "json", "--figure"];
    let all: Vec<&str> = args.into_iter().chain(figures.to_str()).collect();
    let stats = json(&good(&all));
    for field in ["rows", "jobs", "users", "tasks", "first_submit_s", "last_submit_s", "mean_gap_s"] {
        assert!(stats["summary"][field].is_number(), "{field}");
    }
    for (at, kind) in ["all", "map", "reduce"].into_iter().enumerate() {
        for of in ["summary", "published"] {
            let marginal = &stats[of]["marginals"][at];
            assert_eq!(marginal["kind"], kind);
            for point in ["p10", "p50", "p90", "p99", "mean"] {
                assert!(marginal["demand"][0][1][point].is_number(), "{of} {kind} {point}");
            }
        }
    }
    assert_eq!(stats["summary"]["sizes_drf"].as_array().map(Vec::len), Some(7));
    assert_eq!(stats["published"]["sizes_drf"][0]["jobs"], 22_078);
    // The target load of the generator is 0.85 of these machines.
    let load = stats["load"][0]["offered_load"].as_f64().expect("a load");
    assert!((0.6..1.2).contains(&load), "{load}");
    let names: Vec<String> = files(&figures)
        .iter()
        .filter_map(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
        .collect();
    for name in ["durations", "demand-cpu", "demand-memory", "demands", "demands-published", "job-sizes"] {
        for ending in ["svg", "png"] {
            assert!(names.contains(&format!("{name}.{ending}")), "{name}.{ending} among {names:?}");
        }
    }
    let text = good(&["stats", "facebook", "--set", "hours=0.2"]);
    assert!(text.contains("published") && text.contains("map: cpu (cores)") && text.contains("1-500"), "{text}");
}

#[test]
fn generated_traces_equal_what_a_run_sees_and_repeat() {
    let dir = folder();
    let plan = file(
        dir.path(),
        "plan.toml",
        "name = \"p\"\npolicies = [\"drf\"]\n[cluster]\nmachines = \"2x4c8g\"\n[workload]\ngenerator = \
         \"synthetic\"\njobs = 20\narrival = 3\n[[workload.class]]\nname = \"a\"\nusers = 3\ntasks = 2\nduration = \
         \"5s\"\ndemand = { cpu = 1.5, memory_gib = 1 }\n",
    );
    let csv = good(&["generate", "--plan", &plan, "--seed", "4"]);
    assert_eq!(csv.lines().next(), Some("job,user,submit_us,duration_us,tasks,cpu,memory_mib"));
    assert_eq!(csv.lines().count(), 21);
    assert_eq!(csv, good(&["generate", "synthetic", "--plan", &plan, "--seed", "4"]));
    assert_ne!(csv, good(&["generate", "--plan", &plan, "--seed", "5"]));
    assert_eq!(good(&["generate", "--plan", &plan, "--set", "jobs=3"]).lines().count(), 4);
    assert_eq!(good(&["generate", "--plan", &plan, "--set", "workload.jobs=3"]).lines().count(), 4);
    let out = dir.path().join("t.parquet");
    let out = out.to_str().expect("text");
    good(&["generate", "--plan", &plan, "--seed", "4", "-o", out]);
    assert_eq!(good(&["import", out]), csv);
    let beside = json(&std::fs::read_to_string(format!("{out}.json")).expect("a report"));
    assert_eq!((beside["generator"].as_str(), beside["seed"].as_u64()), (Some("synthetic"), Some(4)));
    assert_eq!(beside["parameters"]["jobs"], 20);
    assert_eq!(good(&["generate", "bench", "--set", "tasks=7", "--set", "burst=true"]).lines().count(), 8);
}

#[test]
fn validate_adds_up_stages_that_follow_each_other() {
    let dir = folder();
    let rows = "job,user,submit_s,duration_s,tasks,cpu,stage,after\nj1,ann,0,20,1,1,map,\nj1,ann,0,60,1,1,reduce,map\n";
    let source = file(dir.path(), "stages.csv", rows);
    let text = good(&["validate", &source]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the last task could end at 80 s") && text.contains("it ignores waiting for"), "{text}");
    assert_eq!(json(&good(&["validate", &source, "--format", "json"]))["earliest_end_s"], 80.0);
}

#[test]
fn validate_reports_rows_load_and_what_fits_nowhere() {
    let dir = folder();
    let alibaba = file(dir.path(), "a.csv", ALIBABA);
    let text = good(&["validate", &alibaba, "--machines", "10x64c1norm"]);
    for part in ["4 rows read, 3 kept", "dropped 1: status Waiting", "assumed tenants = job", "offered load", "j4"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let trace_file = file(
        dir.path(),
        "t.csv",
        "job,user,submit_s,duration_s,tasks,cpu,stage,after\na,u,0,3600,2,1,,\nb,v,1800,1,3,9,,\nc,v,3600,1,1,1,x,x\n",
    );
    let output = trace(&["validate", &trace_file, "--machines", "2x4c", "--format", "json"]);
    let report = json(&String::from_utf8_lossy(&output.stdout));
    assert_eq!((report["rows_in"].as_u64(), report["tasks_too_large"].as_u64()), (Some(3), Some(3)));
    assert_eq!(report["deadlocked_jobs"], 1);
    let work = report["load"][0]["work_hours"].as_f64().expect("work");
    assert!((work - (2.0 + 27.0 / 3600.0 + 1.0 / 3600.0)).abs() < 1e-9, "{work}");
    assert_eq!(report["load"][0]["offered_load"].as_f64(), Some(work / 8.0));
    let message = said(&output);
    assert!(message.contains("3 tasks fit no machine") && message.contains("t.csv, line 3"), "{message}");
    assert!(message.contains("wait for one another") && message.contains("'c'"), "{message}");
    assert!(json(&good(&["validate", &trace_file, "--format", "json"]))["load"].is_null());
}

#[test]
fn head_shows_the_first_rows() {
    let dir = folder();
    let swim = file(dir.path(), "swim.tsv", SWIM);
    let text = good(&["head", &swim, "-n", "2"]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["job", "user", "submit_us", "duration_us", "tasks", "cpu", "memory_mib", "stage", "after"]);
    assert_eq!(lines[2], ["job0", "job0", "49000000", "133000000", "2", "0.46", "861", "reduce", "map"]);
    assert_eq!(lines.len(), 3);
    // Optional columns are shown if a shown row has a value.
    let rows = "job,user,submit_s,duration_s,cpu,location,stable,estimate_s,deadline_s\n\
                a,u,0,1,1,,false,,\nb,u,0,1,1,hz/r1,true,7,20\n";
    let optional = file(dir.path(), "optional.csv", rows);
    let shown = |rows: &str| -> Vec<Vec<String>> {
        let text = good(&["head", &optional, "-n", rows, "--wide"]);
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let names = ["job", "user", "submit_us", "duration_us", "tasks", "cpu"];
    assert_eq!(shown("1")[0], names);
    let optional = ["location", "stable", "estimate_us", "deadline_us"];
    assert_eq!(shown("2")[0], [&names[..], &optional[..]].concat());
    assert_eq!(shown("2")[2], ["b", "u", "0", "1000000", "1", "1", "hz/r1", "true", "7000000", "20000000"]);
}

#[test]
fn a_replay_of_a_public_format_says_what_was_dropped() {
    let dir = folder();
    let swim = file(dir.path(), "swim.tsv", SWIM);
    let replay = |extra: &[&str]| {
        let mut command = plimsoll(&["replay", &swim, "--machines", "4x4c8g", "--policy", "drf", "--policy", "fifo"]);
        said(&run(command.args(extra)))
    };
    let note = "swim: 4 rows read, 1 dropped, 1 repaired (see `plimsoll trace validate`)";
    assert_eq!(replay(&[]).matches(note).count(), 1, "{}", replay(&[]));
    assert_eq!(replay(&["--thin", "0.9"]).matches(note).count(), 1);
    assert!(!replay(&["--quiet"]).contains("swim"));
}

#[test]
fn every_help_has_examples() {
    for verb in ["import", "generate", "stats", "head", "validate"] {
        let help = good(&[verb, "--help"]);
        assert!(help.contains("Examples:") && help.contains(&format!("plimsoll trace {verb}")), "{help}");
    }
    assert!(good(&["--help"]).contains("Examples:"));
}

/// `replay` accepts the parameters of a format as `trace import` does.
#[test]
fn a_replay_takes_parameters_of_the_format() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let log = "; x\n1 0 0 60 2 -1 -1 2 -1 1048576 1 1 1 -1 -1 -1 -1 -1\n";
    let (log, csv) =
        (file(dir.path(), "log.swf", log), file(dir.path(), "t.csv", "job,user,submit_s,duration_s,cpu\na,b,0,1,1\n"));
    let replay = |args: &[&str]| {
        let all = [&["replay", "--machines", "1x4c1g", "--policy", "fifo"], args].concat();
        let output = run(&mut plimsoll(&all));
        (output.status.code(), said(&output))
    };
    // The job needs one GiB for each of two processors and the machine has one GiB, so it does not fit. If memory is ignored, the job fits.
    assert_eq!(replay(&[&log]).0, Some(1));
    assert_eq!(replay(&[&log, "--set", "swf.memory=ignore"]).0, Some(0));
    for (args, parts) in [
        ([&log, "--set", "swf.memry=ignore"], ["swf.memry=ignore", "Did you mean 'memory'"]),
        ([&log, "--set", "swim.map_bytes=1"], ["'swim.map_bytes=1' is not accepted", "parameters of swf"]),
        ([&csv, "--set", "swf.memory=ignore"], ["parameters of a public format", "is a canonical trace"]),
    ] {
        let (code, message) = replay(&args.map(|arg: &str| arg));
        assert_eq!(code, Some(2), "{args:?}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{args:?}: {message}");
    }
}
