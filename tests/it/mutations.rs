//! Damaged and made-up text files, to every reader: each is read, or refused with an error that names the file and is short, and
//! none ends the program. `PLIMSOLL_MUTATIONS=100000` reads so many (Parquet, records and bundles have tests of their own).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use plimsoll::cluster::file as machines;
use plimsoll::error::Result;
use plimsoll::experiment::Study;
use plimsoll::experiment::machines::{machine_events, machines_from};
use plimsoll::fluid::read as instance;
use plimsoll::policy::Registry;
use plimsoll::units::Dim;
use plimsoll::workload::formats::{Format, FormatOptions, read_input};
use plimsoll::workload::synthetic::random::stream;
use plimsoll::workload::{CsvTrace, Input, Source};
use rand::{Rng, RngExt};

/// How many mutated files are read by all readers together, unless more are asked for.
const MUTATIONS: usize = 6000;

/// Values that readers stumble over.
const WORDS: &[&str] = &[
    "",
    " ",
    "-1",
    "0",
    "-0",
    "0.1",
    "1e9",
    "1e308",
    "-1e-308",
    "NaN",
    "inf",
    "-inf",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "-1359980917",
    "999999999999",
    "0x10",
    "1_000",
    "1,5",
    "٣",
    "\"",
    "\"\"",
    "'",
    "\\",
    "\u{0}",
    "\u{1b}[31m",
    "\u{fffe}",
    "\u{202e}",
    "é",
    "true",
    "null",
    "[]",
    "{}",
    "[[",
    "]]",
    "=",
    "#",
    ";",
    "\t",
    "\r",
    "\n",
    "\u{feff}",
    "..",
    "/dev/zero",
    "../../etc/passwd",
    "*",
    "%",
    "1h",
    "-1h",
    "1x1c1g",
    "999999999999x8c32g",
    "drf",
    "slot:0",
    "quota:@x",
    "until 0 %",
    "map",
    "%s",
];

/// A file whose lines, words and bytes were moved, doubled, lost and replaced.
fn mutated(text: &str, random: &mut impl Rng) -> Vec<u8> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..lines.len().max(1));
        let Some(line) = lines.get(at).cloned() else { continue };
        let word = WORDS[random.random_range(0..WORDS.len())];
        match random.random_range(0..9) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, line),
            2 => lines.swap(at, 0),
            3 => lines.insert(at, word.repeat(random.random_range(1..200))),
            // A value between two separators becomes another one.
            4..=6 => {
                let is_end = |c: char| ",\t =[]{}\"|:;".contains(c);
                let starts: Vec<usize> =
                    std::iter::once(0).chain(line.match_indices(is_end).map(|(at, c)| at + c.len())).collect();
                let start = starts[random.random_range(0..starts.len())];
                let end = line[start..].find(is_end).map_or(line.len(), |end| start + end);
                lines[at] = format!("{}{word}{}", &line[..start], &line[end..]);
            }
            7 => {
                let cut = (0..=line.len()).filter(|&at| line.is_char_boundary(at)).collect::<Vec<_>>();
                lines[at] = line[..cut[random.random_range(0..cut.len())]].to_owned();
            }
            _ => lines[at] = format!("{line}{word}{line}"),
        }
        if lines.is_empty() {
            break;
        }
    }
    let mut bytes = lines.join(if random.random_ratio(1, 10) { "\r\n" } else { "\n" }).into_bytes();
    if random.random_ratio(1, 3) && !bytes.is_empty() {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..3) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes.truncate(at),
            _ => bytes.insert(at, random.random_range(0..=255)),
        }
    }
    bytes
}

/// A reader, and files that it reads.
struct Reader {
    name: &'static str,
    files: Vec<PathBuf>,
    texts: Vec<String>,
    read: fn(&Path) -> Result<()>,
}

fn drained(mut source: impl Source) -> Result<()> {
    while source.take()?.is_some() {}
    Ok(())
}

fn public(path: &Path, format: Format) -> Result<()> {
    read_input(&in_memory(path), format, &FormatOptions::default()).map(drop)
}

/// A file that is not pinned to its times, which are those of now.
fn in_memory(path: &Path) -> Input {
    Input::Bytes(path.to_owned(), std::fs::read(path).expect("a file").into())
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn all(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(here(folder)).expect(folder).map(|entry| entry.expect(folder).path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == ending));
    files.sort();
    files
}

fn readers() -> Vec<Reader> {
    let of = |name, files, texts: &[&str], read| Reader {
        name,
        files,
        texts: texts.iter().map(|&text| text.to_owned()).collect(),
        read,
    };
    vec![
        of(
            "trace.csv",
            all("traces/paper", "csv"),
            &["job,user,submit_s,duration_s,tasks,cpu,memory_gib,stage,after,priority,gang,label,location,stable\n\
             a,ann,0,10,3,1,2,map,,0,true,ssd,rack-1,false\na,ann,0,10,1,0.5,2,reduce,map,9,,ssd|hdd,,\nb,\"bob, jr\",1.5,1e1,2,1,1,,,,,,,true\n"],
            |path| drained(CsvTrace::new(&in_memory(path))?),
        ),
        of(
            "swf.txt",
            vec![],
            &[
                "; MaxProcs: 64\n; UnixStartTime: 0\n1 0 5 100 4 -1 1024 4 120 2048 1 3 1 -1 1 -1 -1 -1\n2 10 -1 50 1 -1 -1 1 60 -1 0 4 1 -1 1 -1 -1 -1\n\
             3 20 0 7 2 -1 -1 2 60 -1 1 3 1 -1 1 -1 -1 -1\n",
            ],
            |path| public(path, Format::Swf),
        ),
        of(
            "swim.tsv",
            vec![],
            &[
                "job0\t49\t49\t67108865\t1073741825\t627471\njob1\t101.5\t52\t736346\t0\t432269\njob2\t102\t1\t0\t5\t0\n",
            ],
            |path| public(path, Format::Swim),
        ),
        of(
            "batch_task.csv",
            vec![],
            &["task_create_time,task_end_time,job_id,task_id,number_of_instances,status,\
             number_of_cpus_requested_per_instance_in_the_task,normalized_memory_requested_per_instance_in_the_task\n\
             10,20,1,1,3,Terminated,100,0.02\n11,25,1,2,1,Terminated,50,0.1\n12,13,2,3,1,Waiting,,\n13,33,2,4,7,Terminated,400,0.5\n"],
            |path| public(path, Format::Alibaba2017),
        ),
        of(
            "pods.csv",
            vec![],
            &[
                "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
             p1,1000,2048,1,500,,LS,Running,10,60,11\np2,500,100,0,0,,BE,Succeeded,12,50,12\np3,8000,1,2,1000,V100,LS,Running,50,,60\n",
            ],
            |path| public(path, Format::Openb),
        ),
        of(
            "machines.csv",
            vec![here("traces/quota/label-machines.csv")],
            &["name,count,cpu,memory_gib,gpu,labels,rack,room\nplain,8,16,64,0,,r1,a\nfast,4,16.5,64,4,ssd;new,r2,a\n"],
            |path| machines::read(path).map(drop),
        ),
        of(
            "events.csv",
            vec![here("traces/quota/label-events.csv")],
            &[
                "at_s,machine,event,labels\n1,plain-1,fail,\n2.5,plain-1,join,\n7,plain-4,relabel,ssd\n9,fast-0,leave,\n",
            ],
            |path| {
                let cluster = machines_from(
                    "machines",
                    &here("traces/quota/label-machines.csv").display().to_string(),
                    Path::new(""),
                )?;
                machine_events("events", Some(path), "first-fit".parse().expect("a rule"), &cluster).map(drop)
            },
        ),
        of(
            "weights.csv",
            vec![],
            &["user,weight\nann,2\nbob,0.5\n", "user,cpu,memory\nann,1,2\nbob,3,0.25\n"],
            |path| {
                let dims = [Dim::parse("cpu").0, Dim::parse("memory_gib").0];
                plimsoll::books::Weights::read(&plimsoll::pinned::Pinned::new(path)?, &dims).map(drop)
            },
        ),
        of("quota.toml", all("experiments/quota", "toml"), &[], |path| {
            Registry::default().policy_in(&format!("quota:{}", path.display()), Path::new("")).map(drop)
        }),
        of("instance.toml", all("traces/instances", "toml"), &[], |path| instance::open(path).map(drop)),
        of("plan.toml", [all("experiments", "toml"), all("experiments/paper", "toml")].concat(), &[], |path| {
            Study::read(path, &[], &Registry::default()).map(drop)
        }),
    ]
}

#[test]
fn no_text_ends_a_reader() {
    let asked = std::env::var("PLIMSOLL_MUTATIONS").ok().and_then(|many| many.parse().ok()).unwrap_or(MUTATIONS);
    let dir = tempfile::tempdir().expect("a temporary folder");
    let readers = readers();
    for reader in &readers {
        let texts = reader.files.iter().map(|file| std::fs::read_to_string(file).expect("a file of the repository"));
        let texts: Vec<String> = texts.chain(reader.texts.iter().cloned()).collect();
        let mut random = stream(1, reader.name);
        let path = dir.path().join(reader.name);
        // Fresh files are waited for.
        let many = if reader.name == "weights.csv" { asked / 200 } else { asked / readers.len() };
        let (mut sound, mut refused) = (0, 0);
        for round in 0..many {
            let bytes = mutated(&texts[random.random_range(0..texts.len())], &mut random);
            std::fs::write(&path, &bytes).expect("a temporary file is writable");
            let shown = || format!("{}, round {round}:\n{}", reader.name, String::from_utf8_lossy(&bytes));
            match catch_unwind(AssertUnwindSafe(|| (reader.read)(&path)))
                .unwrap_or_else(|_| panic!("a panic on {}", shown()))
            {
                Ok(()) => sound += 1,
                Err(error) => {
                    refused += 1;
                    let message = error.to_string();
                    assert!(
                        !message.is_empty() && message.len() < 20_000,
                        "{} bytes of message: {}",
                        message.len(),
                        shown()
                    );
                }
            }
        }
        assert!(
            sound > 0 && refused > 0,
            "{}: {sound} sound, {refused} refused: the mutations test something",
            reader.name
        );
    }
}
