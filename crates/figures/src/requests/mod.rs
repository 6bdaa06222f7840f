//! The figures that a plan requests: `[[figure]]`, each described by kind, x, y, series and facet.
//!
//! Requests are checked before the runs, are not part of a run's identity, and are stored with the results in `figures.toml`, so that
//! figures can be redrawn or replaced from the tables alone.

mod check;
mod draw;
mod field;
mod file;
mod kind;
mod kinds;
mod rows;
mod scope;
mod suits;

use std::path::Path;

use check::Checker;
pub use check::FigureRequest;
pub use field::heading;
use file::{AllFile, FigureFile};
use kind::FigureKind;
use plimsoll_base::error::{Error, Result, alternatives, did_you_mean};
use plimsoll_base::rows::read_text_if_there;
use plimsoll_base::tree::{Node, Place, Value};
use plimsoll_charts::figure::MANY;
use plimsoll_charts::paper::{Paper, Preset, points};
use plimsoll_results::files::REQUESTS;
use plimsoll_results::manifest::{FileState, Manifest, state};
use plimsoll_store::file::{digest_of, write_whole};
pub use rows::Whole;
pub use scope::Scope;

use crate::gallery::{self, Gallery};

/// Returns the kinds that a plan can request: names and descriptions.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    kinds::KINDS.iter().map(|kind| (kind.name, kind.about))
}

/// The keys of a plan about figures.
pub const KEYS: [&str; 2] = ["figure", "figures"];

/// Removes the tables about figures from a plan and returns them, to be read later.
pub fn split(plan: &mut Node) -> Node {
    let said = KEYS.iter().filter_map(|key| plan.take_entry(key)).collect();
    Node { place: plan.place.clone(), value: Value::Table(said) }
}

/// The figures of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// The plan's text about figures, as TOML; empty if there is none.
    pub text: String,
    /// The default size of figures.
    pub paper: Paper,
    /// The requested figures, in order; if empty, the figures of every report are drawn.
    pub list: Vec<FigureRequest>,
}

impl Requests {
    /// Removes the tables about figures from a plan, and checks them. Errors: [`Error::Placed`].
    pub fn extract(plan: &mut Node, scope: &Scope) -> Result<Requests> {
        let said = split(plan);
        Requests::read(&said, scope).map_err(|error| said.locate(error))
    }

    fn read(said: &Node, scope: &Scope) -> Result<Requests> {
        let text = said.plain_table()?.to_string();
        let all = said.get("figures").map_or(Ok(AllFile::default()), |entry| entry.node.read())?;
        let mut paper = Paper::from_preset(all.preset.map(|name| Preset::parse("figures.preset", &name)).transpose()?);
        if let Some(width) = all.width {
            paper.width = Some(points("figures.width", width)?);
        }
        let items = match said.get("figure").map(|entry| &entry.node) {
            None => &[][..],
            Some(node) => node.list().ok_or_else(|| node.place.wrong("figure", "expected tables [[figure]]"))?,
        };
        let mut list: Vec<FigureRequest> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let file: FigureFile = item.read()?;
            let named = file.name.is_some();
            let mut request = Checker { scope, file: &file, at }.request(paper)?;
            if list.iter().any(|other| other.name == request.name) {
                if named {
                    let expected = "a name that no other figure has";
                    return Err(Error::plan(format!("figure[{at}].name"), format!("'{}'", request.name), expected));
                }
                request.name = format!("{}-{}", request.name, at + 1);
            }
            list.push(request);
        }
        Ok(Requests { text, paper, list })
    }

    /// Reads the requests stored with the results. Errors: [`Error::Placed`].
    pub fn beside(whole: &Whole) -> Result<Requests> {
        let path = whole.folder.join(REQUESTS);
        let text = read_text_if_there(&path)?.unwrap_or_default();
        Requests::extract(&mut Node::toml(&Place::whole_text(path, text))?, &whole.scope())
    }

    /// Writes the plan's requests for figures to the results folder; without requests there is no file. A file that a user has changed
    /// remains and defines the figures; a note reports this.
    pub fn write(&self, folder: &Path) -> Result<Option<String>> {
        let path = folder.join(REQUESTS);
        // A file with the same content was written by a process that was killed before it could record it.
        let known =
            Manifest::known(folder)?.files.get(REQUESTS).cloned().into_iter().chain([digest_of(self.text.as_bytes())]);
        let states: Vec<FileState> = known.map(|digest| state(folder, REQUESTS, &digest)).collect();
        if states.contains(&FileState::Changed) && !states.contains(&FileState::AsMade) {
            return Ok(Some(format!(
                "{} was changed manually: it defines the figures; remove it, and the next run draws the figures of the plan",
                path.display()
            )));
        }
        let written = if self.text.is_empty() { None } else { Some(write_whole(&path, self.text.as_bytes())?) };
        Manifest::renew(folder, None, &[REQUESTS], written.as_slice()).map(|()| None)
    }

    /// Replaces the paper of all figures; a requested height remains.
    pub fn on(mut self, paper: Paper) -> Requests {
        self.paper = paper;
        for request in &mut self.list {
            request.paper = Paper { height: request.paper.height, ..paper };
        }
        self
    }

    /// Returns the requested built-in figures with their papers; without a request for a built-in figure, all of them.
    pub fn builtin(&self) -> Vec<(&'static str, Paper)> {
        let with = |names: &'static [&'static str], paper: Paper| names.iter().map(move |name| (*name, paper));
        match self.list.iter().any(|request| request.builtin().is_some()) {
            true => self.list.iter().flat_map(|one| with(one.builtin().unwrap_or_default(), one.paper)).collect(),
            false => with(&gallery::NAMES, self.paper).collect(),
        }
    }

    /// Returns the columns of the `runs` table that the figures show, in their order.
    pub fn metrics(&self) -> Vec<String> {
        let mut metrics: Vec<String> = Vec::new();
        for name in self.list.iter().flat_map(FigureRequest::metrics) {
            if !metrics.iter().any(|known| known == name) {
                metrics.push(name.to_owned());
            }
        }
        metrics
    }

    /// Returns the text about figures, to be appended to a plan.
    pub fn appendix(&self) -> String {
        if self.text.is_empty() { String::new() } else { format!("\n{}", self.text) }
    }

    /// Draws the requested figures of a study, or by default the figures of every report; for a sweep, the figures over all cells. `only`
    /// are names of figures or of built-in kinds; if it is empty, all figures are drawn.
    ///
    /// Errors: an unknown name, a damaged table.
    pub fn draw(&self, whole: &Whole, only: &[String]) -> Result<Gallery> {
        let sensible;
        let list = match self.list.is_empty() {
            true => {
                sensible = sensible_ones(&whole.scope(), self.paper)?;
                &sensible
            }
            false => &self.list,
        };
        let names = list.iter().map(|request| request.name.as_str()).chain(gallery::NAMES);
        if let Some(unknown) = only.iter().find(|one| !names.clone().any(|name| name == one.as_str())) {
            let hint = did_you_mean(unknown, names.clone());
            let expected = alternatives(unknown, names, "plimsoll plot --help") + &hint;
            return Err(Error::plan("--only", format!("'{unknown}'"), expected));
        }
        let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
        let mut all = Gallery::default();
        for request in list {
            match (request.builtin(), whole.alone()) {
                (None, _) if wanted(&request.name) => all.add(request.draw(whole)?),
                (Some(kinds), Some(results)) => {
                    for kind in kinds.iter().filter(|kind| wanted(kind)) {
                        all.add(gallery::draw(results, kind, &request.paper)?);
                    }
                }
                _ => {}
            }
        }
        if let Some(results) = whole.alone() {
            // If the plan requests no figure, all built-in figures are drawn; otherwise only the requested ones and those that `only`
            // names.
            let listed: Vec<&str> = list.iter().flat_map(|one| one.builtin().unwrap_or_default()).copied().collect();
            let more =
                |kind: &&str| !listed.contains(kind) && (self.list.is_empty() || !only.is_empty()) && wanted(kind);
            for kind in gallery::NAMES.into_iter().filter(more) {
                all.add(gallery::draw(results, kind, &self.paper)?);
            }
        }
        Ok(all)
    }
}

/// Returns one figure per headline metric, over the first axis and with panels for the other axes. Without axes, the figures rank the
/// policies; there are none if the policies are few.
fn sensible_ones(scope: &Scope, paper: Paper) -> Result<Vec<FigureRequest>> {
    let (first, others) = scope.axes.split_first().map_or((None, &[][..]), |(first, others)| (Some(first), others));
    let kind = match first {
        None if scope.policies.len() <= MANY => return Ok(Vec::new()),
        None => "ranks",
        Some((_, values)) if values.iter().all(|text| field::number(text).is_some()) => "lines",
        Some(_) => "bars",
    };
    debug_assert!(FigureKind::parse(kind).is_some());
    let mut metrics = vec!["completion_mean_s".to_owned(), "slowdown_mean".to_owned()];
    metrics.extend(scope.dims.first().map(|dim| format!("used_{}", dim.name)));
    metrics.push("speed_jain".to_owned());
    let request = |(at, metric): (usize, String)| {
        let facet: Vec<String> = others.iter().map(|(axis, _)| axis.clone()).collect();
        let file = FigureFile {
            kind: kind.to_owned(),
            name: Some(metric.clone()),
            x: first.map(|(axis, _)| axis.clone()),
            y: Some(file::Words(vec![metric])),
            facet: (!facet.is_empty()).then_some(file::Words(facet)),
            ..FigureFile::default()
        };
        Checker { scope, file: &file, at }.request(paper)
    };
    metrics.into_iter().enumerate().map(request).collect()
}
