//! Damaged logs and damaged mappings: each is an error or a workload with counts that add up, never a panic.

use std::path::Path;
use std::sync::Arc;

use plimsoll_base::tree::Place;
use plimsoll_sim::workload::Input;
use plimsoll_trace_import::{ImportOptions, Mapping, SHIPPED, Shipped, guess, import};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The mapping and the files of each sample.
const SAMPLES: [(&str, &str, &[&str]); 13] = [
    ("philly", "philly", &["cluster_job_log.json"]),
    ("alibaba-2018", "alibaba-2018", &["batch_task.csv"]),
    ("alibaba-2018-instances", "alibaba-2018", &["batch_instance.csv", "batch_task.csv"]),
    ("pai-2020", "pai-2020", &["pai_task_table.csv", "pai_job_table.csv"]),
    ("spot-2026", "spot-2026", &["job_info_df.csv", "node_info_df.csv"]),
    ("google-2011", "google-2011", &["task_events.csv"]),
    ("slurm", "slurm", &["sacct.txt"]),
    ("batsim", "batsim", &["workload.json"]),
    ("kubernetes", "kubernetes", &["pods.json"]),
    ("gavel", "gavel", &["seven-columns.trace", "throughputs.csv"]),
    ("shockwave", "gavel", &["twelve-columns.trace"]),
    ("swf-dag", ".", &["swf/dag-with-names.swf"]),
    ("wta", "wta", &["tasks/schema-1.0/part.0.parquet", "tasks/schema-1.0/part.1.parquet"]),
];

/// Bytes that have a meaning in one of the formats.
const BYTES: &[u8] = b"\0\n\t ,;|\"'-.e09:{}[]_=\\\xff\xc3";

/// Damages one to three bytes: replaces, removes or repeats them, or cuts the end.
fn damage(bytes: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..=3) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..10) {
            0 => bytes.truncate(at),
            1 | 2 => {
                bytes.remove(at);
            }
            3 => bytes.insert(at, bytes[at]),
            _ => bytes[at] = BYTES[random.random_range(0..BYTES.len())],
        }
    }
    bytes
}

fn check(mapping: &Mapping, inputs: &[Input], strict: bool) -> bool {
    let Ok(workload) = import(mapping, inputs, ImportOptions { strict, tenants: None }) else { return false };
    let dropped: u64 = workload.quality.dropped.values().sum();
    let (kept, sets) = (workload.quality.rows_in - dropped, workload.sets.len() as u64);
    assert!(if mapping.merges_rows() { kept >= sets } else { kept == sets }, "{:?}", workload.quality);
    assert!(workload.sets.windows(2).all(|pair| pair[0].submit <= pair[1].submit));
    true
}

#[test]
fn a_damaged_log_is_an_error_or_adds_up() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut random = ChaCha8Rng::seed_from_u64(44);
    for (name, sample, files) in SAMPLES {
        let mapping = Shipped::find(name).and_then(|shipped| shipped.mapping().ok()).expect(name);
        let read = |file: &&str| std::fs::read(folder.join(sample).join(file)).expect("a sample");
        let whole: Vec<Vec<u8>> = files.iter().map(read).collect();
        let mut imported = 0;
        for round in 0..250 {
            let damaged = random.random_range(0..whole.len());
            let input = |(at, bytes): (usize, &Vec<u8>)| {
                let bytes: Arc<[u8]> =
                    if at == damaged { damage(bytes, &mut random).into() } else { bytes.clone().into() };
                Input::Bytes(files[at].into(), bytes)
            };
            let inputs: Vec<Input> = whole.iter().enumerate().map(input).collect();
            imported += u32::from(check(&mapping, &inputs, round % 5 == 0));
            if round % 10 == 0 {
                let _ = guess(&inputs[damaged..=damaged]);
            }
        }
        assert!(imported > 0, "{name}: some damaged logs can be imported");
    }
}

#[test]
fn a_damaged_mapping_is_an_error_or_a_mapping() {
    let mut random = ChaCha8Rng::seed_from_u64(45);
    let log = Input::Bytes(
        "log.csv".into(),
        b"timestamp,duration,num_gpus,gpu_time,cluster\n1,66.0,1,66.0,a\n".to_vec().into(),
    );
    for shipped in SHIPPED {
        for _ in 0..200 {
            let text = String::from_utf8_lossy(&damage(shipped.text.as_bytes(), &mut random)).into_owned();
            if let Ok(mapping) = Mapping::parse("damaged", &Place::whole_text("damaged", text)) {
                let _ = import(&mapping, std::slice::from_ref(&log), ImportOptions::default());
            }
        }
    }
}
