//! A checker of Perfetto's rules for traces, in protobuf and in Chrome's event format. It reads files by its own decoder, independent of
//! the writers.
//!
//! Rules of both: the slices of a track nest, tracks are declared once and before their events, and the letters of slice names
//! distinguish users. Rules of protobuf: the first packet clears the interned names, interned numbers are defined before use and never 0,
//! and the times of a track do not decrease. Rules of JSON: ids fit 32 bits and are not 0, and every slice has a duration.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// A result with the broken rule.
type Checked<T> = Result<T, String>;

/// A slice of a trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceSlice {
    /// The names of the tracks from the root (a process in JSON) to the lane.
    pub track: Vec<String>,
    /// The name.
    pub name: String,
    /// The start in nanoseconds.
    pub start: u64,
    /// The end in nanoseconds.
    pub end: u64,
    /// The annotations as texts.
    pub args: BTreeMap<String, String>,
}

/// The content of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceContent {
    /// The slices, sorted.
    pub slices: Vec<TraceSlice>,
    /// The instants, sorted: names of the tracks, name, time in nanoseconds.
    pub instants: Vec<(Vec<String>, String, u64)>,
    /// The values of counters in order: name, time in nanoseconds, value.
    pub counters: Vec<(String, u64, f64)>,
    /// The number of tracks (in JSON: of processes and threads).
    pub tracks: usize,
}

impl TraceContent {
    /// Sorts the content, and checks the names of slices.
    fn complete(mut self) -> Checked<TraceContent> {
        self.slices.sort();
        self.instants.sort();
        let names: BTreeSet<&str> = self.slices.iter().map(|slice| slice.name.as_str()).collect();
        let letters = |name: &&str| name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        let distinct: BTreeSet<String> = names.iter().map(letters).collect();
        match distinct.len() == names.len() {
            true => Ok(self),
            false => Err("two names of slices differ only in digits, so they have the same colour".to_owned()),
        }
    }
}

/// A field of a message: its number and its value.
enum Wire<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// Decodes a varint at the start of the bytes.
fn varint(bytes: &mut &[u8]) -> Checked<u64> {
    let mut value = 0u64;
    for at in 0..10 {
        let (&byte, rest) = bytes.split_first().ok_or("a varint is cut")?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if at == 9 && part > 1 {
            return Err("a varint exceeds 64 bits".to_owned());
        }
        value |= part << (7 * at);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a varint is longer than 10 bytes".to_owned())
}

/// Decodes the fields of a message.
fn fields(mut bytes: &[u8]) -> Checked<Vec<(u64, Wire<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            1 => {
                let (value, rest) = bytes.split_first_chunk::<8>().ok_or("a fixed number is cut")?;
                bytes = rest;
                Wire::Fixed(u64::from_le_bytes(*value))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|error| error.to_string())?;
                let (value, rest) = bytes.split_at_checked(length).ok_or("a message is cut")?;
                bytes = rest;
                Wire::Bytes(value)
            }
            other => return Err(format!("field {} has wire type {other}", key >> 3)),
        };
        fields.push((key >> 3, value));
    }
    Ok(fields)
}

fn text(bytes: &[u8]) -> Checked<String> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

fn unexpected<T>(message: &str, field: u64) -> Checked<T> {
    Err(format!("{message} has an unexpected field {field}"))
}

/// A declared track.
struct Track {
    path: Vec<String>,
    is_counter: bool,
    last: u64,
    open: Vec<TraceSlice>,
}

/// The state of the reader of a protobuf trace.
#[derive(Default)]
struct ProtobufReader {
    content: TraceContent,
    tracks: HashMap<u64, Track>,
    /// The names of all tracks from the root: viewers merge tracks with equal names.
    paths: BTreeSet<Vec<String>>,
    /// Interned texts by their field and number.
    interned: HashMap<(u64, u64), String>,
    /// Whether the sequence has begun.
    is_cleared: bool,
}

/// Reads a trace in Perfetto's protobuf format and checks it. Errors: the packet and the broken rule.
pub fn protobuf(bytes: &[u8]) -> Checked<TraceContent> {
    let mut reader = ProtobufReader::default();
    for (at, (field, value)) in fields(bytes)?.into_iter().enumerate() {
        let (1, Wire::Bytes(packet)) = (field, value) else { return unexpected("the trace", field) };
        reader.packet(packet).map_err(|problem| format!("packet {}: {problem}", at + 1))?;
    }
    for track in reader.tracks.values() {
        if let Some(slice) = track.open.last() {
            return Err(format!("slice '{}' of {:?} has no end", slice.name, track.path));
        }
    }
    reader.content.tracks = reader.tracks.len();
    reader.content.complete()
}

impl ProtobufReader {
    fn packet(&mut self, packet: &[u8]) -> Checked<()> {
        let (mut time, mut sequence, mut flags) = (None, 0, 0);
        let (mut names, mut track, mut event) = (None, None, None);
        for (field, value) in fields(packet)? {
            match (field, value) {
                (8, Wire::Number(value)) => time = Some(value),
                (10, Wire::Number(value)) => sequence = value,
                (13, Wire::Number(value)) => flags = value,
                (87, Wire::Number(1)) if !self.is_cleared => {}
                (12, Wire::Bytes(bytes)) => names = Some(bytes),
                (60, Wire::Bytes(bytes)) => track = Some(bytes),
                (11, Wire::Bytes(bytes)) => event = Some(bytes),
                (field, _) => return unexpected("the packet", field),
            }
        }
        if sequence != 1 {
            return Err(format!("the sequence is {sequence}, not 1"));
        }
        if (flags & 1 != 0) == self.is_cleared {
            return Err("only the first packet clears the state of the sequence".to_owned());
        }
        self.is_cleared = true;
        names.map_or(Ok(()), |names| self.intern(names, flags))?;
        track.map_or(Ok(()), |track| self.declare(track))?;
        match (event, time) {
            (None, None) => Ok(()),
            (Some(event), Some(time)) if flags & 2 != 0 => self.event(event, time),
            _ => Err("an event needs a time and the flag of interned names".to_owned()),
        }
    }

    fn intern(&mut self, names: &[u8], flags: u64) -> Checked<()> {
        if flags & 2 == 0 {
            return Err("interned names without their flag".to_owned());
        }
        for (kind, value) in fields(names)? {
            let (1 | 2 | 3 | 29, Wire::Bytes(entry)) = (kind, value) else { return unexpected("interned data", kind) };
            let (mut number, mut name) = (0, None);
            for (field, value) in fields(entry)? {
                match (field, value) {
                    (1, Wire::Number(value)) => number = value,
                    (2, Wire::Bytes(bytes)) => name = Some(text(bytes)?),
                    (field, _) => return unexpected("an interned name", field),
                }
            }
            let name = name.ok_or("an interned name has no text")?;
            if number == 0 || self.interned.insert((kind, number), name).is_some() {
                return Err(format!("the interned number {number} of field {kind} is 0 or defined twice"));
            }
        }
        Ok(())
    }

    fn interned(&self, kind: u64, number: u64) -> Checked<String> {
        let found = self.interned.get(&(kind, number));
        found.cloned().ok_or_else(|| format!("the interned number {number} of field {kind} is not defined"))
    }

    fn declare(&mut self, track: &[u8]) -> Checked<()> {
        let (mut uuid, mut name, mut parent, mut is_counter) = (0, String::new(), None, false);
        for (field, value) in fields(track)? {
            match (field, value) {
                (1, Wire::Number(value)) => uuid = value,
                (2, Wire::Bytes(bytes)) => name = text(bytes)?,
                (5, Wire::Number(value)) => parent = Some(value),
                (8, Wire::Bytes(_)) => is_counter = true,
                (11, Wire::Number(3)) => {}
                (12, Wire::Number(rank)) if rank <= i32::MAX as u64 => {}
                (14, Wire::Bytes(bytes)) => drop(text(bytes)?),
                (field, _) => return unexpected("the track", field),
            }
        }
        let mut path = match parent.map(|parent| self.tracks.get(&parent)) {
            None => Vec::new(),
            Some(Some(parent)) => parent.path.clone(),
            Some(None) => return Err(format!("the parent of track {uuid} is not declared")),
        };
        if uuid == 0 || name.is_empty() {
            return Err("a track without an identity or a name".to_owned());
        }
        path.push(name);
        if !self.paths.insert(path.clone()) {
            return Err(format!("two tracks {path:?} would be merged"));
        }
        match self.tracks.insert(uuid, Track { path, is_counter, last: 0, open: Vec::new() }) {
            None => Ok(()),
            Some(_) => Err(format!("track {uuid} is declared twice")),
        }
    }

    fn event(&mut self, event: &[u8], time: u64) -> Checked<()> {
        let (mut kind, mut track, mut name, mut value, mut args) = (0, 0, None, None, BTreeMap::new());
        for (field, wire) in fields(event)? {
            match (field, wire) {
                (9, Wire::Number(number)) => kind = number,
                (11, Wire::Number(number)) => track = number,
                (10, Wire::Number(number)) => name = Some(self.interned(2, number)?),
                (3, Wire::Number(number)) => drop(self.interned(1, number)?),
                (44, Wire::Fixed(bits)) => value = Some(f64::from_bits(bits)),
                (4, Wire::Bytes(bytes)) => args.extend([self.annotation(bytes)?]),
                (field, _) => return unexpected("the event", field),
            }
        }
        let track = self.tracks.get_mut(&track).ok_or_else(|| format!("track {track} is not declared"))?;
        if time < track.last {
            return Err(format!("time {time} of {:?} is before {}", track.path, track.last));
        }
        track.last = time;
        if track.is_counter != (kind == 4) {
            return Err(format!("an event of type {kind} on {:?}", track.path));
        }
        match (kind, name, value) {
            (1, Some(name), None) => {
                track.open.push(TraceSlice { track: track.path.clone(), name, start: time, end: time, args });
            }
            (2, None, None) => {
                let slice = track.open.pop().ok_or("an end without a begin")?;
                self.content.slices.push(TraceSlice { end: time, ..slice });
            }
            (3, Some(name), None) => self.content.instants.push((track.path.clone(), name, time)),
            (4, None, Some(value)) if value.is_finite() => {
                self.content.counters.push((track.path.last().cloned().unwrap_or_default(), time, value));
            }
            _ => return Err(format!("an event of type {kind} with a wrong name or value")),
        }
        Ok(())
    }

    fn annotation(&self, bytes: &[u8]) -> Checked<(String, String)> {
        let (mut name, mut value) = (None, None);
        for (field, wire) in fields(bytes)? {
            match (field, wire) {
                (1, Wire::Number(number)) => name = Some(self.interned(3, number)?),
                (4, Wire::Number(number)) => value = Some((number as i64).to_string()),
                (6, Wire::Bytes(bytes)) => value = Some(text(bytes)?),
                (17, Wire::Number(number)) => value = Some(self.interned(29, number)?),
                (field, _) => return unexpected("an annotation", field),
            }
        }
        name.zip(value).ok_or_else(|| "an annotation without a name or a value".to_owned())
    }
}

/// Reads a trace in Chrome's event format and checks it. Errors: the event and the broken rule.
pub fn json(text: &str) -> Checked<TraceContent> {
    let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if !matches!(file["displayTimeUnit"].as_str(), Some("ms" | "ns")) {
        return Err("displayTimeUnit is ms or ns".to_owned());
    }
    let events = file["traceEvents"].as_array().ok_or("traceEvents is a list")?;
    let mut reader = JsonReader::default();
    for (at, event) in events.iter().enumerate() {
        reader.event(event).map_err(|problem| format!("event {}: {problem}: {event}", at + 1))?;
    }
    reader.complete()
}

/// The state of the reader of a JSON trace.
#[derive(Default)]
struct JsonReader {
    content: TraceContent,
    processes: HashMap<u32, String>,
    /// The process and the name of each thread.
    threads: HashMap<u32, (u32, String)>,
    slices: BTreeMap<u32, Vec<TraceSlice>>,
}

/// Returns an id, which must fit 32 bits and not be 0.
fn id(event: &Value, key: &str) -> Checked<u32> {
    let number = event[key].as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
    number.ok_or_else(|| format!("{key} is not a number of 32 bits above 0"))
}

/// Returns a time in nanoseconds.
fn time(event: &Value, key: &str) -> Checked<u64> {
    event[key].as_u64().map(|time| time * 1000).ok_or_else(|| format!("{key} is not a time"))
}

impl JsonReader {
    fn event(&mut self, event: &Value) -> Checked<()> {
        let name = event["name"].as_str().filter(|name| !name.is_empty()).ok_or("no name")?.to_owned();
        let pid = id(event, "pid")?;
        let process = |reader: &JsonReader| reader.processes.get(&pid).cloned().ok_or("the process has no name");
        match event["ph"].as_str().ok_or("no phase")? {
            "M" => self.declare(event, &name, pid)?,
            "X" => {
                let (tid, start) = (id(event, "tid")?, time(event, "ts")?);
                let end = start + time(event, "dur")?;
                let (owner, lane) = self.threads.get(&tid).ok_or("the thread has no name")?;
                if *owner != pid {
                    return Err("the thread belongs to another process".to_owned());
                }
                let args = event["args"].as_object().ok_or("no args")?.iter();
                let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let args = args.map(|(key, value)| (key.clone(), plain(value))).collect();
                let track = vec![process(self)?, lane.clone()];
                self.slices.entry(tid).or_default().push(TraceSlice { track, name, start, end, args });
            }
            "i" if event["s"] == "p" => {
                let process = process(self)?;
                self.content.instants.push((vec![process], name, time(event, "ts")?));
            }
            "C" => {
                process(self)?;
                let values =
                    event["args"].as_object().filter(|args| args.len() == 1).ok_or("a counter has one value")?;
                let value = values.values().next().and_then(Value::as_f64).ok_or("the value is not a number")?;
                self.content.counters.push((name, time(event, "ts")?, value));
            }
            other => return Err(format!("the phase '{other}' is not expected")),
        }
        Ok(())
    }

    fn declare(&mut self, event: &Value, name: &str, pid: u32) -> Checked<()> {
        let given = || event["args"]["name"].as_str().map(str::to_owned).ok_or("no name in args");
        let is_new = match name {
            "process_name" => self.processes.insert(pid, given()?).is_none(),
            "thread_name" => self.threads.insert(id(event, "tid")?, (pid, given()?)).is_none(),
            "process_sort_index" | "thread_sort_index" => event["args"]["sort_index"].is_u64(),
            _ => false,
        };
        if is_new { Ok(()) } else { Err("metadata is repeated or unknown".to_owned()) }
    }

    fn complete(mut self) -> Checked<TraceContent> {
        for slices in self.slices.values_mut() {
            slices.sort_by_key(|slice| slice.start);
            let mut open: Vec<u64> = Vec::new();
            for slice in slices.iter() {
                while open.last().is_some_and(|end| *end <= slice.start) {
                    open.pop();
                }
                if open.last().is_some_and(|end| *end < slice.end) {
                    return Err(format!("slices of {:?} overlap at {}", slice.track, slice.start));
                }
                open.push(slice.end);
            }
        }
        self.content.slices = self.slices.into_values().flatten().collect();
        self.content.tracks = self.processes.len() + self.threads.len();
        self.content.complete()
    }
}
