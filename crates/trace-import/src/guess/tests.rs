//! Tests of guessed mappings.

use plimsoll_base::tree::Place;
use plimsoll_sim::workload::Input;

use super::guess;
use crate::mapping::Mapping;
use crate::run::{ImportOptions, import};

fn input(name: &str, text: &str) -> Input {
    Input::Bytes(name.into(), text.as_bytes().to_vec().into())
}

fn guessed(text: &str) -> String {
    guess(&[input("log.csv", text)]).expect("readable")
}

#[test]
fn an_ordinary_log_needs_no_answer() {
    let log = "JobID,User,SubmitTime,StartTime,EndTime,State,NumGPUs,MemGB,note\n\
               7,ann,2026-01-01T00:00:00Z,2026-01-01T00:01:00Z,2026-01-01T00:03:00Z,done,2,16,x\n\
               8,bob,2026-01-01T00:00:30Z,2026-01-01T00:01:00Z,2026-01-01T00:02:00Z,failed,1,8,\n";
    let text = guessed(log);
    for want in [
        "job = \"JobID\"",
        "user = \"User\"",
        "submit = \"SubmitTime\"",
        "duration = \"EndTime - StartTime\"",
        "gpu = \"NumGPUs\"",
        "memory_gib = \"MemGB\"",
        "values of State: done (1), failed (1)",
        "# \"note\" = \"ignored: ?\"",
        "#   JobID=7 User=ann",
        "#   7,ann,0,120000000",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    let mapping = Mapping::parse("mapping", &Place::whole_text("guess", text)).expect("a mapping");
    let workload = import(&mapping, &[input("log.csv", log)], ImportOptions::default()).expect("an import");
    assert_eq!(workload.sets.len(), 2);
}

#[test]
fn questions_about_required_columns_prevent_an_import() {
    for (log, want) in [
        ("id;who;when\n1;a;5\n", "# duration = \"?\"   # needed"),
        ("id,submit,finish,cpu\n1,5,9,1\n", "finish seems to be the end, no column the start"),
        ("id,submit,runtime\n1,5,9\n", "# cpu = \"?\"   # needed"),
        ("vm,time,type,cpu\n1,0,0,2\n1,9,1,2\n", "# ? type may be the kind of an event"),
        (
            "id,born,cpu\n1,2026-01-01,2\n",
            "# submit = \"?\"   # needed: the time of submission; columns of times: born",
        ),
        ("1,2,3\n4,5,6\n", "columns = [\"column_1\", \"column_2\", \"column_3\"]"),
        (
            "id,submit,duration,cpu\n1,05/04/2026 10:00,9,1\n",
            "# format = \"?\"   # needed; all values fit %d/%m/%Y %H:%M and %m/%d/%Y %H:%M",
        ),
    ] {
        let text = guessed(log);
        assert!(text.contains(want) && text.contains("No rows of a trace yet"), "{want}: {text}");
    }
}

#[test]
fn units_follow_from_sizes_and_names() {
    for (log, want) in [
        (
            "id,submit,duration_ms,cpu\n1,1490000000000,9,1\n",
            "submit_ms = \"submit\"   # by its name; milliseconds since 1970",
        ),
        ("id,submit,duration_ms,cpu\n1,1490000000000,9,1\n", "duration_ms = \"duration_ms\""),
        ("id,submit,duration,cpu\n1,5,9,1\n", "seconds are assumed"),
        ("id,submit,duration,cpu milli\n1,5,9,500\n", "cpu = \"`cpu milli` / 1000\""),
        ("Job Id,Queued [d],Run time (h),Cores,RAM (GB)\n1,5,9,1,2\n", "submit = \"`Queued [d]` * 86400\""),
        ("Job Id,Queued [d],Run time (h),Cores,RAM (GB)\n1,5,9,1,2\n", "duration = \"`Run time (h)` * 3600\""),
        ("Job Id,Queued [d],Run time (h),Cores,RAM (GB)\n1,5,9,1,2\n", "memory_gib = \"`RAM (GB)`\""),
        ("id,submit,duration,cpu,mem\n1,5,9,1,16G\n", "bytes(mem) / 1073741824"),
        ("id,submit,duration,cpu,mem\n1,5,9,1,16\n", "# memory_gib = \"mem\"   # ? the unit"),
        ("id,submit,duration,cpu\n1,5,9,-1\n2,5,9,1\n", "# missing = [\"-1\"]   # ?"),
    ] {
        let text = guessed(log);
        assert!(text.contains(want), "{want}: {text}");
    }
}

#[test]
fn json_and_known_formats_are_described() {
    let text = guess(&[input(
        "log.json",
        "{\"meta\": {\"n\": 1}, \"data\": {\"jobs\": [{\"id\": 1, \"submit\": 2, \"runtime\": 3, \"cpus\": 4}]}}",
    )])
    .expect("readable");
    assert!(text.contains("records = \"data.jobs\"") && text.contains("cpu = \"cpus\""), "{text}");
    let text =
        guess(&[input("x.swf", "; Version: 2.2\n1 0 5 14 8 -1 9 64 -1 -1 1 7 1 -1 -1 -1 -1 -1\n")]).expect("readable");
    assert!(text.contains("plimsoll trace import x.swf --from swf"), "{text}");
    let text = guessed("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n");
    assert!(text.contains("recognised by its content as philly-extract") && text.contains("mapping = 1"), "{text}");
}

#[test]
fn fields_of_records_are_found_by_their_last_part() {
    let log = "{\"id\": 1, \"owner\": {\"name\": \"ann\"}, \"submitted\": 5, \"runtime\": 7, \"spec\": {\"cpus\": 4}}\n\
               {\"id\": 2, \"owner\": {\"name\": \"bob\"}, \"submitted\": 6, \"runtime\": 7, \"spec\": {\"cpus\": 2}}\n";
    let text = guess(&[input("log.jsonl", log)]).expect("readable");
    assert!(text.contains("user = \"owner.name\"") && text.contains("cpu = \"spec.cpus\""), "{text}");
    let error = guess(&[input("log.bin", "\u{1}\u{0}a,b\nc")]).expect_err("binary data").to_string();
    assert!(error.contains("it holds binary data"), "{error}");
}

fn imported(text: &str, log: &str) -> plimsoll_sim::workload::Workload {
    let mapping =
        Mapping::parse("mapping", &Place::whole_text("guess", text)).unwrap_or_else(|error| panic!("{error}"));
    import(&mapping, &[input("log.csv", log)], ImportOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn names_of_columns_may_have_backticks_and_occur_twice() {
    let log = "Job `x`,submit,runtime (`s`),cpu\n1,5,9,2\n";
    let text = guessed(&log.replace("Job `x`", "`job`"));
    assert!(text.contains("job = \"```job```\""), "{text}");
    assert_eq!(imported(&text, &log.replace("Job `x`", "`job`")).sets[0].duration.0, 9_000_000);
    // The second column with a name is neither used nor hidden.
    let log = "id,submit,duration,cpu,cpu,state,note,note\n1,5,9,2,4,it's,x,y\n2,6,9,2,4,it's,x,y\n";
    let text = guessed(log);
    for want in [
        "# ? several columns have the name cpu",
        "cpu = \"$4\"",
        "# \"$5\" = \"ignored: ?\"   # cpu; 2 of 2 values",
        "# \"$7\" = \"ignored: ?\"   # note;",
        "# \"state == 'it''s'\" = \"another state\"",
        "the first line is a header",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    let answered = text.replace("# \"", "\"").replace("# cpu", "#").replace("ignored: ?", "ignored: no");
    let workload = imported(&answered, log);
    assert_eq!((workload.sets.len(), workload.sets[0].demand[0]), (2, 2000));
    assert!(workload.quality.warnings.is_empty(), "{:?}", workload.quality);
}

#[test]
fn numbers_may_have_decimal_commas() {
    let log = "id;submit;duration;cpu;memgb\n1;1.234,5;9,5;1,5;4\n2;1.235,5;10;2,25;4\n";
    let text = guessed(log);
    for want in [
        "submit = \"replace(replace(submit, '.', ''), ',', '.')\"",
        "duration = \"replace(duration, ',', '.')\"",
        "cpu = \"replace(cpu, ',', '.')\"   # by its name; 2 of 2 values are numbers with commas such as 1,5; ? the comma is a decimal comma",
        "memory_gib = \"memgb\"",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    let workload = imported(&text, log);
    assert_eq!((workload.sets[1].submit.0, workload.sets[0].duration.0), (1_000_000, 9_500_000));
    assert_eq!(workload.sets[1].demand[0], 2250);
    // Without a header, the comma between digits is no delimiter.
    let text = guessed("1;1,5;9,5;1,5\n2;2,5;9,5;1,5\n");
    assert!(text.contains("delimiter = \";\"") && text.contains("\"column_4\"]"), "{text}");
    // Groups of digits or a decimal comma: only the user knows.
    let text = guessed("id;submit;duration;cpu\n1;1;1,500;2\n2;2;2,250;2\n");
    assert!(
        text.contains("# duration = \"replace(duration, ',', '.')\"   # ? needed: whether 1,500 has a decimal comma"),
        "{text}"
    );
    assert!(text.contains("No rows of a trace yet: guess") || text.contains("No rows of a trace yet"), "{text}");
    let text = guessed("id;submit;duration;cpu\n1;1;1,234,500;2\n2;2;2,250;2\n");
    assert!(text.contains("duration = \"replace(duration, ',', '')\"   # by its name;"), "{text}");
    // A list such as 0,1 may be read as a number; the line has a question.
    let text = guessed("id,submit,duration,cpu\n1,5,9,2\n2,5,9,2,5\n");
    assert!(
        text.contains("# ? 1 of the first 2 rows cannot be read: log.csv, line 3: has 5 fields; expected 4"),
        "{text}"
    );
    let error = guess(&[input("log.csv", "id,submit,duration,cpu\n1,5,9,2,5\n")]).expect_err("no row").to_string();
    assert!(error.contains("line 2: has 5 fields; expected 4"), "{error}");
}
