//! Timelines as figures: machines by time or the stacked use of a pool, marks of events, and shares of users.
//!
//! A figure has at most [`CELLS`] rectangles. More tasks than that are aggregated: a cell has the colour of the user with the largest part
//! of its machines and its interval.

use std::collections::BTreeMap;

use plimsoll_base::error::{Error, Result};
use plimsoll_charts::figure::{
    Axis, Chart, TimelineBody, TimelineCell, TimelineChart, TimelineCurves, TimelineEvent, TimelineMarks, timeline,
    timeline_columns,
};
use plimsoll_metrics::numbers::{count, number, thousands};
use plimsoll_results::schema::Table;

use super::TimelineJob;
use super::lanes::Lanes;
use super::rows::{Detail, TaskEnd, TaskRow, UserIndex, each_chunk, each_task};
use super::series::{TimeBins, shares, usage};
use crate::picture::Picture;

/// Maximum number of rectangles of a figure.
const CELLS: usize = 40_000;

/// Maximum number of rows of a figure: more are not visible at its height.
const ROWS: usize = 160;

/// Draws the figure and writes it. Errors: as [`super::write`].
pub(super) fn write(job: &TimelineJob, notes: &mut Vec<String>) -> Result<()> {
    let width = job.request.paper.width.unwrap_or(Chart::PAGE.0);
    let (layers, users, others) = layers(job);
    let shown = users.len();
    let mut marks = EventMarks::new(job, timeline_columns(width));
    let mut facts = vec![count(job.overview.tasks, "task")];
    let body = match job.overview.is_pooled() {
        true => pool(job, &layers, shown, timeline_columns(width), &mut marks, notes)?,
        false => machines(job, &layers, shown, width, &mut marks, &mut facts)?,
    };
    if !arrivals(job, &mut marks)? {
        notes.push("no marks of arrivals: the run has no table 'jobs'".to_owned());
    }
    let curves = curves(job, &layers, shown, timeline_columns(width), notes)?;
    facts.extend(
        [("failure", job.overview.failures), ("preemption", job.overview.preemptions)]
            .into_iter()
            .filter(|(_, many)| *many > 0)
            .map(|(noun, many)| count(many, noun)),
    );
    let seconds = |time: u64| time as f64 / 1e6;
    let (from, until) = job.overview.window;
    let chart = TimelineChart {
        name: format!("Timeline of {} under {}", job.run.results.contents.name, job.run.policy()),
        width,
        window: (seconds(from), seconds(until)),
        users,
        others,
        body,
        marks: marks.strips(),
        curves,
        note: Some(facts.join("; ")),
    };
    let svg = job.request.paper.zoomed(timeline(&chart));
    let about = job.run.results.provenance(&job.run.results.contents.plan);
    Picture::from_path(job.request.output)?.write(&svg, &about)
}

/// Returns the layer of every user, the names of the layers, and the name of the layer of all other users, which is the last one.
fn layers(job: &TimelineJob) -> (Vec<usize>, Vec<String>, Option<String>) {
    let overview = job.overview;
    let shown = overview.largest.len().min(job.request.legend);
    let mut layers = vec![shown; overview.users.names.len()];
    overview.largest.iter().take(shown).enumerate().for_each(|(layer, &user)| layers[user] = layer);
    let names = overview.largest.iter().take(shown).map(|&user| overview.users.names[user].clone()).collect();
    let others = match overview.largest.len() - shown {
        0 => None,
        1 => Some("1 other".to_owned()),
        many => Some(format!("{} others", thousands(many as u64))),
    };
    (layers, names, others)
}

/// The columns of the figure with events of each kind.
struct EventMarks<'a> {
    job: &'a TimelineJob<'a>,
    bins: BTreeMap<&'static str, Vec<bool>>,
    columns: usize,
}

impl<'a> EventMarks<'a> {
    fn new(job: &'a TimelineJob, columns: usize) -> EventMarks<'a> {
        EventMarks { job, bins: BTreeMap::new(), columns }
    }

    fn add(&mut self, kind: &'static str, time: u64) {
        let (from, until) = self.job.overview.window;
        if (from..=until).contains(&time) {
            let place = (time - from) as f64 / (until - from) as f64 * self.columns as f64;
            let bins = self.bins.entry(kind).or_insert_with(|| vec![false; self.columns]);
            bins[(place as usize).min(self.columns - 1)] = true;
        }
    }

    fn add_end(&mut self, task: &TaskRow) {
        match task.end {
            TaskEnd::Failed => self.add("failures", task.finish),
            TaskEnd::Preempted => self.add("preemptions", task.finish),
            TaskEnd::Done | TaskEnd::Open => {}
        }
    }

    /// Returns the strips of the kinds with events.
    fn strips(&self) -> Vec<TimelineMarks> {
        let (from, until) = self.job.overview.window;
        let width = (until - from) as f64 / self.columns as f64;
        let kinds = [
            ("arrivals", TimelineEvent::Arrival),
            ("failures", TimelineEvent::Failure),
            ("preemptions", TimelineEvent::Preemption),
        ];
        let strip = |(kind, event): (&'static str, TimelineEvent)| {
            let bins = self.bins.get(kind)?;
            let at = |bin: usize| (from as f64 + (bin as f64 + 0.5) * width) / 1e6;
            let times = (0..self.columns).filter(|bin| bins[*bin]).map(at).collect();
            Some(TimelineMarks { label: kind.to_owned(), event, times })
        };
        kinds.into_iter().filter_map(strip).collect()
    }
}

/// Adds the arrivals of jobs of the selected users. Returns `false` if there is no table of jobs.
fn arrivals(job: &TimelineJob, marks: &mut EventMarks) -> Result<bool> {
    let Some(path) = job.run.results.file(Table::Jobs, job.run.key)? else { return Ok(false) };
    each_chunk(&path, &["user", "submit_us"], job.request.stop, |chunk| {
        let (names, times) = (chunk.names("user")?, chunk.integers("submit_us")?);
        for row in 0..chunk.rows {
            if let Some(time) = times[row].and_then(|time| u64::try_from(time).ok())
                && job.filter.has_user(names.get(row))
            {
                marks.add("arrivals", time);
            }
        }
        Ok(())
    })?;
    Ok(true)
}

/// Returns the panel of a pool: the use of a resource, or the running tasks if the run has no table of usage.
fn pool(
    job: &TimelineJob,
    layers: &[usize],
    shown: usize,
    columns: usize,
    marks: &mut EventMarks,
    notes: &mut Vec<String>,
) -> Result<TimelineBody> {
    let mut bins = TimeBins::new(job.overview.window, columns, shown + 1);
    let mut axis = Axis::number(job.resource.label());
    let has_usage = usage(job, layers, &mut bins)?;
    if !has_usage {
        if job.resource.is_chosen {
            return Err(without_usage(job));
        }
        axis = Axis::number("Running tasks");
        notes.push(format!("the stack shows running tasks instead of {}: {}", job.resource.dim.name, usage_remedy()));
    }
    let mut users = UserIndex::default();
    each_task(job.run, job.filter, &mut users, Detail::Figure, job.request.stop, |task| {
        marks.add_end(task);
        if !has_usage {
            bins.add(layers[task.user], task.start, task.finish, 1.0);
        }
        Ok(())
    })?;
    let layers = (0..=shown).map(|layer| bins.means(layer)).collect();
    Ok(TimelineBody::Stack { axis, ends: bins.ends(), layers })
}

/// Returns the error for `--resource` without a table of usage.
pub(super) fn without_usage(job: &TimelineJob) -> Error {
    let name = format!("'{}'", job.resource.dim.name);
    Error::plan("--resource", name, format!("a run with a table of usage, but {}", usage_remedy()))
}

/// Describes how a run gets a table of usage.
pub(super) fn usage_remedy() -> String {
    let table = Table::Usage.name();
    format!(
        "the run has no table '{table}' (in a plan, add \"{table}\" to tables = [..]; `plimsoll replay --series -o DIR`)"
    )
}

/// The rows of a figure of machines.
struct MachineRows {
    /// For each machine, its first row and its number of rows.
    places: BTreeMap<u32, (usize, usize)>,
    /// The number of lanes of each row.
    lanes: Vec<u32>,
    /// The number of machines of a row, if a row has several.
    machines: usize,
}

impl MachineRows {
    fn new(machines: &BTreeMap<u32, u32>) -> MachineRows {
        let all: usize = machines.values().map(|lanes| *lanes as usize).sum();
        let mut rows = MachineRows { places: BTreeMap::new(), lanes: Vec::new(), machines: 1 };
        if all <= ROWS {
            for (&machine, &lanes) in machines {
                rows.places.insert(machine, (rows.lanes.len(), lanes as usize));
                rows.lanes.extend((0..lanes).map(|_| 1));
            }
            return rows;
        }
        rows.machines = machines.len().div_ceil(ROWS);
        for (nth, (&machine, &lanes)) in machines.iter().enumerate() {
            let row = nth / rows.machines;
            rows.places.insert(machine, (row, 1));
            rows.lanes.resize(row + 1, 0);
            rows.lanes[row] += lanes;
        }
        rows
    }

    /// Returns the names of rows: the machine, or the first one of several.
    fn names(&self) -> Vec<(f64, f64, String)> {
        let mut names: Vec<(f64, f64, String)> = Vec::new();
        for (machine, (first, rows)) in &self.places {
            if names.last().is_none_or(|last| last.1 <= *first as f64) {
                names.push((*first as f64, (first + rows) as f64, machine.to_string()));
            }
        }
        names
    }

    /// Returns whether each row is a lane.
    fn are_lanes(&self) -> bool {
        self.lanes.iter().all(|lanes| *lanes == 1)
    }
}

/// Returns the panel of machines: a rectangle per task, or cells.
fn machines(
    job: &TimelineJob,
    layers: &[usize],
    shown: usize,
    width: f64,
    marks: &mut EventMarks,
    facts: &mut Vec<String>,
) -> Result<TimelineBody> {
    let rows = MachineRows::new(&job.overview.machines);
    let is_exact = job.overview.tasks <= CELLS as u64 && rows.are_lanes();
    let columns = (CELLS / rows.lanes.len().max(1)).clamp(1, timeline_columns(width));
    let mut exact = Vec::new();
    let mut grid = CellGrid::new(job.overview.window, columns, rows.lanes.clone(), shown + 1);
    let mut lanes: BTreeMap<u32, Lanes> = BTreeMap::new();
    let mut users = UserIndex::default();
    each_task(job.run, job.filter, &mut users, Detail::Figure, job.request.stop, |task| {
        marks.add_end(task);
        let Some((machine, &(first, many))) =
            task.machine.and_then(|machine| Some((machine, rows.places.get(&machine)?)))
        else {
            return Ok(());
        };
        let lane = lanes.entry(machine).or_default().place(task.start, task.finish) as usize;
        let row = first + if many > 1 { lane.min(many - 1) } else { 0 };
        if is_exact {
            exact.push(TimelineCell {
                top: row as f64,
                bottom: row as f64 + 1.0,
                from: task.start as f64 / 1e6,
                until: task.finish as f64 / 1e6,
                user: layers[task.user],
                strength: 1.0,
                stopped: matches!(task.end, TaskEnd::Failed | TaskEnd::Preempted) && job.filter.has_time(task.finish),
            });
        } else {
            grid.add(row, layers[task.user], task.start, task.finish);
        }
        Ok(())
    })?;
    let cells = if is_exact { exact } else { grid.cells() };
    if !is_exact {
        let seconds = (job.overview.window.1 - job.overview.window.0) as f64 / 1e6 / columns as f64;
        let lane = if rows.are_lanes() { "a lane".to_owned() } else { count(rows.machines as u64, "machine") };
        facts.push(format!(
            "aggregated in cells of {} s by {lane}: the colour of a cell is that of its largest user, its strength the part of lanes in use",
            number(Some(seconds)),
        ));
    }
    let label = if rows.machines > 1 { "Machine (first of a row)" } else { "Machine" };
    Ok(TimelineBody::Rows { label: label.to_owned(), names: rows.names(), rows: rows.lanes.len() as f64, cells })
}

/// The time of each layer in each row and interval.
struct CellGrid {
    from: u64,
    width: f64,
    columns: usize,
    lanes: Vec<u32>,
    layers: usize,
    busy: Vec<f64>,
}

impl CellGrid {
    fn new((from, until): (u64, u64), columns: usize, lanes: Vec<u32>, layers: usize) -> CellGrid {
        let busy = vec![0.0; lanes.len() * columns * layers];
        CellGrid { from, width: (until - from) as f64 / columns as f64, columns, lanes, layers, busy }
    }

    /// Adds a task. Tasks of one lane do not overlap, so the cost of all tasks is that of their number plus lanes times columns.
    fn add(&mut self, row: usize, layer: usize, start: u64, finish: u64) {
        let most = self.columns as f64;
        let place = |time: u64| ((time as f64 - self.from as f64) / self.width).clamp(0.0, most);
        let (from, until) = (place(start), place(finish).max(place(start) + 1e-6));
        let last = (until.ceil() as usize).min(self.columns);
        for column in (from.floor() as usize).min(self.columns - 1)..last {
            let part = until.min(column as f64 + 1.0) - from.max(column as f64);
            self.busy[(row * self.columns + column) * self.layers + layer] += part.max(0.0);
        }
    }

    /// Returns the cells in use; equal neighbours of a row are one cell.
    fn cells(&self) -> Vec<TimelineCell> {
        let mut cells: Vec<TimelineCell> = Vec::new();
        for (row, lanes) in self.lanes.iter().enumerate() {
            for column in 0..self.columns {
                let at = (row * self.columns + column) * self.layers;
                let busy = &self.busy[at..at + self.layers];
                let all: f64 = busy.iter().sum();
                if all <= 0.0 {
                    continue;
                }
                let user = (0..self.layers).fold(0, |best, layer| if busy[layer] > busy[best] { layer } else { best });
                let strength = (all / f64::from((*lanes).max(1)) * 4.0 - 1e-9).ceil().clamp(1.0, 4.0) / 4.0;
                let time = |column: usize| (self.from as f64 + column as f64 * self.width) / 1e6;
                let cell = TimelineCell {
                    top: row as f64,
                    bottom: row as f64 + 1.0,
                    from: time(column),
                    until: time(column + 1),
                    user,
                    strength,
                    stopped: false,
                };
                match cells.last_mut() {
                    Some(last)
                        if (last.top, last.until, last.user, last.strength)
                            == (cell.top, cell.from, cell.user, cell.strength) =>
                    {
                        last.until = cell.until;
                    }
                    _ => cells.push(cell),
                }
            }
        }
        cells
    }
}

/// Returns the panel of curves: dominant shares, or the use of a chosen resource by users of machines. `None` without their table.
fn curves(
    job: &TimelineJob,
    layers: &[usize],
    shown: usize,
    columns: usize,
    notes: &mut Vec<String>,
) -> Result<Option<TimelineCurves>> {
    let mut bins = TimeBins::new(job.overview.window, columns, shown + 1);
    let axis = if job.resource.is_chosen && !job.overview.is_pooled() {
        if !usage(job, layers, &mut bins)? {
            return Err(without_usage(job));
        }
        Axis::number(job.resource.label())
    } else {
        if !shares(job, layers, shown, &mut bins)? {
            let table = Table::Shares.name();
            notes.push(format!(
                "no shares of users: the run has no table '{table}' (in a plan, add \"{table}\" and \"fairness\" to tables = [..]; \
                 `plimsoll replay --series -o DIR`)"
            ));
            return Ok(None);
        }
        Axis::fraction("Dominant share")
    };
    Ok(Some(TimelineCurves { axis, curves: (0..shown).map(|layer| bins.curve(layer)).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lanes_machines_or_groups_of_machines() {
        let rows = |machines: u32, lanes: u32| MachineRows::new(&(0..machines).map(|one| (one, lanes)).collect());
        let few = rows(4, 3);
        assert_eq!((few.lanes.len(), few.machines, few.are_lanes(), few.names().len()), (12, 1, true, 4));
        let more = rows(100, 8);
        assert_eq!((more.lanes.len(), more.machines, more.are_lanes()), (100, 1, false));
        let many = rows(1000, 8);
        assert!(many.lanes.len() <= ROWS && many.machines == 7 && many.lanes[0] == 56);
        assert_eq!(many.names()[1].2, "7");
    }

    #[test]
    fn a_cell_has_the_colour_of_its_largest_user() {
        let mut grid = CellGrid::new((0, 100), 10, vec![2], 3);
        grid.add(0, 1, 0, 40);
        grid.add(0, 0, 0, 15);
        grid.add(0, 2, 95, 95);
        let cells = grid.cells();
        let short = |cell: &TimelineCell| (cell.from, cell.until, cell.user, cell.strength);
        let micros = |at: f64| at / 1e6;
        assert_eq!(
            cells.iter().map(short).collect::<Vec<_>>(),
            [
                (0.0, micros(10.0), 0, 1.0),
                (micros(10.0), micros(20.0), 1, 0.75),
                (micros(20.0), micros(40.0), 1, 0.5),
                (micros(90.0), micros(100.0), 2, 0.25),
            ]
        );
    }
}
