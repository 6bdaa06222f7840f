//! Inputs for readers, created by `arbitrary` from random bytes: files with lines, values and bytes that are removed, duplicated, swapped
//! or replaced.

use std::collections::HashSet;

use arbitrary::{Result as Drawn, Unstructured};

/// Values that are difficult for readers.
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

/// The sources of generated inputs.
pub struct Pool {
    /// The files, followed by the inputs with new kinds of answers.
    pub texts: Vec<Vec<u8>>,
    files: usize,
    /// The lines and the values of all texts.
    lines: Vec<String>,
    values: Vec<String>,
}

fn is_end(c: char) -> bool {
    ",\t =[]{}\"|:;".contains(c)
}

impl Pool {
    pub fn new(texts: Vec<Vec<u8>>) -> Pool {
        let all: Vec<String> = texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        let lines: HashSet<&str> = all.iter().flat_map(|text| text.lines()).collect();
        let values: HashSet<&str> = lines.iter().flat_map(|line| line.split(is_end)).collect();
        let sorted = |set: HashSet<&str>| {
            let mut all: Vec<String> = set.into_iter().map(str::to_owned).collect();
            all.sort();
            all
        };
        Pool { lines: sorted(lines), values: sorted(values), files: texts.len(), texts }
    }

    fn value<'a>(&'a self, u: &mut Unstructured) -> Drawn<&'a str> {
        if u.ratio(1, 2)? { Ok(*u.choose(WORDS)?) } else { Ok(u.choose(&self.values)?) }
    }

    /// Chooses one of the files in half of the cases, and otherwise any text: most texts that were added later are refused early.
    fn base<'a>(&'a self, u: &mut Unstructured) -> Drawn<&'a Vec<u8>> {
        let among = if u.arbitrary()? { self.files } else { self.texts.len() };
        u.choose(&self.texts[..among])
    }

    /// Returns a text with changed lines and values. One of eight texts consists of random lines of all texts.
    pub fn text(&self, u: &mut Unstructured) -> Drawn<Vec<u8>> {
        let base = String::from_utf8_lossy(self.base(u)?);
        let mut lines: Vec<String> = base.lines().map(str::to_owned).collect();
        if u.ratio(1, 8)? {
            let head = usize::from(u.ratio(3, 4)?);
            lines.truncate(head);
            for _ in 0..u.int_in_range(0..=12)? {
                lines.push(u.choose(&self.lines)?.clone());
            }
        }
        for _ in 0..u.int_in_range(1..=4)? {
            self.edit(u, &mut lines)?;
        }
        let mut bytes = lines.join(if u.ratio(1, 10)? { "\r\n" } else { "\n" }).into_bytes();
        if u.ratio(1, 5)? {
            damage(u, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn edit(&self, u: &mut Unstructured, lines: &mut Vec<String>) -> Drawn<()> {
        if lines.is_empty() {
            lines.push(self.value(u)?.to_owned());
        }
        let at = u.choose_index(lines.len())?;
        let line = lines[at].clone();
        match u.int_in_range(0..=9)? {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, line),
            2 => lines.swap(at, 0),
            3 => lines.insert(at, self.value(u)?.repeat(u.int_in_range(1..=200)?)),
            4 => lines.insert(at, u.choose(&self.lines)?.clone()),
            5 => {
                let ends: Vec<usize> = (0..=line.len()).filter(|&end| line.is_char_boundary(end)).collect();
                lines[at].truncate(*u.choose(&ends)?);
            }
            6 => lines[at] = format!("{line}{}{line}", self.value(u)?),
            // A value between two separators is replaced by another value.
            _ => {
                let starts: Vec<usize> =
                    std::iter::once(0).chain(line.match_indices(is_end).map(|(at, c)| at + c.len())).collect();
                let start = *u.choose(&starts)?;
                let end = line[start..].find(is_end).map_or(line.len(), |end| start + end);
                lines[at] = format!("{}{}{}", &line[..start], self.value(u)?, &line[end..]);
            }
        }
        Ok(())
    }

    /// Returns a file with changed bytes.
    pub fn bytes(&self, u: &mut Unstructured) -> Drawn<Vec<u8>> {
        let mut bytes = self.base(u)?.clone();
        for _ in 0..u.int_in_range(1..=4)? {
            damage(u, &mut bytes)?;
        }
        Ok(bytes)
    }
}

/// Changes, moves, adds or removes some bytes.
fn damage(u: &mut Unstructured, bytes: &mut Vec<u8>) -> Drawn<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    // Half of the changes are near the end of the file, where formats store their essential data.
    let mut at = u.choose_index(bytes.len())?;
    if u.ratio(1, 2)? {
        at = bytes.len() - 1 - at.min(bytes.len() - 1) % bytes.len().min(1000);
    }
    let end = at + u.int_in_range(0..=64)?.min(bytes.len() - at);
    match u.int_in_range(0..=6)? {
        0 => bytes[at] ^= 1 << u.int_in_range(0..=7)?,
        1 => bytes[at] = u.arbitrary()?,
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let piece = bytes[at..end].to_vec();
            let to = u.choose_index(bytes.len())?;
            bytes.splice(to..to, piece);
        }
        5 => bytes.insert(at, u.arbitrary()?),
        // A number of four or eight bytes becomes a number at the edge of its range.
        _ => {
            let width = if u.arbitrary()? { 4 } else { 8 };
            let number: u64 = *u.choose(&[0, 1, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX])?;
            let end = (at + width).min(bytes.len());
            bytes[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
        }
    }
    Ok(())
}
