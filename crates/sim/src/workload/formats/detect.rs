//! Detects the public format of a file from its first lines.

use super::Format;
use crate::workload::Input;
use plimsoll_base::error::Result;

/// The number of bytes that are examined.
const LOOKED_AT: usize = 64 * 1024;

/// Returns the public format of an input, or `None` if it has none, such as a canonical trace.
///
/// Errors: [`plimsoll_base::error::Error::Io`].
pub fn detect(input: &Input) -> Result<Option<Format>> {
    Ok(recognise(&input.head(LOOKED_AT)?))
}

fn recognise(text: &[u8]) -> Option<Format> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let mut lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let head = Head { line: lines.next()?, second: lines.next().unwrap_or_default() };
    Format::ALL.iter().copied().find(|format| (format.row().recognises)(&head))
}

/// The first two lines of a file that are not blank.
pub struct Head<'a> {
    line: &'a [u8],
    second: &'a [u8],
}

impl<'a> Head<'a> {
    /// Returns whether the first line begins with `mark`.
    pub(super) fn begins(&self, mark: u8) -> bool {
        self.line.trim_ascii().first() == Some(&mark)
    }

    /// Returns the fields of the first line, without surrounding blanks.
    pub(super) fn fields(&self, separator: u8) -> Vec<&'a [u8]> {
        self.line.split(|&byte| byte == separator).map(<[u8]>::trim_ascii).collect()
    }

    /// Returns the words of the first line.
    pub(super) fn words(&self) -> Vec<&'a [u8]> {
        words(self.line)
    }

    /// Returns the words of the second line.
    pub(super) fn words_of_second(&self) -> Vec<&'a [u8]> {
        words(self.second)
    }
}

fn words(line: &[u8]) -> Vec<&[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
}

/// Returns whether all fields are numbers.
pub(super) fn are_numbers(fields: &[&[u8]]) -> bool {
    fields.iter().all(|field| plimsoll_base::rows::signed(field, 1).is_ok())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, shared};
    use super::*;
    use plimsoll_base::error::Error;

    #[test]
    fn first_lines_tell_the_formats_apart() {
        let swf = "1 0 -1 1451 128 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1";
        for (text, want) in [
            ("\u{feff}; Version: 2.2\n", Some(Format::Swf)),
            (swf, Some(Format::Swf)),
            (&swf.replace(' ', "\t"), Some(Format::Swf)),
            (&format!("{}\n{swf}\n", ["name"; 18].join("\t")), Some(Format::Swf)),
            ("1 0 -1 1451 128 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 4&5&6 -1", Some(Format::Swf)),
            ("\njob0\t49\t49\t1\t2\t3\r\n", Some(Format::Swim)),
            ("job0\t49\t49\t1\t2\t3\tpath\t\t\n", Some(Format::Swim)),
            ("task_create_time, task_end_time, job_id, task_id, n, status, c,m\n", Some(Format::Alibaba2017)),
            ("job_id,task_id,status\n", None),
            ("-6459,6524,3,4,15740,Terminated,50,0.007956928\r\n", Some(Format::Alibaba2017)),
            ("6036,6046,4,7,393,Waiting,,\n", Some(Format::Alibaba2017)),
            ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,creation_time\n", Some(Format::Openb)),
            ("sn,cpu_milli,memory_mib,gpu,model\n", None),
            ("job,user,submit_s,duration_s,tasks,cpu,memory_gib\nj,u,0,1,1,1,1\n", None),
            ("job,user,submit_s,duration_s,tasks,cpu,gpu_milli,name\n", None),
            ("job\tuser\tsubmit_s\tduration_s\tcpu\tgpu\n", None),
            ("PAR1\0\0\u{1}", None),
            ("", None),
            ("\n\n", None),
        ] {
            assert_eq!(detect(&Input::open(file(text).path()).expect("a file")).expect("readable"), want, "{text:?}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(Input::open(folder.path()), Err(Error::Io { .. })));
    }

    #[test]
    fn the_real_files_are_recognised() {
        for (name, want) in [
            ("swim/FB-2009_samples_24_times_1hr_0.tsv", Some(Format::Swim)),
            ("alibaba-2017/batch_task.csv", Some(Format::Alibaba2017)),
            ("swf/NASA-iPSC-1993-3.1-cln.swf", Some(Format::Swf)),
            ("openb-2023/openb_pod_list_default.csv", Some(Format::Openb)),
            ("openb-2023/openb_node_list_all_node.csv", None),
        ] {
            let Some(path) = shared(name) else { return };
            assert_eq!(detect(&Input::open(&path).expect("a file")).expect("readable"), want, "{name}");
        }
    }
}
