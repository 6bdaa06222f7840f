//! Weights of users: one number, or one per resource.
//!
//! Users with equal weight vectors share a class. Weights are read from a CSV file ([`Weights::read`]) as positive decimals and stored as
//! integers in millionths; a zero, an unknown resource and a repeated column are errors.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::pinned::Pinned;
use plimsoll_base::rows::{InputColumn, InputRow, InputRows, Separator};
use plimsoll_base::units::{Dim, MAX_DIMS, Resources, Rounding};

/// Weight 1 in millionths, the unit of weights.
pub const WEIGHT_ONE: u64 = 1_000_000;

/// The distinct weight vectors of a run (classes) and the class of each user. Class 0 has weight 1 for every resource.
///
/// Source of vector weights: Ghodsi et al., NSDI 2011, §4.3.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    classes: Vec<Class>,
    by_name: HashMap<String, u32>,
}

/// One weight vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Class {
    each: [u64; MAX_DIMS],
    /// The weight, if it is one number for all resources. Policies without resources, such as slots, use it.
    whole: Option<u64>,
}

impl Default for Weights {
    fn default() -> Weights {
        let one = Class { each: [WEIGHT_ONE; MAX_DIMS], whole: Some(WEIGHT_ONE) };
        Weights { classes: vec![one], by_name: HashMap::new() }
    }
}

impl Weights {
    /// Reads a CSV with the columns `user` and `weight`, or `user` and one column per resource (named as in the trace; a resource without a
    /// column has weight 1, or `weight` if that column is present too).
    ///
    /// Users without a row have weight 1. Errors: [`Error::Trace`] with the line and the column.
    pub fn read(file: &Pinned, dims: &[Dim]) -> Result<Weights> {
        Weights::read_from(Box::new(file.open()?), file.path(), dims)
    }

    /// Reads the content of such a file; `path` is for messages. Errors: as [`Weights::read`].
    pub fn read_from(content: Box<dyn Read + Send>, path: &Path, dims: &[Dim]) -> Result<Weights> {
        let mut rows = InputRows::new(content, path, Separator::Comma);
        let empty = || Error::trace(path, 0, "", "the file is empty; expected user,weight or user and resources");
        let columns = Columns::find(&rows.read()?.ok_or_else(empty)?, dims)?;
        let mut weights = Weights::default();
        let mut index: HashMap<Class, u32> = HashMap::from([(weights.classes[0], 0)]);
        while let Some(row) = rows.read()? {
            row.expect_fields(columns.fields..=columns.fields, &format!("{}, as in the header", columns.fields))?;
            let class = columns.class(&row, dims)?;
            let id = *index.entry(class).or_insert_with(|| {
                weights.classes.push(class);
                weights.classes.len() as u32 - 1
            });
            let user = row.name(InputColumn::new(columns.user, "user"))?;
            if weights.by_name.insert(user.to_owned(), id).is_some() {
                return Err(row.error("user", format!("'{user}' is given twice; expected one row per user")));
            }
        }
        Ok(weights)
    }

    /// Creates weights with one number per user, in millionths.
    pub fn from_scalars<'a>(users: impl IntoIterator<Item = (&'a str, u64)>) -> Weights {
        Weights::default().with_scalars(users)
    }

    /// Replaces the weights of these users by one number per user, in millionths.
    pub fn with_scalars<'a>(mut self, users: impl IntoIterator<Item = (&'a str, u64)>) -> Weights {
        for (user, weight) in users {
            let class = Class { each: [weight; MAX_DIMS], whole: Some(weight) };
            let id = self.classes.iter().position(|known| *known == class).unwrap_or_else(|| {
                self.classes.push(class);
                self.classes.len() - 1
            });
            self.by_name.insert(user.to_owned(), id as u32);
        }
        self
    }

    /// Returns the number of distinct weight vectors.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Returns the class of a user by name.
    pub fn class_of(&self, name: &str) -> u32 {
        self.by_name.get(name).copied().unwrap_or(0)
    }

    /// Returns a class's weight per resource, in millionths.
    pub fn each(&self, class: usize) -> &[u64; MAX_DIMS] {
        &self.classes[class].each
    }

    /// Returns `1 / (c_r w_r)` by class of weights, with the capacity `c_r` of the cluster; 0 for a resource that the cluster does not have.
    pub fn inverse(&self, capacity: &Resources) -> Vec<[f64; MAX_DIMS]> {
        let inverse = |class: &Class| {
            std::array::from_fn(|d| match capacity.0[d] {
                0 => 0.0,
                capacity => WEIGHT_ONE as f64 / (capacity as f64 * class.each[d] as f64),
            })
        };
        self.classes.iter().map(inverse).collect()
    }

    /// Returns a class's single weight, in millionths; `None` if its weights are given per resource only and differ.
    pub fn uniform(&self, class: usize) -> Option<u64> {
        self.classes[class].whole
    }

    /// Returns the names of users with a weight, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

struct Columns {
    fields: usize,
    user: usize,
    whole: Option<usize>,
    each: [Option<usize>; MAX_DIMS],
}

impl Columns {
    fn find(header: &InputRow<'_>, dims: &[Dim]) -> Result<Columns> {
        let fields = header.fields();
        let mut columns = Columns { fields, user: usize::MAX, whole: None, each: [None; MAX_DIMS] };
        for at in 0..fields {
            let name = header.text(InputColumn::new(at, "header"))?;
            let before = match name {
                "user" => std::mem::replace(&mut columns.user, at) != usize::MAX,
                "weight" => columns.whole.replace(at).is_some(),
                _ => {
                    let wanted = Dim::parse(name).0.name;
                    let Some(dim) = dims.iter().position(|dim| dim.name == wanted) else {
                        let known: Vec<&str> = dims.iter().map(|dim| dim.name.as_str()).collect();
                        let hint = did_you_mean(&wanted, known.iter().copied().chain(["user", "weight"]));
                        let known = known.join("', '");
                        let problem = format!("no such resource{hint}; expected 'user', 'weight', '{known}'");
                        return Err(header.error(name, problem));
                    };
                    columns.each[dim].replace(at).is_some()
                }
            };
            if before {
                return Err(header.error(name, "is given twice"));
            }
        }
        if columns.user == usize::MAX {
            return Err(header.error("user", "is missing; expected user,weight or user and resources"));
        }
        if columns.whole.is_none() && columns.each.iter().all(Option::is_none) {
            return Err(header.error("weight", "is missing; expected user,weight or user and resources"));
        }
        Ok(columns)
    }

    fn class(&self, row: &InputRow<'_>, dims: &[Dim]) -> Result<Class> {
        let read = |at: usize, name: &str| {
            const EXPECTED: &str = "a weight above 0";
            let column = InputColumn::new(at, name);
            match row.number(column, WEIGHT_ONE, Rounding::Nearest, EXPECTED)? {
                0 => Err(row.wrong(column, "is not above 0", EXPECTED)),
                weight => Ok(weight),
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
