//! Traces in Perfetto's protobuf format, encoded here: the format is a list of packets of a few fields, and a general encoder would need
//! generated code for its several thousand messages.
//!
//! Fields are those of `perfetto/trace/trace_packet.proto` and `track_event.proto`. All packets are of one sequence. Names are interned:
//! a packet that first uses a name defines its number. Times are in nanoseconds.

use std::collections::HashMap;
use std::io::{Result as IoResult, Write};

use super::export::{TraceFormat, TraceTexts};
use super::rows::TaskRow;

/// The sequence of all packets.
const SEQUENCE: u64 = 1;

/// The flags of a packet: it clears the interned names, and it uses interned names.
const CLEARED: u64 = 1;
const INTERNED: u64 = 2;

/// The types of track events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// The order of child tracks by their rank.
const EXPLICIT: u64 = 3;

/// The numbers of the interned category and names of annotations.
const CATEGORY: u64 = 1;
const ANNOTATIONS: [&str; 5] = ["job", "task", "attempt", "outcome", "user"];
const JOB: u64 = 1;
const TASK: u64 = 2;
const ATTEMPT: u64 = 3;
const OUTCOME: u64 = 4;
const USER: u64 = 5;

/// A message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) -> &mut Message {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn double(&mut self, field: u64, value: f64) -> &mut Message {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn text(&mut self, field: u64, text: &str) -> &mut Message {
        self.bytes(field, text.as_bytes())
    }

    fn nested(&mut self, field: u64, fill: impl FnOnce(&mut Message)) -> &mut Message {
        let mut inner = Message::default();
        fill(&mut inner);
        self.bytes(field, &inner.0)
    }
}

/// Names with numbers from 1. A number is defined in the packet that first uses it.
#[derive(Default)]
struct Interned {
    numbers: HashMap<String, u64>,
    /// The names that the next packet defines.
    new: Vec<(u64, String)>,
}

impl Interned {
    fn number(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(name.to_owned(), number);
        self.new.push((number, name.to_owned()));
        number
    }

    fn define(&mut self, message: &mut Message, field: u64) {
        for (number, name) in self.new.drain(..) {
            message.nested(field, |entry| {
                entry.number(1, number).text(2, &name);
            });
        }
    }
}

/// Writes a trace in Perfetto's format.
pub(super) struct PerfettoWriter<'a, W: Write> {
    out: W,
    texts: &'a TraceTexts,
    /// The number of declared tracks, which is the identity of the last one.
    tracks: u64,
    groups: HashMap<u32, u64>,
    lanes: Vec<u64>,
    /// The tracks of counters by user; their parent is declared before the first one.
    counters: HashMap<usize, u64>,
    counters_root: Option<u64>,
    /// Names of events, and texts of annotations.
    events: Interned,
    values: Interned,
}

/// The identity of the root track.
const ROOT: u64 = 1;

impl<'a, W: Write> PerfettoWriter<'a, W> {
    pub fn new(out: W, texts: &'a TraceTexts) -> PerfettoWriter<'a, W> {
        PerfettoWriter {
            out,
            texts,
            tracks: 0,
            groups: HashMap::new(),
            lanes: Vec::new(),
            counters: HashMap::new(),
            counters_root: None,
            events: Interned::default(),
            values: Interned::default(),
        }
    }

    /// Writes a packet.
    fn packet(&mut self, fill: impl FnOnce(&mut Message)) -> IoResult<()> {
        let mut packet = Message::default();
        fill(&mut packet);
        packet.number(10, SEQUENCE);
        let mut framed = Message::default();
        framed.bytes(1, &packet.0);
        self.out.write_all(&framed.0)
    }

    /// Writes a packet with an event, and defines its new names.
    fn event(&mut self, time: u64, fill: impl FnOnce(&mut Message)) -> IoResult<()> {
        let mut names = Message::default();
        self.events.define(&mut names, 2);
        self.values.define(&mut names, 29);
        self.packet(|packet| {
            packet.number(8, time * 1000).number(13, INTERNED);
            if !names.0.is_empty() {
                packet.bytes(12, &names.0);
            }
            packet.nested(11, fill);
        })
    }

    /// Declares a track and returns its identity. `rank` is its place among the tracks with the same parent.
    fn track(&mut self, parent: u64, name: &str, rank: u64, fill: impl FnOnce(&mut Message)) -> IoResult<u64> {
        self.tracks += 1;
        let uuid = self.tracks;
        self.packet(|packet| {
            packet.nested(60, |track| {
                track.number(1, uuid).text(2, name);
                if parent > 0 {
                    track.number(5, parent).number(12, rank);
                }
                track.number(11, EXPLICIT);
                fill(track);
            });
        })?;
        Ok(uuid)
    }

    fn counter_track(&mut self, user: usize) -> IoResult<u64> {
        if let Some(&track) = self.counters.get(&user) {
            return Ok(track);
        }
        let texts = self.texts;
        let root = match self.counters_root {
            Some(root) => root,
            None => self.track(ROOT, &texts.counters.0, 0, |_| {})?,
        };
        self.counters_root = Some(root);
        let track = self.track(root, &texts.users[user], user as u64, |track| {
            track.nested(8, |counter| {
                counter.text(6, texts.counters.1);
            });
        })?;
        self.counters.insert(user, track);
        Ok(track)
    }
}

/// Adds the annotations of a task; `outcome` is an interned number.
fn annotate(event: &mut Message, task: &TaskRow, outcome: u64) {
    let mut add = |name: u64, fill: &dyn Fn(&mut Message)| {
        event.nested(4, |annotation| {
            annotation.number(1, name);
            fill(annotation);
        });
    };
    add(JOB, &|annotation| {
        annotation.text(6, task.job);
    });
    add(TASK, &|annotation| {
        annotation.number(4, task.task as u64);
    });
    add(ATTEMPT, &|annotation| {
        annotation.number(4, task.attempt as u64);
    });
    add(OUTCOME, &|annotation| {
        annotation.number(17, outcome);
    });
}

impl<W: Write> TraceFormat for PerfettoWriter<'_, W> {
    fn begin(&mut self) -> IoResult<()> {
        self.packet(|packet| {
            packet.number(13, CLEARED | INTERNED).number(87, 1);
            packet.nested(12, |names| {
                names.nested(1, |category| {
                    category.number(1, CATEGORY).text(2, "task");
                });
                for (at, name) in ANNOTATIONS.iter().enumerate() {
                    names.nested(3, |annotation| {
                        annotation.number(1, at as u64 + 1).text(2, name);
                    });
                }
            });
        })?;
        let about = self.texts.about.iter().map(|(key, value)| format!("{key}: {value}\n")).collect::<String>();
        let name = self.texts.root.clone();
        let root = self.track(0, &name, 0, |track| {
            track.text(14, &about);
        })?;
        debug_assert_eq!(root, ROOT);
        Ok(())
    }

    fn group(&mut self, group: u32, name: &str) -> IoResult<()> {
        let track = self.track(ROOT, name, u64::from(group.min(i32::MAX as u32 - 1)) + 1, |_| {})?;
        self.groups.insert(group, track);
        Ok(())
    }

    fn lane(&mut self, group: u32, lane: u32, id: u32) -> IoResult<()> {
        debug_assert_eq!(self.lanes.len(), id as usize);
        let track = self.track(self.groups[&group], &format!("lane {}", lane + 1), u64::from(lane), |_| {})?;
        self.lanes.push(track);
        Ok(())
    }

    fn task(&mut self, _: u32, lane: u32, task: &TaskRow) -> IoResult<()> {
        let track = self.lanes[lane as usize];
        let (name, outcome) = (self.events.number(&self.texts.users[task.user]), self.values.number(task.outcome));
        self.event(task.start, |event| {
            event.number(9, BEGIN).number(11, track).number(3, CATEGORY).number(10, name);
            annotate(event, task, outcome);
        })?;
        self.packet(|packet| {
            packet.number(8, task.finish * 1000).number(13, INTERNED);
            packet.nested(11, |event| {
                event.number(9, END).number(11, track);
            });
        })
    }

    fn stop(&mut self, group: u32, task: &TaskRow) -> IoResult<()> {
        let track = self.groups[&group];
        let (name, outcome) = (self.events.number(task.outcome), self.values.number(task.outcome));
        let user = self.values.number(&self.texts.users[task.user]);
        self.event(task.finish, |event| {
            event.number(9, INSTANT).number(11, track).number(3, CATEGORY).number(10, name);
            annotate(event, task, outcome);
            event.nested(4, |annotation| {
                annotation.number(1, USER).number(17, user);
            });
        })
    }

    fn counter(&mut self, user: usize, time: u64, amount: f64) -> IoResult<()> {
        let track = self.counter_track(user)?;
        self.event(time, |event| {
            event.number(9, COUNTER).number(11, track).double(44, amount);
        })
    }

    fn end(&mut self) -> IoResult<()> {
        self.out.flush()
    }
}
