//! Messages for files in no known format: a description of the file, and the accepted columns and formats.
//!
//! At most the first 64 KiB of a file are examined. Compressed files, UTF-16 text, common binary formats, JSON, XML and tables with other
//! separators are recognised; for columns of other traces, the message suggests the canonical names. Of a canonical trace in CSV, only the
//! first line is checked.

use std::path::Path;

use super::formats::Format;
use super::{Columns, Input, shorten};
use plimsoll_base::error::{Error, Result};

/// The number of bytes of a file that are examined.
const EXAMINED: usize = 64 * 1024;

/// The maximum number of names in a list of a message.
const NAMES: usize = 8;

/// First bytes of compressed files, the kind, and the program that decompresses them to standard output.
const COMPRESSED: [(&[u8], &str, &str); 7] = [
    (b"\x1f\x8b", "gzip", "zcat"),
    (b"\x1f\x9d", "compress", "zcat"),
    (b"\x28\xb5\x2f\xfd", "Zstandard", "zstdcat"),
    (b"\xfd7zXZ\0", "xz", "xzcat"),
    (b"BZh", "bzip2", "bzcat"),
    (b"\x04\x22\x4d\x18", "LZ4", "lz4cat"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// First bytes of other files that are not text.
const BINARY: [(&[u8], &str); 6] = [
    (b"\x89PNG", "a PNG picture"),
    (b"%PDF", "a PDF document"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x89HDF", "an HDF5 file"),
    (b"ARROW1", "an Arrow file"),
    (b"Obj\x01", "an Avro file"),
];

/// The canonical columns and the columns of other traces with the same content.
const SYNONYMS: [(&str, &[&str]); 8] = [
    ("job", &["job_id", "jobid", "job_name", "jobname", "id", "job_number", "collection_id", "workflow_id"]),
    (
        "user",
        &["user_id", "userid", "username", "user_name", "tenant", "tenant_id", "owner", "account", "subscriptionid"],
    ),
    (
        "submit_s",
        &[
            "submit",
            "submit_time",
            "submitted_time",
            "submitted",
            "submit_ts",
            "ts_submit",
            "start_time",
            "arrival",
            "arrival_time",
            "creation_time",
            "task_create_time",
            "timestamp",
        ],
    ),
    ("duration_s", &["duration", "runtime", "run_time", "elapsed", "elapsedraw", "service_time"]),
    ("tasks", &["task_count", "num_tasks", "instance_num", "inst_num", "instances"]),
    ("cpu", &["cpus", "cores", "num_cpus", "cpu_num", "plan_cpu", "cpu_count", "ncpus"]),
    (
        "memory_gib",
        &["memory_gb", "mem_gb", "mem_gib", "mem", "plan_mem", "ram", "ram_gb", "memory_g", "memory_mb", "mem_mb"],
    ),
    ("gpu", &["gpus", "num_gpus", "gpu_num", "plan_gpu", "gpu_count", "ngpus"]),
];

/// Returns the canonical name for a column of another trace.
pub(super) fn synonym(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let found = SYNONYMS.iter().find(|(_, others)| others.contains(&lower.as_str())).map(|(canonical, _)| *canonical);
    match lower.as_str() {
        "memory_mb" | "mem_mb" => Some("memory_mib"),
        _ => found,
    }
}

/// Returns the columns that could be renamed to canonical ones as text: ` (rename job_id to job, tenant to user)`, or nothing.
pub(super) fn renames<'a>(names: impl IntoIterator<Item = &'a str>, taken: &[&str]) -> String {
    let mut done: Vec<&str> = taken.to_vec();
    let mut texts = Vec::new();
    for name in names {
        if let Some(canonical) = synonym(name).filter(|canonical| !done.contains(canonical)) {
            done.push(canonical);
            texts.push(format!("{name} to {canonical}"));
        }
    }
    if texts.is_empty() { String::new() } else { format!(" (rename {})", texts.join(", ")) }
}

/// Returns a list of at most eight names as text.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| shorten(name.as_bytes())).collect();
    let more = names.len().saturating_sub(NAMES);
    let text = names[..names.len() - more].join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// Returns the advice for a log in another format: the commands that import it.
pub fn guess_command(path: &Path) -> String {
    let name = path.display().to_string();
    let name = if name == "standard input" { "-".to_owned() } else { name };
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+=:@%,".contains(&byte));
    let name = if plain { name } else { format!("'{}'", name.replace('\'', "'\\''")) };
    format!("other logs are imported with a mapping, and `plimsoll trace guess {name}` writes a first one")
}

/// Returns the error for a file with the description `looks`.
pub(super) fn error(path: &Path, looks: &str) -> Error {
    let problem = format!(
        "is in no known format: {looks}; expected a canonical trace (CSV with commas or Parquet, with the columns job, \
         user, submit_s, duration_s and resources such as cpu and memory_gib) or a file in one of the formats {}, which \
         --from names; {}",
        Format::names(),
        guess_command(path)
    );
    Error::trace(path, 0, "", problem)
}

/// Rejects an input that is not UTF-8 text: compressed data, UTF-16, pictures and databases.
pub(super) fn require_text(input: &Input) -> Result<()> {
    match encoding(&input.head(16)?) {
        None => Ok(()),
        Some(looks) => Err(error(input.path(), &looks)),
    }
}

/// Rejects an input that cannot be a canonical trace in CSV: its first line has none of the columns job, user, submit and duration.
///
/// Errors: [`Error::Trace`] with a description of the file, [`Error::Io`].
pub fn require_canonical(input: &Input) -> Result<()> {
    let head = input.head(EXAMINED)?;
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    let lines = Lines::new(text);
    let Some(first) = lines.rows.first() else {
        return encoding(&head).map_or(Ok(()), |looks| Err(error(input.path(), &looks)));
    };
    if encoding(&head).is_none() && fields(first, b',').iter().any(|name| Columns::is_required(name)) {
        return Ok(());
    }
    Err(error(input.path(), &encoding(&head).unwrap_or_else(|| lines.looks())))
}

/// Describes bytes that are not UTF-8 text at the beginning of a file, as the end of a sentence. Returns `None` for text.
pub fn describe_encoding(head: &[u8]) -> Option<String> {
    // No encoding of text has these control characters.
    let is_binary = || head.iter().take(1000).any(|byte| *byte < b'\t');
    let looks = encoding(head).or_else(|| is_binary().then(|| "it holds binary data".to_owned()));
    looks.map(|looks| format!("cannot be read: {looks}"))
}

/// Describes the encoding of bytes that are not UTF-8 text, and how to convert them to text. Returns `None` for text.
fn encoding(head: &[u8]) -> Option<String> {
    if let Some((_, kind, program)) = COMPRESSED.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Some(format!(
            "it is compressed ({kind}); decompress it, for example to standard input, which - names: `{program} FILE | \
             plimsoll trace validate -`"
        ));
    }
    if let Some((_, kind)) = BINARY.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(format!("it is {kind}"));
    }
    let odd_zeros = head.len() >= 8 && head[..8].chunks(2).all(|pair| (pair[0] == 0) != (pair[1] == 0));
    (head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") || odd_zeros)
        .then(|| "it is UTF-16 text; convert it first: `iconv -f UTF-16 -t UTF-8 FILE`".to_owned())
}

/// Returns the fields of a line as text, without blanks and quotes.
fn fields(line: &[u8], separator: u8) -> Vec<String> {
    let text = |field: &[u8]| String::from_utf8_lossy(field).trim().trim_matches('"').to_owned();
    line.split(|&byte| byte == separator).map(text).collect()
}

/// The first lines of a file that are not blank.
struct Lines<'a> {
    rows: Vec<&'a [u8]>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a [u8]) -> Lines<'a> {
        let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        Lines { rows: lines.filter(|line| !line.is_empty()).take(50).collect() }
    }

    /// Returns a description of the file.
    fn looks(&self) -> String {
        let first = self.rows[0];
        match first[0] {
            b'{' | b'[' => return "it looks like JSON".to_owned(),
            b'<' => return "it looks like XML or HTML".to_owned(),
            b'#' => return self.commented(),
            _ => {}
        }
        if first.contains(&0)
            || std::str::from_utf8(&first[..first.len().min(100)]).is_err_and(|e| e.error_len().is_some())
        {
            return "it holds binary data".to_owned();
        }
        delimited(first)
    }

    /// Returns a description of a file that begins with comments.
    fn commented(&self) -> String {
        let row = self.rows.iter().find(|line| line[0] != b'#');
        let rest = row.map_or_else(|| "no rows follow".to_owned(), |row| delimited(row));
        format!("it begins with comments marked '#', as the Grid Workload Format does; after them {rest}")
    }
}

/// Returns a description of a line: its separator, the number of its fields, and its names if it is a header.
fn delimited(line: &[u8]) -> String {
    let separators = [(b',', "commas"), (b';', "semicolons"), (b'|', "pipes"), (b'\t', "tabs")];
    let count = |separator: u8| line.iter().filter(|&&byte| byte == separator).count();
    let most = separators.iter().rev().max_by_key(|(separator, _)| count(*separator)).filter(|(s, _)| count(*s) > 0);
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
    let (fields, by) = match most {
        Some((separator, by)) => (fields(line, *separator), *by),
        None => {
            let text = String::from_utf8_lossy(line);
            (text.split_ascii_whitespace().map(str::to_owned).collect(), "blanks")
        }
    };
    let is_number = |field: &String| field.parse::<f64>().is_ok();
    let size = format!("{} field{} separated by {by}", fields.len(), if fields.len() == 1 { "" } else { "s" });
    if fields.iter().any(is_number) {
        let swf = if words >= 18 && by != "commas" { " (as in the Standard Workload Format: --from swf)" } else { "" };
        return format!("its first line has {size} and no header{swf}");
    }
    if fields.len() == 1 {
        return format!("its first line is '{}'", shorten(line));
    }
    let names = || fields.iter().map(String::as_str);
    let renamed = renames(names(), &[]);
    let commas = if by == "commas" { "" } else { "; a trace has commas, and points in decimals" };
    format!("its first line has {size}: {}{renamed}{commas}", listed(names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the message for a file with these bytes, or `None` if it may be a canonical trace.
    fn message(bytes: &[u8]) -> Option<String> {
        let input = Input::Bytes("FILE".into(), bytes.to_vec().into());
        require_canonical(&input).err().map(|error| error.to_string())
    }

    #[test]
    fn files_in_no_known_format_are_described() {
        for (bytes, want) in [
            (&b"{\"jobs\":[{\"id\":0}]}\n"[..], "it looks like JSON;"),
            (b"[\n{\"status\": 1}]", "it looks like JSON;"),
            (b"\x1f\x8b\x08\0\0x", "it is compressed (gzip); decompress it"),
            (b"\x28\xb5\x2f\xfd\x01", "`zstdcat FILE | plimsoll trace validate -`"),
            (b"PK\x03\x04abc", "compressed (zip)"),
            (b"\xff\xfej\0o\0b\0", "it is UTF-16 text; convert it first: `iconv"),
            (b"j\0o\0b\0,\0u\0", "it is UTF-16 text"),
            (b"\x89PNG\r\n\x1a\n", "it is a PNG picture"),
            (b"ab\0\x01\x02", "it holds binary data"),
            (b"<html>", "XML or HTML"),
            (
                b"M1,2,j_10,1,Terminated,100,160,100,0.5\n",
                "its first line has 9 fields separated by commas and no header",
            ),
            (b"1\t2\t3\tx\n", "4 fields separated by tabs and no header"),
            (b"JobID|User|Submit\n1|a|2\n", "3 fields separated by pipes: JobID, User, Submit (rename JobID to job"),
            (b"# a\n# b\n0 1 2 3\n", "as the Grid Workload Format does; after them its first line has 4 fields"),
            (b"a\n", "its first line is 'a'"),
            (
                b"job;user;submit_s;duration_s;cpu\n",
                "5 fields separated by semicolons: job, user, submit_s, duration_s, cpu; a trace has commas",
            ),
            (
                b"job_id,tenant,submit_time,run_time,a,b,c,d,e,f\n",
                "job_id, tenant, submit_time, run_time, a, b, c, d and 2 more (rename job_id to job, tenant to user, submit_time to submit_s, run_time to duration_s)",
            ),
        ] {
            let message = message(bytes).expect("refused");
            assert!(message.starts_with("FILE: is in no known format: ") && message.contains(want), "{message}");
            assert!(message.contains("formats swim, alibaba-2017, swf or openb") && !message.contains("--resource"));
        }
        for bytes in [&b""[..], b"\n\n", b"job\n", b"\xef\xbb\xbfuser,x\n", b"a,\"submit_ms\"\n"] {
            assert_eq!(message(bytes), None);
        }
    }
}
