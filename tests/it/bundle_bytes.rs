//! Zip files that are written byte by byte, with content that no library writes. A file that programs may unpack in two ways is refused.
//! A file as other programs write it is accepted.

use std::io::Write;

use sha2::{Digest, Sha256};

use crate::bundle::Scratch;

/// An entry of an archive. Its fields may differ from those of a normal archive.
#[derive(Clone, Default)]
struct Entry {
    name: String,
    packed: Vec<u8>,
    size: u64,
    crc32: u32,
    method: u16,
    flags: u16,
    needed: u16,
    extra: Vec<u8>,
    comment: Vec<u8>,
    attributes: u32,
    /// The values of the entry's own header (before its data) that differ from the catalogue.
    own: Own,
}

#[derive(Clone, Default)]
struct Own {
    name: Option<&'static str>,
    flags: Option<u16>,
    extra: Vec<u8>,
    /// The checksum, the packed size and the unpacked size.
    sizes: Option<[u32; 3]>,
    /// The bytes after the packed data.
    behind: Vec<u8>,
}

fn stored(name: &str, bytes: &[u8]) -> Entry {
    let (size, crc32) = (bytes.len() as u64, crc32fast::hash(bytes));
    Entry { name: name.to_owned(), packed: bytes.to_vec(), size, crc32, needed: 20, ..Entry::default() }
}

fn deflated(name: &str, bytes: &[u8]) -> Entry {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    Entry { packed: encoder.finish().expect("memory"), method: 8, ..stored(name, bytes) }
}

/// Returns numbers in little-endian order, each with its length in bytes.
fn numbers(all: &[(u64, usize)]) -> Vec<u8> {
    all.iter().flat_map(|(number, length)| number.to_le_bytes().into_iter().take(*length)).collect()
}

fn field(kind: u64, content: &[u8]) -> Vec<u8> {
    [numbers(&[(kind, 2), (content.len() as u64, 2)]), content.to_vec()].concat()
}

impl Entry {
    fn header(&self, flags: u16, sizes: [u32; 3], name: &str, extra: &[u8]) -> Vec<u8> {
        let [crc32, packed, size] = sizes.map(u64::from);
        let day = 0x21;
        let first = [(self.needed.into(), 2), (flags.into(), 2), (self.method.into(), 2), (0, 2), (day, 2), (crc32, 4)];
        let rest = [(packed, 4), (size, 4), (name.len() as u64, 2), (extra.len() as u64, 2)];
        numbers(&[&first[..], &rest].concat())
    }

    fn sizes(&self) -> [u32; 3] {
        [self.crc32, self.packed.len() as u32, self.size as u32]
    }

    fn local(&self) -> Vec<u8> {
        let name = self.own.name.unwrap_or(&self.name);
        let (flags, sizes) = (self.own.flags.unwrap_or(self.flags), self.own.sizes.unwrap_or(self.sizes()));
        let header = self.header(flags, sizes, name, &self.own.extra);
        let parts = [b"PK\x03\x04", &header[..], name.as_bytes(), &self.own.extra, &self.packed, &self.own.behind];
        parts.concat()
    }

    fn listed(&self, at: usize) -> Vec<u8> {
        let header = self.header(self.flags, self.sizes(), &self.name, &self.extra);
        let more = [(self.comment.len() as u64, 2), (0, 2), (0, 2), (self.attributes.into(), 4), (at as u64, 4)];
        let parts =
            [b"PK\x01\x02\x14\x03", &header[..], &numbers(&more), self.name.as_bytes(), &self.extra, &self.comment];
        parts.concat()
    }
}

/// Returns the bytes of the entries, and the bytes of the catalogue that follows them.
fn packed(entries: &[Entry]) -> (Vec<u8>, Vec<u8>) {
    let (mut bytes, mut catalogue) = (Vec::new(), Vec::new());
    for entry in entries {
        catalogue.extend(entry.listed(bytes.len()));
        bytes.extend(entry.local());
    }
    (bytes, catalogue)
}

fn end(entries: usize, size: usize, start: usize) -> Vec<u8> {
    let (entries, size, start) = (entries as u64, size as u64, start as u64);
    let fields = numbers(&[(0, 4), (entries, 2), (entries, 2), (size, 4), (start, 4), (0, 2)]);
    [b"PK\x05\x06", &fields[..]].concat()
}

/// Returns the 64-bit end of a catalogue, with `more` additional bytes, and the pointer to it at `at`.
fn long_end(entries: usize, size: usize, start: usize, at: usize, more: usize) -> Vec<u8> {
    let (entries, size, start, length) = (entries as u64, size as u64, start as u64, 44 + more as u64);
    let fields = [(length, 8), (45, 2), (45, 2), (0, 8), (entries, 8), (entries, 8), (size, 8), (start, 8)];
    let pointer = numbers(&[(0, 4), (at as u64, 8), (1, 4)]);
    [b"PK\x06\x06", &numbers(&fields)[..], &vec![0; more], b"PK\x06\x07", &pointer].concat()
}

/// Returns the entry with the description of a bundle. The bundle has one file of these bytes.
fn description(name: &str, bytes: &[u8], parts: &[&str]) -> Entry {
    let sum: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let parts: Vec<_> = parts.iter().chain([&name]).map(|id| serde_json::json!({ "@id": id })).collect();
    let graph = serde_json::json!({ "@graph": [
        { "@id": "ro-crate-metadata.json", "about": { "@id": "./" } },
        { "@id": "./", "@type": "Dataset", "hasPart": parts },
        { "@id": "below/", "@type": "Dataset" },
        { "@id": name, "@type": "File", "contentSize": bytes.len().to_string(), "sha256": sum },
    ] });
    deflated("b/ro-crate-metadata.json", graph.to_string().as_bytes())
}

fn archive(entries: &[Entry]) -> Vec<u8> {
    let (bytes, catalogue) = packed(entries);
    [&bytes[..], &catalogue, &end(entries.len(), catalogue.len(), bytes.len())].concat()
}

struct Verified(Scratch);

impl Verified {
    fn new() -> Verified {
        Verified(Scratch(tempfile::tempdir().expect("a temporary folder")))
    }

    fn write(&self, archive: &[u8]) {
        std::fs::write(self.0.path("b.zip"), archive).expect("writable");
    }

    fn passes(&self, archive: &[u8]) {
        self.write(archive);
        let said = self.0.ok(&["bundle", "--verify", "b.zip"]);
        assert!(said.contains("all unmodified"), "{said}");
    }

    fn refuses(&self, archive: &[u8], says: &str) {
        self.write(archive);
        let message = self.0.refused(&["bundle", "--verify", "b.zip"]);
        assert!(message.contains(says), "{says}: {message}");
    }
}

const GOOD: &[u8] = b"good, and long enough: good, good, good";

/// Returns a bundle with one file, after a change of the file's entry.
fn changed(change: impl Fn(&mut Entry)) -> Vec<u8> {
    let mut file = deflated("b/a.txt", GOOD);
    change(&mut file);
    archive(&[description("a.txt", GOOD, &[]), file])
}

/// Moves the checksum and the sizes of an entry from its own header to the end of its data.
fn behind(entry: &mut Entry) {
    entry.flags |= 8;
    entry.own.sizes = Some([0; 3]);
    let [crc32, packed, size] = entry.sizes().map(u64::from);
    entry.own.behind = [b"PK\x07\x08", &numbers(&[(crc32, 4), (packed, 4), (size, 4)])[..]].concat();
}

/// Writes 64-bit sizes into the entry's own header.
fn widened(entry: &mut Entry) {
    entry.own.sizes = Some([entry.crc32, u32::MAX, u32::MAX]);
    entry.own.extra = field(1, &numbers(&[(entry.size, 8), (entry.packed.len() as u64, 8)]));
}

#[test]
fn what_other_programs_pack_passes() {
    let place = Verified::new();
    place.passes(&changed(|_| {}));
    place.passes(&changed(|file| *file = stored("b/a.txt", GOOD)));
    place.passes(&changed(behind));
    place.passes(&changed(widened));
    place.passes(&changed(|file| (file.flags, file.attributes) = (0x802, 0o100_644 << 16)));
    place.passes(&changed(|file| file.own.extra = field(0x5455, &[3, 0, 0, 0, 0, 0, 0, 0, 0])));
    let description = description("below/a.txt", GOOD, &["below/"]);
    let folder = |name: &str| Entry { attributes: 0o040_755 << 16 | 0x10, ..stored(name, b"") };
    let entries = [folder("b/"), folder("b/below/"), deflated("b/below/a.txt", GOOD), description];
    place.passes(&archive(&entries));
    // The long form of the catalogue; some, all or none of the fields of the short form refer to it.
    let (bytes, catalogue) = packed(&entries);
    let (start, size) = (bytes.len(), catalogue.len());
    let long = long_end(4, size, start, start + size, 0);
    for (short_entries, short_size, short_start) in
        [(4, size, start), (0xFFFF, size, start), (0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF), (4, size, 0xFFFF_FFFF)]
    {
        place.passes(&[&bytes[..], &catalogue, &long, &end(short_entries, short_size, short_start)].concat());
    }
    for wrong in [end(3, size, start), end(4, size - 1, start), end(4, size, start + 1)] {
        place.refuses(&[&bytes[..], &catalogue, &long, &wrong].concat(), "two catalogues that differ");
    }
    // A long end with additional bytes, and one that is not directly before its pointer.
    let roomy = long_end(4, size, start, start + size, 8);
    place.refuses(&[&bytes[..], &catalogue, &roomy, &end(0xFFFF, size, start)].concat(), "two catalogues that differ");
    let aside = [&long[..56], &[0; 56], &long[56..]].concat();
    place.refuses(&[&bytes[..], &catalogue, &aside, &end(0xFFFF, size, start)].concat(), "two catalogues that differ");
}

/// The comment or extra field of the last entry in the catalogue contains a second catalogue of other files, with a long end and its
/// pointer right before the short end. Programs that follow every pointer unpack these files.
#[test]
fn a_second_catalogue_is_found_wherever_it_is() {
    let place = Verified::new();
    let (description, good) = (description("a.txt", GOOD, &[]), deflated("b/a.txt", GOOD));
    let evil = stored("b/a.txt", b"evil");
    let (bytes, _) = packed(&[description.clone(), good.clone()]);
    let first = description.listed(0);
    let archive = |change: &dyn Fn(&mut Entry)| {
        let mut last = good.clone();
        change(&mut last);
        let catalogue = [&first[..], &last.listed(description.local().len())].concat();
        [&bytes[..], &catalogue, &end(2, catalogue.len(), bytes.len())].concat()
    };
    // The offset of the hidden entry. A comment begins at the place of the end record, which has 22 bytes. An extra field begins with a
    // header of four bytes.
    for (at, in_comment) in [(archive(&|_| {}).len() - 22, true), (archive(&|_| {}).len() - 18, false)] {
        let hidden = [&first[..], &evil.listed(at)].concat();
        let start = at + evil.local().len();
        let alone = [evil.local(), hidden.clone()].concat();
        let tail = [&alone[..], &long_end(2, hidden.len(), start, start + hidden.len(), 0)].concat();
        let with = |tail: &[u8]| {
            archive(&|last| match in_comment {
                true => last.comment = tail.to_vec(),
                false => last.extra = field(0x9999, tail),
            })
        };
        place.refuses(&with(&tail), "two catalogues that differ");
        // A hidden catalogue is refused even if nothing points to it.
        place.refuses(&with(&alone), if in_comment { "it has a comment" } else { "some programs use" });
    }
}

#[test]
fn headers_that_differ_are_found() {
    let place = Verified::new();
    let cases: Vec<(&str, Box<dyn Fn(&mut Entry)>)> = vec![
        ("it has a comment", Box::new(|file| file.comment = b"x".to_vec())),
        ("second name", Box::new(|file| file.extra = field(0x7075, b"\x01\0\0\0\0b/b.txt"))),
        ("second name", Box::new(|file| file.own.extra = field(0x7075, b"\x01\0\0\0\0b/b.txt"))),
        ("some programs use", Box::new(|file| file.own.extra = field(0x6C78, &[0; 9]))),
        ("extra fields are damaged", Box::new(|file| file.extra = vec![0x55, 0x54, 9, 0])),
        ("extra fields are damaged", Box::new(|file| file.extra = vec![0])),
        // Sizes of 64 bits that no field requires.
        ("extra fields are damaged", Box::new(|file| file.extra = field(1, &numbers(&[(4, 8), (4, 8)])))),
        ("extra fields are damaged", Box::new(|file| file.own.extra = field(1, &numbers(&[(4, 8), (4, 8)])))),
        ("own header differs", Box::new(|file| file.own.name = Some("b/b.txt"))),
        ("own header differs", Box::new(|file| file.own.flags = Some(0x800))),
        ("own header differs", Box::new(|file| file.own.sizes = Some([file.crc32, file.packed.len() as u32, 4]))),
        ("own header differs", Box::new(|file| file.own.sizes = Some([0, 0, 0]))),
        (
            "sizes after its data differ",
            Box::new(|file| {
                behind(file);
                file.own.behind[8] ^= 1;
            }),
        ),
        (
            "end cannot be found",
            Box::new(|file| {
                *file = stored("b/a.txt", GOOD);
                behind(file);
            }),
        ),
        ("data that are not in it", Box::new(|file| file.own.behind = b"more".to_vec())),
        ("data that are not in it", Box::new(|file| file.own.behind = stored("b/b.txt", b"evil").local())),
        // Additional bytes after the end of the compressed data and before the end of the entry.
        ("its content differs", Box::new(|file| file.packed.extend(stored("b/b.txt", b"evil").local()))),
        ("its content differs", Box::new(|file| file.size += 1)),
        ("its content differs", Box::new(|file| file.size -= 1)),
        ("its content differs", Box::new(|file| file.crc32 ^= 1)),
        (
            "its content differs",
            Box::new(|file| {
                *file = Entry { size: GOOD.len() as u64 + 4, ..stored("b/a.txt", GOOD) };
            }),
        ),
        ("requires a newer program", Box::new(|file| file.needed = 99)),
        ("encrypted", Box::new(|file| file.flags = 1)),
        ("not every program supports", Box::new(|file| file.method = 12)),
        ("a file and a folder", Box::new(|file| file.attributes = 0x10)),
        ("a file and a folder", Box::new(|file| file.attributes = 0o040_644 << 16)),
        ("a folder with bytes", Box::new(|file| file.name += "/")),
        (
            "a file and a folder",
            Box::new(|file| {
                *file = Entry { attributes: 0o100_644 << 16, ..stored("b/a.txt/", b"") };
            }),
        ),
    ];
    for (says, change) in cases {
        place.refuses(&changed(change), says);
    }
}

#[test]
fn names_that_are_one_file_somewhere_are_refused() {
    let place = Verified::new();
    let beside = |name: &str| {
        archive(&[
            description("a.txt", GOOD, &[]),
            deflated("b/a.txt", GOOD),
            Entry { flags: 0x800, ..stored(name, b"") },
        ])
    };
    let both = |one: &str, other: &str| {
        let entries = [one, other].map(|name| Entry { flags: 0x800, ..stored(name, b"") });
        archive(&[&[description("a.txt", GOOD, &[]), deflated("b/a.txt", GOOD)], &entries[..]].concat())
    };
    place.refuses(&both("b/report-σ.html", "b/report-ς.html"), "occurs twice");
    place.refuses(&both("b/caf\u{e9}", "b/cafe\u{301}"), "an accent after its letter");
    place.refuses(&beside("b/A.TXT"), "occurs twice");
    place.refuses(&beside("b/a.txt;1"), "a semicolon and a number");
    place.refuses(&beside(&format!("b/{}c", "a/".repeat(500))), "longer than 1,000 bytes");
}

/// Parts that are neither files nor folders of the bundle are reported.
#[test]
fn parts_that_are_not_there_are_found() {
    let place = Verified::new();
    for part in ["gone.txt", "below/", "https://example.org/data.csv"] {
        let entries = [description("a.txt", GOOD, &[part]), deflated("b/a.txt", GOOD)];
        place.refuses(&archive(&entries), &format!("{part}: it is listed as a part (hasPart) but missing"));
    }
}
