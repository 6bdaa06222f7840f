//! Traces in Chrome's event format (JSON), by the rules of Perfetto's reader: process and thread ids fit 32 bits, slices have a duration,
//! and the slices of a thread do not overlap.
//!
//! A machine (or a user on a pool) is a process and a lane is a thread. Times are in microseconds.

use std::collections::HashMap;
use std::io::{Error as IoError, Result as IoResult, Write};

use serde_json::{Value, json};

use super::export::{TraceFormat, TraceTexts};
use super::rows::TaskRow;

/// The process of counters. Groups follow; process 0 has a special meaning for readers.
const COUNTERS: u32 = 1;

/// Writes a trace in Chrome's event format.
pub(super) struct ChromeWriter<'a, W: Write> {
    out: W,
    texts: &'a TraceTexts,
    /// The process of each group.
    groups: HashMap<u32, u32>,
    is_first: bool,
    has_counters: bool,
}

impl<'a, W: Write> ChromeWriter<'a, W> {
    pub fn new(out: W, texts: &'a TraceTexts) -> ChromeWriter<'a, W> {
        ChromeWriter { out, texts, groups: HashMap::new(), is_first: true, has_counters: false }
    }

    fn event(&mut self, event: &Value) -> IoResult<()> {
        self.out.write_all(if std::mem::take(&mut self.is_first) { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut self.out, event)?;
        Ok(())
    }

    /// Names a process, or a thread of it, and sets its position.
    fn name(&mut self, kind: &str, pid: u32, tid: Option<u32>, (name, rank): (&str, u32)) -> IoResult<()> {
        for (suffix, args) in [("name", json!({"name": name})), ("sort_index", json!({"sort_index": rank}))] {
            let mut event = json!({"ph": "M", "name": format!("{kind}_{suffix}"), "pid": pid});
            if let Some(tid) = tid {
                event["tid"] = tid.into();
            }
            event["args"] = args;
            self.event(&event)?;
        }
        Ok(())
    }

    fn process(&self, group: u32) -> u32 {
        self.groups[&group]
    }
}

/// Returns the number of a lane's thread, which is unique in the file.
fn thread(lane: u32) -> IoResult<u32> {
    lane.checked_add(1).ok_or_else(|| IoError::other("more lanes than thread ids"))
}

fn args(task: &TaskRow) -> Value {
    json!({"job": task.job, "task": task.task, "attempt": task.attempt, "outcome": task.outcome})
}

impl<W: Write> TraceFormat for ChromeWriter<'_, W> {
    fn begin(&mut self) -> IoResult<()> {
        let mut about = serde_json::Map::new();
        about.insert("name".to_owned(), self.texts.root.as_str().into());
        about.extend(self.texts.about.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
        // The unit is read only if it precedes the events.
        write!(self.out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[", Value::Object(about))
    }

    fn group(&mut self, group: u32, name: &str) -> IoResult<()> {
        let pid = COUNTERS + 1 + self.groups.len() as u32;
        self.groups.insert(group, pid);
        self.name("process", pid, None, (name, group.min(i32::MAX as u32 - 1) + 1))
    }

    fn lane(&mut self, group: u32, lane: u32, id: u32) -> IoResult<()> {
        self.name("thread", self.process(group), Some(thread(id)?), (&format!("lane {}", lane + 1), lane))
    }

    fn task(&mut self, group: u32, lane: u32, task: &TaskRow) -> IoResult<()> {
        let event = json!({
            "ph": "X", "name": self.texts.users[task.user], "cat": "task", "ts": task.start, "dur": task.finish - task.start,
            "pid": self.process(group), "tid": thread(lane)?, "args": args(task),
        });
        self.event(&event)
    }

    fn stop(&mut self, group: u32, task: &TaskRow) -> IoResult<()> {
        let mut args = args(task);
        args["user"] = self.texts.users[task.user].as_str().into();
        let event = json!({
            "ph": "i", "s": "p", "name": task.outcome, "cat": "task", "ts": task.finish, "pid": self.process(group), "args": args,
        });
        self.event(&event)
    }

    fn counter(&mut self, user: usize, time: u64, amount: f64) -> IoResult<()> {
        let texts = self.texts;
        if !std::mem::replace(&mut self.has_counters, true) {
            self.name("process", COUNTERS, None, (&texts.counters.0, 0))?;
        }
        let mut event = json!({"ph": "C", "name": texts.users[user], "ts": time, "pid": COUNTERS, "args": {}});
        event["args"][texts.counters.1] = amount.into();
        self.event(&event)
    }

    fn end(&mut self) -> IoResult<()> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}
