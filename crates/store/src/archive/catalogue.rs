//! Reads the entries of a zip file, byte by byte (APPNOTE 6.3.10, 4.3.7 to 4.3.16).
//!
//! Programs search for entries in different ways: from the end, from the start, by the long or by the short form of the catalogue. This
//! reader accepts a file only if all ways lead to the same entries, which follow one another without a gap.

use std::io::{Read, Seek, SeekFrom};

use super::CATALOGUE_MOST;
use super::header::{HEADER, Header, Method, number, widen};

/// An entry, for which both of its headers agree.
#[derive(Clone, Debug)]
pub struct ArchiveEntry {
    /// Its name.
    pub name: String,
    /// The compression method.
    pub method: Method,
    /// The checksum of its bytes.
    pub crc32: u32,
    /// The compressed size in bytes.
    pub packed: u64,
    /// The uncompressed size in bytes.
    pub size: u64,
    /// The offset of its data in the archive.
    pub start: u64,
}

/// An entry as listed in the catalogue.
struct CatalogueEntry {
    header: Header,
    name: String,
    /// The offset of its local header.
    at: u64,
    /// The file attributes of Unix, and the folder attribute of other systems.
    mode: u32,
    is_marked_folder: bool,
}

/// The bits of a mode for the kind of file, and their values for a folder and for a plain file.
const KINDS: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const PLAIN: u32 = 0o100_000;

/// Lengths of fixed parts: the end of a catalogue, the pointer to the long form of the end, that form, a catalogue entry, and a local
/// header.
const END: u64 = 22;
const POINTER: u64 = 20;
const LONG_END: u64 = 56;
const LISTED: usize = 46;
const LOCAL: usize = 30;
/// The length of the sizes after the data of an entry.
const BEHIND: usize = 16;

/// The location of a catalogue: its number of entries, its length, and its offset.
type CatalogueLocation = (u64, u64, u64);

/// The name of an entry (empty for the archive as a whole), and the problem.
pub type Problem = (String, String);

/// Reads the entries. Errors: the entry and its problem.
pub fn read(file: &mut (impl Read + Seek)) -> Result<Vec<ArchiveEntry>, Problem> {
    let whole = |problem: String| (String::new(), problem);
    let (entries, size, start) = end(file).map_err(whole)?;
    if size > CATALOGUE_MOST {
        return Err(whole(format!("its catalogue has {size} bytes, more than 128 MiB")));
    }
    let bytes = bytes(file, start, size as usize).map_err(whole)?;
    let (mut listed, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let (entry, length) = CatalogueEntry::read(rest)?;
        listed.push(entry);
        rest = &rest[length..];
    }
    if listed.len() as u64 != entries {
        return Err(whole(format!("its catalogue has {} entries and declares {entries}", listed.len())));
    }
    listed.sort_by_key(|entry| entry.at);
    let (mut found, mut at) = (Vec::new(), 0);
    for entry in listed {
        if entry.at != at {
            return Err((entry.name, "before it there are data that are not in the catalogue".to_owned()));
        }
        let (entry, end) = entry.find(file)?;
        at = end;
        found.push(entry);
    }
    match at == start {
        true => Ok(found),
        false => Err(whole("before its catalogue there are data that are not in it".to_owned())),
    }
}

/// Locates the catalogue, which must be the end of the file, without a comment. Errors: a description.
fn end(file: &mut (impl Read + Seek)) -> Result<CatalogueLocation, String> {
    let damaged = || "its catalogue is damaged".to_owned();
    let length = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let at = length.checked_sub(END).ok_or("it is too short")?;
    let end = bytes(file, at, END as usize)?;
    let field = |at: usize, length: usize| number(&end, at, length).unwrap_or_default();
    if !end.starts_with(b"PK\x05\x06") || field(20, 2) != 0 {
        return Err("it does not end with a catalogue".to_owned());
    }
    let short = (field(10, 2), field(12, 4), field(16, 4));
    if field(4, 4) != 0 || field(8, 2) != short.0 {
        return Err("it is a part of an archive in several files".to_owned());
    }
    let pointer = at.saturating_sub(POINTER);
    let long = bytes(file, pointer, (at - pointer) as usize)?;
    if !long.starts_with(b"PK\x06\x07") {
        return adjoins(short, at);
    }
    // Some programs follow every pointer, others only if the short form leaves a value open. Both must find the same record, directly
    // before the pointer.
    let at = pointer.checked_sub(LONG_END).ok_or_else(damaged)?;
    let end = bytes(file, at, LONG_END as usize)?;
    let field = |at: usize, length: usize| number(&end, at, length).unwrap_or_default();
    let says = (number(&long, 4, 4), number(&long, 8, 8), number(&long, 16, 4));
    let is_alone = says == (Some(0), Some(at), Some(1)) && field(16, 8) == 0 && field(24, 8) == field(32, 8);
    let found = (field(32, 8), field(40, 8), field(48, 8));
    let agrees = |short: u64, most: u64, long: u64| short == most || short == long;
    let agree = agrees(short.0, 0xFFFF, found.0)
        && agrees(short.1, 0xFFFF_FFFF, found.1)
        && agrees(short.2, 0xFFFF_FFFF, found.2);
    if !end.starts_with(b"PK\x06\x06") || field(4, 8) != LONG_END - 12 || !is_alone || !agree {
        return Err("it has two catalogues that differ".to_owned());
    }
    adjoins(found, at)
}

/// Checks that a catalogue ends where its end record begins, so that there is no gap in which some programs would find another catalogue.
fn adjoins((entries, size, start): CatalogueLocation, at: u64) -> Result<CatalogueLocation, String> {
    match start.checked_add(size) == Some(at) {
        true => Ok((entries, size, start)),
        false => Err("its catalogue is not at the declared position".to_owned()),
    }
}

fn bytes(file: &mut (impl Read + Seek), at: u64, many: usize) -> Result<Vec<u8>, String> {
    file.seek(SeekFrom::Start(at)).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(many as u64).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() == many { Ok(bytes) } else { Err("it is cut short".to_owned()) }
}

impl CatalogueEntry {
    /// Reads the first entry of the bytes; returns it with its length. Errors: the problem.
    fn read(bytes: &[u8]) -> Result<(CatalogueEntry, usize), Problem> {
        let damaged = || (String::new(), "its catalogue is damaged".to_owned());
        let fixed = bytes.get(..LISTED).filter(|fixed| fixed.starts_with(b"PK\x01\x02")).ok_or_else(damaged)?;
        let field = |at: usize, length: usize| number(fixed, at, length).unwrap_or_default();
        let (name, extra) = (LISTED + field(28, 2) as usize, field(30, 2) as usize);
        let raw = bytes.get(LISTED..name).ok_or_else(damaged)?;
        let shown = String::from_utf8_lossy(raw).into_owned();
        let wrong = |problem: &str| (shown.clone(), problem.to_owned());
        let extra = bytes.get(name..name + extra).ok_or_else(damaged)?;
        let mut header = Header::read(&fixed[6..6 + HEADER]).map_err(wrong)?;
        if field(32, 2) != 0 {
            return Err(wrong("it has a comment, unlike an archive of Plimsoll"));
        }
        if field(34, 2) != 0 {
            return Err(wrong("it is in another file"));
        }
        let mut at = field(42, 4);
        widen(extra, &mut [&mut header.size, &mut header.packed, &mut at]).map_err(wrong)?;
        if std::str::from_utf8(raw).is_err() || !(raw.is_ascii() || header.is_utf_8()) {
            return Err(wrong("its name is no text in UTF-8"));
        }
        let attributes = field(38, 4) as u32;
        let (mode, is_marked_folder) = (attributes >> 16, attributes & 0x10 != 0);
        let length = name + extra.len();
        let listed = CatalogueEntry { header, name: shown, at, mode, is_marked_folder };
        listed.check().map_err(|problem| (listed.name.clone(), problem.to_owned()))?;
        Ok((listed, length))
    }

    /// Checks that every program reads the entry as a plain file or a folder. Errors: the kind of the entry.
    fn check(&self) -> Result<(), &'static str> {
        let is_folder = self.name.ends_with('/');
        match self.mode & KINDS {
            0o120_000 => Err("it is a link"),
            FOLDER | PLAIN if (self.mode & KINDS == FOLDER) != is_folder => Err("it is a file and a folder"),
            0 | FOLDER | PLAIN if self.is_marked_folder && !is_folder => Err("it is a file and a folder"),
            0 | FOLDER | PLAIN if is_folder && (self.header.size, self.header.packed) != (0, 0) => {
                Err("it is a folder with bytes of its own")
            }
            0 | FOLDER | PLAIN => Ok(()),
            _ => Err("it is no plain file"),
        }
    }

    /// Checks that the local header agrees; returns the entry and the offset of the next one.
    fn find(self, file: &mut (impl Read + Seek)) -> Result<(ArchiveEntry, u64), Problem> {
        let CatalogueEntry { header, name, at, .. } = self;
        let start = local(file, &header, &name, at).and_then(|start| Ok((start, behind(file, &header, start)?)));
        let (start, end) = start.map_err(|problem| (name.clone(), problem))?;
        let (method, crc32) = (header.method, header.crc32);
        Ok((ArchiveEntry { name, method, crc32, packed: header.packed, size: header.size, start }, end))
    }
}

/// Compares the local header of an entry with the catalogue; returns the offset of its data. Errors: a description.
fn local(file: &mut (impl Read + Seek), listed: &Header, name: &str, at: u64) -> Result<u64, String> {
    let differs = || "its own header differs from the catalogue".to_owned();
    let fixed = bytes(file, at, LOCAL)?;
    let mut own = Header::read(&fixed[4..]).map_err(str::to_owned)?;
    let rest = bytes(file, at + LOCAL as u64, own.name + own.extra)?;
    let (is_wide, extra) = (own.size == 0xFFFF_FFFF, &rest[own.name..]);
    // In a local header, the field of large sizes always has both sizes.
    if is_wide != (own.packed == 0xFFFF_FFFF) {
        return Err(differs());
    }
    widen(extra, &mut [&mut own.size, &mut own.packed])?;
    let open = own.has_sizes_behind() && own.is_without_sizes() && !is_wide;
    let agrees = fixed.starts_with(b"PK\x03\x04") && &rest[..own.name] == name.as_bytes() && own.is_like(listed);
    match agrees && (open || own.has_sizes_of(listed)) {
        true => Ok(at + (LOCAL + rest.len()) as u64),
        false => Err(differs()),
    }
}

/// Returns the start of the next entry, after the data and the data descriptor of this one. Errors: a description.
fn behind(file: &mut (impl Read + Seek), listed: &Header, start: u64) -> Result<u64, String> {
    let end = start.checked_add(listed.packed).ok_or("it is cut short")?;
    if !listed.has_sizes_behind() {
        return Ok(end);
    }
    let found = bytes(file, end, BEHIND)?;
    let field = |at: usize| number(&found, at, 4);
    let sizes = (field(4), field(8), field(12));
    let agrees = sizes == (Some(listed.crc32.into()), Some(listed.packed), Some(listed.size));
    match found.starts_with(b"PK\x07\x08") && agrees {
        true => Ok(end + BEHIND as u64),
        false => Err("the sizes after its data differ from the catalogue".to_owned()),
    }
}
