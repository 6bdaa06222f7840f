//! Writes the canonical trace. Reading the written trace yields the same workload.
//!
//! Times are whole microseconds and demands exact decimals, so no value is rounded. An optional column is written if some row needs it. A
//! value that the columns cannot represent (such as a stage called `a;b`) is an error; values are never altered.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use super::{Columns, Source, TaskSet};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Dim;

/// The columns that a workload needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The resources.
    pub dims: Vec<Dim>,
    /// Whether a row has more than one task.
    pub tasks: bool,
    /// Whether a row has a stage.
    pub stage: bool,
    /// Whether a row waits for a stage.
    pub after: bool,
    /// Whether a row has a priority other than 0.
    pub priority: bool,
    /// Whether a row is a gang.
    pub gang: bool,
    /// Whether a row requires a label.
    pub label: bool,
    /// Whether a row has a location.
    pub location: bool,
    /// Whether a row is stable.
    pub stable: bool,
    /// Whether a row has an estimate.
    pub estimate: bool,
    /// Whether a row has a deadline.
    pub deadline: bool,
    /// Whether a job is submitted after the end of another job.
    pub preceding: bool,
}

/// The content of a row's field.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// A name; `None` for an empty field.
    Text(Option<Cow<'a, str>>),
    /// A whole number.
    Whole(u64),
    /// A time in microseconds; `None` for an empty field.
    Time(Option<u64>),
    /// An amount in base units, and the number of base units per unit of its column.
    Amount(u64, u64),
}

/// The content of a column in every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Names.
    Text,
    /// Whole numbers.
    Whole,
    /// Amounts, in units of this many base units.
    Amount(u64),
}

impl Layout {
    /// Reads a source to its end to determine the columns that it needs.
    ///
    /// Errors: those of the source, and [`Error::Mismatch`] for a resource with the name of another column.
    pub fn scan(source: &mut dyn Source) -> Result<Layout> {
        Layout::scan_with(source, |_| ())
    }

    /// Reads a source as [`Layout::scan`], and passes every row to `visit`. Errors: as there.
    pub fn scan_with(source: &mut dyn Source, mut visit: impl FnMut(&TaskSet)) -> Result<Layout> {
        let mut layout = Layout { dims: source.dims().to_vec(), ..Layout::default() };
        while let Some(set) = source.next_set()? {
            layout.add(&set);
            visit(&set);
        }
        let columns = layout.columns();
        let resources: Vec<String> = layout.dims.iter().map(|dim| dim.name.clone()).collect();
        let found = Columns::find(Path::new("trace"), columns.iter().map(|(name, _)| name.as_str()), &resources);
        match found {
            Ok(found) if found.dims == layout.dims => Ok(layout),
            _ => {
                let names: Vec<&str> = layout.dims.iter().map(|dim| dim.name.as_str()).collect();
                let problem = format!("a trace cannot hold these resources, for columns have their names: {names:?}");
                Err(Error::Mismatch { problem })
            }
        }
    }

    /// Adds the columns that a row needs.
    pub fn add(&mut self, set: &TaskSet) {
        self.tasks |= set.tasks != 1;
        self.stage |= set.stage.is_some();
        self.after |= !set.after.is_empty();
        self.priority |= set.priority != 0;
        self.gang |= set.gang;
        self.label |= set.label.is_some();
        self.location |= set.location.is_some();
        self.stable |= set.stable;
        self.estimate |= set.estimate.is_some();
        self.deadline |= set.deadline.is_some();
        self.preceding |= set.preceding.is_some();
    }

    /// Returns every column's name and content, in order.
    pub fn columns(&self) -> Vec<(String, ItemKind)> {
        let mut columns = vec![
            ("job".to_owned(), ItemKind::Text),
            ("user".to_owned(), ItemKind::Text),
            ("submit_us".to_owned(), ItemKind::Whole),
            ("duration_us".to_owned(), ItemKind::Whole),
        ];
        let mut add = |wanted: bool, name: &str, kind: ItemKind| {
            if wanted {
                columns.push((name.to_owned(), kind));
            }
        };
        add(self.tasks, "tasks", ItemKind::Whole);
        for dim in &self.dims {
            let column = dim.column();
            let kind = match Dim::parse(&column).1 {
                1 => ItemKind::Whole,
                scale => ItemKind::Amount(scale),
            };
            add(true, &column, kind);
        }
        add(self.stage, "stage", ItemKind::Text);
        add(self.after, "after", ItemKind::Text);
        add(self.priority, "priority", ItemKind::Whole);
        add(self.gang, "gang", ItemKind::Text);
        add(self.label, "label", ItemKind::Text);
        add(self.location, "location", ItemKind::Text);
        add(self.stable, "stable", ItemKind::Text);
        add(self.estimate, "estimate_us", ItemKind::Whole);
        add(self.deadline, "deadline_us", ItemKind::Whole);
        add(self.preceding, "after_job", ItemKind::Text);
        add(self.preceding, "think_us", ItemKind::Whole);
        columns
    }

    /// Returns the fields of `set`, the row that `source` yielded last, in the order of [`Layout::columns`].
    ///
    /// Errors: [`Error::Mismatch`] for a name that would not be read back.
    pub fn row<'a>(&self, set: &TaskSet, source: &'a dyn Source) -> Result<Vec<Item<'a>>> {
        let wrong = |what: &str, name: &str, expected: &str| {
            let problem = format!("{}: {what} '{name}' cannot be written; expected {expected}", source.locate(set.row));
            Error::Mismatch { problem }
        };
        let filled = |what: &str, name: &str| {
            if name.is_empty() { Err(wrong(what, name, "a name that is not empty")) } else { Ok(()) }
        };
        // Readers trim stages, labels and locations, and `;` separates the stages of a list.
        let plain = |what: &str, name: &str| {
            let good = !name.is_empty() && name.trim() == name && !name.contains(';');
            if good { Ok(()) } else { Err(wrong(what, name, "a name without blanks at its ends and without ';'")) }
        };
        let job = source.job_names().text(&source.job_name());
        let user = source.users().name(set.user.0);
        filled("the job", &job)?;
        filled("the user", user)?;
        let mut row = vec![
            Item::Text(Some(job.into())),
            Item::Text(Some(user.into())),
            Item::Whole(set.submit.0),
            Item::Whole(set.duration.0),
        ];
        if self.tasks {
            row.push(Item::Whole(set.tasks.into()));
        }
        for (dim, &base) in self.dims.iter().zip(&set.demand.0) {
            row.push(match Dim::parse(&dim.column()).1 {
                1 => Item::Whole(base),
                scale => Item::Amount(base, scale),
            });
        }
        let stage = |stage: u32| -> Result<&'a str> {
            let name = source.stage_name(stage);
            plain("the stage", name).map(|()| name)
        };
        if self.stage {
            row.push(Item::Text(set.stage.map(stage).transpose()?.map(Cow::from)));
        }
        if self.after {
            let after = set.after.iter().map(|&id| stage(id)).collect::<Result<Vec<&str>>>()?.join(";");
            row.push(Item::Text(Some(after).filter(|after| !after.is_empty()).map(Cow::from)));
        }
        if self.priority {
            row.push(Item::Whole(set.priority.into()));
        }
        if self.gang {
            row.push(truth(set.gang));
        }
        if self.label {
            let label = set.label.map(|label| source.label_name(label));
            label.map_or(Ok(()), |label| plain("the label", label))?;
            row.push(Item::Text(label.map(Cow::from)));
        }
        if self.location {
            let location = set.location.map(|location| source.location_name(location));
            location.map_or(Ok(()), |location| plain("the location", location))?;
            row.push(Item::Text(location.map(Cow::from)));
        }
        if self.stable {
            row.push(truth(set.stable));
        }
        let times = [(self.estimate, set.estimate.map(|it| it.0)), (self.deadline, set.deadline.map(|it| it.0))];
        row.extend(times.into_iter().filter(|(wanted, _)| *wanted).map(|(_, time)| Item::Time(time)));
        if self.preceding {
            let preceding = set.preceding.as_deref();
            row.push(Item::Text(preceding.map(|preceding| source.job_names().text(&preceding.job).into())));
            row.push(Item::Time(preceding.map(|preceding| preceding.think.0)));
        }
        Ok(row)
    }
}

fn truth<'a>(value: bool) -> Item<'a> {
    Item::Text(Some(if value { "true" } else { "false" }.into()))
}

impl Item<'_> {
    /// Returns the field as in CSV: amounts are exact decimals.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Item::Text(text) => Cow::from(text.as_deref().unwrap_or_default()),
            Item::Whole(value) => value.to_string().into(),
            Item::Time(time) => time.map(|time| time.to_string()).unwrap_or_default().into(),
            Item::Amount(base, scale) => exact(*base, *scale).into(),
        }
    }
}

/// Returns `base / scale` as a decimal without rounding; `scale` is a power of ten.
fn exact(base: u64, scale: u64) -> String {
    let digits = scale.ilog10() as usize;
    let text = format!("{}.{:0digits$}", base / scale, base % scale);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Writes all rows of a source as a canonical CSV trace; returns their number. `layout` must be that of this source.
///
/// Errors: those of the source, [`Error::Mismatch`] for a value that a trace cannot hold, [`Error::Output`] at `path`
/// from `out`.
pub fn csv(out: &mut dyn Write, path: &Path, source: &mut dyn Source, layout: &Layout) -> Result<u64> {
    let fail = |error: csv::Error| Error::output(path, error);
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(layout.columns().iter().map(|(name, _)| name)).map_err(fail)?;
    let mut rows = 0;
    while let Some(set) = source.next_set()? {
        for item in layout.row(&set, source)? {
            writer.write_field(item.text().as_bytes()).map_err(fail)?;
        }
        writer.write_record(None::<&[u8]>).map_err(fail)?;
        rows += 1;
    }
    writer.flush().map_err(|error| Error::output(path, error))?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{CsvTrace, Input, Workload};
    use plimsoll_base::units::{Resources, Span, Time, Unit, UserId};

    fn written(workload: &Workload) -> Result<String> {
        let layout = Layout::scan(&mut workload.source())?;
        let mut bytes = Vec::new();
        csv(&mut bytes, Path::new("t.csv"), &mut workload.source(), &layout)?;
        Ok(String::from_utf8(bytes).expect("a trace is text"))
    }

    fn small() -> Workload {
        let dim = |name: &str, unit| Dim { name: name.into(), unit };
        let mut workload = Workload {
            dims: vec![dim("cpu", Unit::Milli), dim("memory", Unit::Normalised), dim("disk", Unit::Mebibyte)],
            ..Workload::default()
        };
        let user = UserId(workload.users.intern("a, \"b\""));
        let job = workload.job("j");
        let demand = Resources::from_slice(&[1500, 1, 7]);
        workload.sets.push(TaskSet {
            job,
            user,
            submit: Time(12),
            duration: Span(3),
            tasks: 1,
            demand,
            ..<_>::default()
        });
        workload.finish()
    }

    #[test]
    fn only_columns_that_are_needed_are_written_and_decimals_are_exact() {
        let mut workload = small();
        let head = "job,user,submit_us,duration_us";
        let row = "j,\"a, \"\"b\"\"\",12,3";
        let want = format!("{head},cpu,memory_norm,disk_mib\n{row},1.5,0.000001,7\n");
        assert_eq!(written(&workload).expect("writable"), want);
        let stage = workload.stages.intern("map");
        let label = workload.labels.intern("ssd");
        let location = workload.locations.intern("hz/r1");
        let set = &mut workload.sets[0];
        (set.tasks, set.stage, set.after, set.priority) = (4, Some(stage), vec![stage], 9);
        (set.gang, set.label) = (true, Some(label));
        (set.stable, set.location) = (true, Some(location));
        (set.estimate, set.deadline) = (Some(Span(7)), Some(Time(20)));
        let want = format!(
            "{head},tasks,cpu,memory_norm,disk_mib,stage,after,priority,gang,label,location,stable,estimate_us,deadline_us\n\
             {row},4,1.5,0.000001,7,map,map,9,true,ssd,hz/r1,true,7,20\n"
        );
        assert_eq!(written(&workload).expect("writable"), want);
        let input = Input::Bytes("t.csv".into(), want.into_bytes().into());
        let mut read = CsvTrace::new(&input).expect("readable");
        assert_eq!(read.next_set().expect("readable").as_ref(), Some(&workload.sets[0]));
        assert_eq!((read.label_name(0), read.location_name(0)), ("ssd", "hz/r1"));
        assert_eq!(
            (exact(0, 1000), exact(1_000_000_000_000_000_001, 1000)),
            ("0".into(), "1000000000000000.001".into())
        );
    }

    #[test]
    fn names_that_would_not_come_back_are_refused() {
        let mut workload = small();
        workload.sets[0].stage = Some(workload.stages.intern("a;b"));
        let message = written(&workload).unwrap_err().to_string();
        assert!(message.contains("row 0") && message.contains("the stage 'a;b'"), "{message}");
        let mut workload = small();
        workload.dims[2].name = "priority".into();
        workload.dims[2].unit = Unit::Milli;
        assert!(written(&workload).unwrap_err().to_string().contains("priority"));
        let mut workload = small();
        workload.jobs[0] = workload.job_names.split("");
        assert!(written(&workload).unwrap_err().to_string().contains("the job ''"));
    }
}
