//! The catalogue at the end of a zip file, entry by entry as it stands there (APPNOTE 6.3.10, 4.3.12 to 4.3.16): a reader by
//! name sees one entry of those that share it, and each reader may see another one.

use std::io::{Read, Seek, SeekFrom};

use super::CATALOGUE_MOST;

/// An entry as the catalogue has it.
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The upper half of its attributes: on Unix what kind of file it is, and who may read it.
    mode: u32,
    /// A name that only some readers heed (the Unicode path of Info-ZIP).
    is_named_twice: bool,
}

/// The bits of a mode that tell kinds of files apart, those of a folder, and those of a plain file.
const KINDS: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const PLAIN: u32 = 0o100_000;

/// The length of the end of a catalogue, of what points to the long one, and of the fixed parts of that and of an entry.
const END: u64 = 22;
const POINTER: u64 = 20;
const LONG_END: usize = 56;
const ENTRY: usize = 46;

impl Entry {
    /// Checks that it is a plain file or a folder under one name. Errors: what it is instead.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.mode & KINDS {
            _ if self.is_named_twice => Err("it has a second name, by which some programs unpack it"),
            0o120_000 => Err("it is a link"),
            0 | PLAIN => Ok(()),
            FOLDER if self.name.ends_with('/') => Ok(()),
            _ => Err("it is no plain file"),
        }
    }
}

/// Reads the catalogue. Errors: in words.
pub fn read(file: &mut (impl Read + Seek)) -> Result<Vec<Entry>, String> {
    let (entries, size, start) = end(file)?;
    if size > CATALOGUE_MOST {
        return Err(format!("its catalogue has {size} bytes, more than 128 MiB"));
    }
    let bytes = bytes(file, SeekFrom::Start(start), size as usize)?;
    let (mut found, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let (entry, length) = entry(rest).ok_or("its catalogue is damaged")??;
        found.push(entry);
        rest = &rest[length..];
    }
    match found.len() as u64 == entries {
        true => Ok(found),
        false => Err(format!("its catalogue has {} entries and says {entries}", found.len())),
    }
}

/// How many entries the catalogue has, its length, and where it begins. It ends the file, without a comment.
fn end(file: &mut (impl Read + Seek)) -> Result<(u64, u64, u64), String> {
    let long = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let at = long.checked_sub(END).ok_or("it is too short")?;
    let end = bytes(file, SeekFrom::Start(at), END as usize)?;
    if !end.starts_with(b"PK\x05\x06") || number(&end, 20, 2) != Some(0) {
        return Err("it does not end with a catalogue".to_owned());
    }
    let field = |at: usize, length: usize| number(&end, at, length).unwrap_or_default();
    let short = (field(10, 2), field(12, 4), field(16, 4));
    // Nothing stands between the parts, where some programs would look for another catalogue.
    let adjoins = |(entries, size, start): (u64, u64, u64), at: u64| match start.checked_add(size) == Some(at) {
        true => Ok((entries, size, start)),
        false => Err("its catalogue is not where it says".to_owned()),
    };
    if short.0 != 0xFFFF && short.1 != 0xFFFF_FFFF && short.2 != 0xFFFF_FFFF {
        return adjoins(short, at);
    }
    let pointer = at.checked_sub(POINTER).ok_or("its catalogue is damaged")?;
    let long = bytes(file, SeekFrom::Start(pointer), POINTER as usize)?;
    if !long.starts_with(b"PK\x06\x07") {
        return adjoins(short, at);
    }
    let at = number(&long, 8, 8).unwrap_or_default();
    let end = bytes(file, SeekFrom::Start(at), LONG_END)?;
    let field = |at: usize| number(&end, at, 8).filter(|_| end.starts_with(b"PK\x06\x06"));
    let found = || Some((field(32)?, field(40)?, field(48)?));
    adjoins(found().ok_or("its catalogue is damaged")?, at)
}

fn bytes(file: &mut (impl Read + Seek), at: SeekFrom, many: usize) -> Result<Vec<u8>, String> {
    file.seek(at).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(many as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() == many { Ok(bytes) } else { Err("it is cut short".to_owned()) }
}

/// A number in little-endian order; `None` behind the end.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The first entry of these bytes, and its length. `None`: damaged; errors: in words.
fn entry(bytes: &[u8]) -> Option<Result<(Entry, usize), String>> {
    let field = |at: usize, length: usize| number(bytes, at, length);
    let lengths = [field(28, 2)?, field(30, 2)?, field(32, 2)?].map(|length| length as usize);
    let (name, extra) = (ENTRY..ENTRY + lengths[0], ENTRY + lengths[0]..ENTRY + lengths[0] + lengths[1]);
    let (flags, mode, length) = (field(8, 2)?, (field(38, 4)? >> 16) as u32, extra.end + lengths[2]);
    let (name, extra) = (bytes.get(name)?, bytes.get(extra)?);
    if !bytes.starts_with(b"PK\x01\x02") || bytes.len() < length {
        return None;
    }
    // Without the flag a name is in the code page of whoever unpacks it.
    let Some(name) = std::str::from_utf8(name).ok().filter(|name| name.is_ascii() || flags & (1 << 11) != 0) else {
        return Some(Err(format!("{}: its name is no text in UTF-8", String::from_utf8_lossy(name).escape_debug())));
    };
    Some(Ok((Entry { name: name.to_owned(), mode, is_named_twice: has_unicode_path(extra) }, length)))
}

/// Whether an extra field of this kind is among these.
fn has_unicode_path(mut fields: &[u8]) -> bool {
    while let (Some(kind), Some(length)) = (number(fields, 0, 2), number(fields, 2, 2)) {
        if kind == 0x7075 {
            return true;
        }
        fields = fields.get(4 + length as usize..).unwrap_or_default();
    }
    false
}
