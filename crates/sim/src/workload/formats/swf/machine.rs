//! The machine that the header of a log describes, and the rows that exceed it.

use super::{SwfMemoryOf, SwfOptions};
use plimsoll_base::units::{Rounding, decimal};

/// The processors and memory of a kept row.
pub(super) struct Size {
    pub procs: u32,
    /// The memory field times 1024.
    pub memory: Option<u64>,
    /// Whether requested and allocated processors are known and differ.
    pub differs: bool,
}

impl Size {
    /// Returns the memory of the whole job times 1024, in the unit of the field.
    pub fn memory_of_job(&self, memory_of: SwfMemoryOf) -> u128 {
        let field = u128::from(self.memory.unwrap_or(0));
        match memory_of {
            SwfMemoryOf::Processor => field * u128::from(self.procs),
            SwfMemoryOf::Job => field,
        }
    }
}

/// The header values that are used; values that are not positive numbers are ignored.
#[derive(Default)]
pub(super) struct Machine {
    pub unix_start_s: Option<u64>,
    nodes: Option<u64>,
    processors: Option<u64>,
    memory_kib: Option<u64>,
}

impl Machine {
    /// Reads a header comment, without its `;`.
    pub fn comment(&mut self, comment: &[u8]) {
        let Some(colon) = comment.iter().position(|&byte| byte == b':') else { return };
        let (key, value) = (comment[..colon].trim_ascii(), comment[colon + 1..].trim_ascii());
        // The sizes of partitions may follow in parentheses.
        let first = value.split(|byte| byte.is_ascii_whitespace() || *byte == b'(').next().unwrap_or_default();
        let number = decimal(first, 1, Rounding::Down).ok().filter(|&value| value > 0);
        match key {
            b"UnixStartTime" => self.unix_start_s = number,
            b"MaxNodes" => self.nodes = number,
            b"MaxProcs" => self.processors = number,
            b"MaxMemory" => self.memory_kib = number,
            _ => {}
        }
    }

    /// Returns the sizes that the header specifies.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        [("MaxNodes", self.nodes), ("MaxProcs", self.processors), ("MaxMemory", self.memory_kib)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }

    /// Returns warnings about kept rows that exceed the machine. `unit` is the unit of memory, as `Log::memory` returns it.
    pub fn exceeded(&self, sizes: &[Size], options: &SwfOptions, unit: Option<u128>) -> Vec<String> {
        let mut warnings = Vec::new();
        let nodes = || self.nodes.map(|nodes| ("MaxNodes", nodes));
        if let Some((name, most)) = self.processors.map(|most| ("MaxProcs", most)).or_else(nodes) {
            let rows = sizes.iter().filter(|size| u64::from(size.procs) > most).count();
            if rows > 0 {
                warnings.push(format!(
                    "kept rows with more processors than the header's {name} {most}: {rows}; swf.processors selects \
                     requested or allocated ones"
                ));
            }
        }
        if let (Some(most), Some(unit)) = (self.memory_kib, unit) {
            // The stored value is in bytes if the field is in kilobytes, and in 1024ths of a byte if the field is in bytes.
            let rows = |memory_of| {
                sizes.iter().filter(|size| size.memory_of_job(memory_of) > u128::from(most) * 1024 * unit).count()
            };
            let (read, other, reading) = match options.memory_of {
                SwfMemoryOf::Processor => (SwfMemoryOf::Processor, SwfMemoryOf::Job, "job"),
                SwfMemoryOf::Job => (SwfMemoryOf::Job, SwfMemoryOf::Processor, "processor"),
            };
            if rows(read) > 0 {
                warnings.push(format!(
                    "kept rows of jobs with more memory than the header's MaxMemory {most}: {}; with \
                     swf.memory_of={reading}: {}",
                    rows(read),
                    rows(other)
                ));
            }
        }
        warnings
    }
}
