//! Weights of users: one number, or one a resource.

use std::collections::HashMap;
use std::path::Path;

use crate::error::{Error, Result, nearest};
use crate::units::{Dim, MAX_DIMS, Round, decimal};

/// Weight 1 in the integers that weights are kept in (millionths).
pub const WEIGHT_ONE: u64 = 1_000_000;

/// The distinct weight vectors of a run (classes) and the class of each user. Class 0 is weight 1 for everything.
///
/// Source of vector weights: Ghodsi et al., NSDI 2011, §4.3.
#[derive(Clone, Debug)]
pub struct Weights {
    classes: Vec<Class>,
    by_name: HashMap<String, u32>,
}

/// One weight vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Class {
    each: [u64; MAX_DIMS],
    /// The one number, where there is one: it counts where there are no resources, as with slots.
    whole: Option<u64>,
}

impl Default for Weights {
    fn default() -> Weights {
        let one = Class { each: [WEIGHT_ONE; MAX_DIMS], whole: Some(WEIGHT_ONE) };
        Weights { classes: vec![one], by_name: HashMap::new() }
    }
}

impl Weights {
    /// Reads a CSV with the columns `user` and `weight`, or `user` and one column a resource (named as in the trace;
    /// a resource without a column has weight 1, or `weight` if that column stands there too).
    ///
    /// Users that are not named have weight 1. Errors: [`Error::Trace`] with the line and the column.
    pub fn read(path: &Path, dims: &[Dim]) -> Result<Weights> {
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(|error| csv_error(path, &error))?;
        let header = reader.headers().map_err(|error| csv_error(path, &error))?.clone();
        let columns = Columns::find(path, &header, dims)?;
        let mut weights = Weights::default();
        let mut index: HashMap<Class, u32> = HashMap::from([(weights.classes[0], 0)]);
        for record in reader.records() {
            let record = record.map_err(|error| csv_error(path, &error))?;
            let line = record.position().map_or(0, csv::Position::line);
            let class = columns.class(path, line, &record, dims)?;
            let id = *index.entry(class).or_insert_with(|| {
                weights.classes.push(class);
                weights.classes.len() as u32 - 1
            });
            let user = record.get(columns.user).unwrap_or_default().to_owned();
            if weights.by_name.insert(user.clone(), id).is_some() {
                return Err(Error::trace(path, line, "user", format!("'{user}' stands twice; one row a user")));
            }
        }
        Ok(weights)
    }

    /// Weights given one number a user, in millionths.
    pub fn from_scalars<'a>(users: impl IntoIterator<Item = (&'a str, u64)>) -> Weights {
        let mut weights = Weights::default();
        for (user, weight) in users {
            let class = Class { each: [weight; MAX_DIMS], whole: Some(weight) };
            let id = weights.classes.iter().position(|known| *known == class).unwrap_or_else(|| {
                weights.classes.push(class);
                weights.classes.len() - 1
            });
            weights.by_name.insert(user.to_owned(), id as u32);
        }
        weights
    }

    /// How many distinct weight vectors there are.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// The class of a user by name.
    pub fn class_of(&self, name: &str) -> u32 {
        self.by_name.get(name).copied().unwrap_or(0)
    }

    /// A class's weight per resource, in millionths.
    pub fn each(&self, class: usize) -> &[u64; MAX_DIMS] {
        &self.classes[class].each
    }

    /// A class's one weight, in millionths; `None` if its weights differ by resource.
    pub fn whole(&self, class: usize) -> Option<u64> {
        self.classes[class].whole
    }

    /// Names that a weight was given for, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

struct Columns {
    user: usize,
    whole: Option<usize>,
    each: [Option<usize>; MAX_DIMS],
}

impl Columns {
    fn find(path: &Path, header: &csv::StringRecord, dims: &[Dim]) -> Result<Columns> {
        let mut columns = Columns { user: usize::MAX, whole: None, each: [None; MAX_DIMS] };
        for (at, name) in header.iter().enumerate() {
            let name = name.trim_start_matches('\u{feff}');
            match name {
                "user" => columns.user = at,
                "weight" => columns.whole = Some(at),
                _ => {
                    let wanted = Dim::parse(name).0.name;
                    let Some(dim) = dims.iter().position(|dim| dim.name == wanted) else {
                        let known: Vec<&str> = dims.iter().map(|dim| dim.name.as_str()).collect();
                        let hint = nearest(&wanted, known.iter().copied().chain(["user", "weight"]));
                        let hint = hint.map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
                        let known = known.join("', '");
                        let problem = format!("no such resource{hint}; expected 'user', 'weight', '{known}'");
                        return Err(Error::trace(path, 1, name, problem));
                    };
                    columns.each[dim] = Some(at);
                }
            }
        }
        if columns.user == usize::MAX {
            return Err(Error::trace(path, 1, "user", "is missing; expected user,weight or user and resources"));
        }
        if columns.whole.is_none() && columns.each.iter().all(Option::is_none) {
            return Err(Error::trace(path, 1, "weight", "is missing; expected user,weight or user and resources"));
        }
        Ok(columns)
    }

    fn class(&self, path: &Path, line: u64, record: &csv::StringRecord, dims: &[Dim]) -> Result<Class> {
        let read = |at: usize, column: &str| {
            let text = record.get(at).unwrap_or_default();
            match decimal(text.as_bytes(), WEIGHT_ONE, Round::Nearest) {
                Ok(0) => Err(Error::trace(path, line, column, format!("'{text}' is not above 0; expected a weight"))),
                Ok(weight) => Ok(weight),
                Err(problem) => {
                    Err(Error::trace(path, line, column, format!("'{text}' {problem}; expected a weight above 0")))
                }
            }
        };
        let whole = self.whole.map(|at| read(at, "weight")).transpose()?;
        let mut class = Class { each: [whole.unwrap_or(WEIGHT_ONE); MAX_DIMS], whole };
        for (dim, at) in self.each.iter().enumerate() {
            if let Some(at) = at {
                class.each[dim] = read(*at, &dims[dim].name)?;
            }
        }
        let (each, first) = (&class.each[..dims.len().max(1)], class.each[0]);
        if whole.is_none() && each.iter().all(|weight| *weight == first) {
            class = Class { each: [first; MAX_DIMS], whole: Some(first) };
        }
        Ok(class)
    }
}

/// A CSV error with its place.
fn csv_error(path: &Path, error: &csv::Error) -> Error {
    match error.kind() {
        csv::ErrorKind::Io(source) => Error::io(path, std::io::Error::new(source.kind(), source.to_string())),
        _ => Error::trace(path, error.position().map_or(0, csv::Position::line), "", error.to_string()),
    }
}
