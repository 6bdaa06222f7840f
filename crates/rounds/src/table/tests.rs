//! Errors of tables and lists of jobs, each with its line and column.

use std::io::Write;

use plimsoll_base::error::Result;

use super::*;

const HEADER: &str = "job_type,scale_factor,worker_type,consolidated,colocated_with,iterations_per_s\n";

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("writable");
    file
}

fn table(rows: &str) -> Result<Throughputs> {
    Throughputs::read(file(&format!("{HEADER}{rows}")).path(), None)
}

/// Returns the message of an error without the path.
#[track_caller]
fn refusal<T>(result: Result<T>) -> String {
    let text = result.err().expect("an error").to_string();
    text.split_once(", line").map_or(text.clone(), |(_, rest)| format!("line{rest}"))
}

#[test]
fn errors_of_tables_have_a_place() {
    let refusal = |rows: &str| refusal(table(rows));
    assert_eq!(
        refusal("a,1,v100,1,,-2\n"),
        "line 2, column 'iterations_per_s': '-2' is out of range; expected iterations per second: 0 (cannot run), or from 1e-12 to 1e6"
    );
    assert!(refusal("a,1,v100,1,,inf\n").contains("line 2, column 'iterations_per_s': 'inf' is not finite"));
    assert!(refusal("a,1,v100,1,,NaN\n").contains("'NaN' is not finite"));
    assert!(refusal("a,1,v100,1,,fast\n").contains("'fast' is not a number"));
    assert!(refusal("a,1,v100,1,,\n").contains("line 2, column 'iterations_per_s': is empty"));
    assert!(
        refusal("a,1,v100,2,,1\n").contains("column 'consolidated': '2' is not accepted; expected 1 (one server) or 0")
    );
    assert!(refusal("a,0,v100,1,,1\n").contains("column 'scale_factor': '0' is out of range"));
    assert!(refusal(",1,v100,1,,1\n").contains("line 2, column 'job_type': is empty"));
    assert_eq!(
        refusal("a,1,v100,1,,1\nb,1,v100,1,,1\na,1,v100,1,,2\n"),
        "line 4, column 'job_type': a of scale 1 on v100 has a row already (line 2); expected one row per key"
    );
    assert_eq!(
        refusal("a,1,v100,1,b,1\nb,2,v100,1,a,1\n"),
        "line 2, column 'colocated_with': a of scale 1 on v100 beside b has no row of its partner; expected b of scale 1 on v100 beside a \
         (it has scale_factor [2]: members of a pair have the same scale)"
    );
    assert!(refusal("a,1,v100,1\n").contains("line 2: has 4 fields; expected 6 as in the header"));
    assert!(refusal("").contains("has no rows"));
    let unknown = Throughputs::read(file("job_type,speed\n").path(), None);
    assert!(self::refusal(unknown).contains("line 1, column 'speed': unknown column 'speed'; expected job_type"));
    let missing = Throughputs::read(file("job_type,worker_type\n").path(), None);
    assert!(self::refusal(missing).contains("line 1, column 'iterations_per_s': has no column 'iterations_per_s'"));
}

#[test]
fn a_missing_row_lists_the_nearest() {
    let table = table("lm-5,1,v100,1,,1\nlm-10,2,v100,1,,3\nlm-10,1,k80,1,,0\nvgg,1,v100,1,,2\n").expect("a table");
    let message = table.alone("lm-10", 1, "v100").expect_err("no such row").to_string();
    let expected = "has no row for lm-10 of scale 1 on v100; nearest: lm-10 of scale 2 on v100 (line 3); \
                    lm-10 of scale 1 on k80 (line 4); lm-5 of scale 1 on v100 (line 2)";
    assert!(message.ends_with(expected), "{message}");
    assert_eq!(table.worker_types(), ["v100", "k80"]);
    let rates = |kind: (&str, u32), workers: &[&str]| {
        let workers: Vec<String> = workers.iter().map(|name| (*name).to_owned()).collect();
        Rates::new(&table, &[], &[(kind.0.to_owned(), kind.1)], &workers, false).map(|_| ())
    };
    let zero = rates(("lm-10", 1), &["k80"]).expect_err("cannot run").to_string();
    assert!(zero.contains("lm-10 of scale 1 has rate 0 on all of k80; expected one above 0"), "{zero}");
    let unknown = rates(("vgg", 1), &["a100"]).expect_err("no rows").to_string();
    assert!(unknown.contains("has no rows for worker type 'a100'; it has v100, k80"), "{unknown}");
}

#[test]
fn pairs_have_two_rates_and_rows_can_be_filtered() {
    let table = table("a,1,v100,1,,4\nb,1,v100,1,,2\na,1,v100,1,b,3\nb,1,v100,1,a,2.5\n").expect("a table");
    assert_eq!(table.faster_in_pair, 1);
    let kinds = [("a".to_owned(), 1), ("b".to_owned(), 1)];
    let rates = Rates::new(&table, &[], &kinds, &["v100".to_owned()], true).expect("rates");
    let pair = rates.pair(0, 1, 0).expect("a pair");
    assert_eq!((pair.first.per_s, pair.second.pico), (3.0, 2_500_000_000_000));
    let text = "cluster,job_type,worker_type,iterations_per_s\nx,a,v100,1\ny,a,v100,2\n";
    let only = Throughputs::read(file(text).path(), Some(("cluster", "y"))).expect("a table");
    assert_eq!(only.alone("a", 1, "v100").expect("a row").per_s, 2.0);
}

fn jobs(text: &str, arrivals: Arrivals) -> Result<Vec<TrainingJob>> {
    let table = table("a,1,v100,1,,24.5\na,2,v100,1,,30\n")?;
    let options = JobOptions { arrivals, reference: "v100", single: false, at_most: usize::MAX };
    read_jobs(file(text).path(), &table, &options)
}

#[test]
fn jobs_are_read_exactly() {
    let text =
        "job,unit_arrival,job_type,scale_factor,duration_v100_s,weight\n0,0.0,a,1,100.5,5\n1,0.271762303,a,2,7,1\n";
    let read = jobs(text, Arrivals::PerHour(2_800)).expect("jobs");
    assert_eq!((read[0].iterations, read[0].weight), (2_462_250_000, 5));
    assert_eq!((read[1].iterations, read[1].scale), (210_000_000, 2));
    // 0.271762303 * 3600 / 2.8 s.
    assert_eq!(read[1].arrival.0, 349_408_675);
    let text = "job_type,arrival_s,total_steps,batch_sizes,epochs,mode\na,5,1000,10x11 20x10,21,gns\n";
    let read = jobs(text, Arrivals::Seconds).expect("jobs");
    assert_eq!(read[0].phases, [BatchPhase { batch: 10, epochs: 11 }, BatchPhase { batch: 20, epochs: 10 }]);
    assert!(read[0].gradual);
}

#[test]
fn errors_of_jobs_have_a_place() {
    let refusal = |text: &str| refusal(jobs(text, Arrivals::Seconds));
    let header = "job,arrival_s,job_type,iterations\n";
    assert!(refusal(&format!("{header}1,0,a,5\n")).contains("line 2, column 'job': '1' is not in order; expected 0"));
    assert!(refusal(&format!("{header}0,9,a,5\n1,8,a,5\n")).contains("line 3, column 'arrival_s': arrives before"));
    assert!(refusal(&format!("{header}0,0,a,0\n")).contains("line 2, column 'iterations': job 0 has no work"));
    let both = refusal("arrival_s,job_type,iterations,duration_s\n0,a,1,1\n");
    assert!(both.contains("line 2, column 'iterations': the file has iterations and durations"), "{both}");
    let neither = refusal("arrival_s,job_type\n0,a\n");
    assert!(neither.contains("the file has no work; expected iterations or duration_s"), "{neither}");
    let unknown = refusal("arrival_s,job_type,duration_s\n0,b,1\n");
    assert!(
        unknown.contains("line 2, column 'job_type'") && unknown.contains("nearest: a of scale 1 on v100"),
        "{unknown}"
    );
    let epochs = refusal("arrival_s,job_type,iterations,batch_sizes,epochs\n0,a,1,10x3,4\n");
    assert!(epochs.contains("column 'epochs': '4' differs from the sum of batch_sizes; expected 3"), "{epochs}");
    let phases = refusal("arrival_s,job_type,iterations,batch_sizes\n0,a,1,10-3\n");
    assert!(phases.contains("column 'batch_sizes': '10-3' is not accepted; expected epochs by batch size"), "{phases}");
}
