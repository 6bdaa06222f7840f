//! Checks whether a kind of figure can show the requested columns.

use plimsoll_base::error::{Error, Result};
use plimsoll_results::schema::Table;

use super::check::{Checker, FigureRequest, FilterValue};
use super::field::{Datum, Field, FigureColumn};
use super::kinds::{Draw, KindRow, X};

impl Checker<'_> {
    /// Checks that the kind can show the request.
    pub(super) fn suits(&self, request: &FigureRequest, kind: &KindRow) -> Result<()> {
        let numbers = |field: &Field| match field {
            Field::Axis(at, ..) => {
                self.scope.axes[*at].1.iter().all(|text| matches!(Datum::of_axis(text), Datum::Number(_)))
            }
            Field::Column(column) => !column.text,
            Field::Seed => true,
            _ => false,
        };
        if let (Some(x), X::Numbers) = (&request.x, kind.x)
            && !numbers(x)
        {
            let expected =
                format!("numbers along x; for names such as these use kind = \"bars\" instead of {}", self.file.kind);
            return Err(Error::plan(self.key("x"), format!("'{}'", x.name()), expected));
        }
        if kind.x == X::Time && !FigureColumn::all(request.table, &[]).iter().any(|one| one.name == "time_s") {
            let series = Table::all().filter(|table| FigureColumn::all(*table, &[]).iter().any(|c| c.name == "time_s"));
            let names = series.map(|table| table.name()).collect::<Vec<_>>().join(", ");
            return Err(Error::plan(
                self.key("table"),
                format!("'{}'", request.table.name()),
                format!("a table over time: {names}"),
            ));
        }
        if matches!(kind.draw, Draw::Differences(_)) && self.scope.policies.len() < 2 {
            let expected = "two policies or more: it shows how they differ from the baseline";
            return Err(Error::plan(self.key("kind"), format!("'{}'", kind.name), expected));
        }
        for (key, given) in [
            ("series", self.file.series.is_some()),
            ("facet", self.file.facet.is_some()),
            ("stat", self.file.stat.is_some()),
            ("scale", self.file.scale.is_some()),
            ("percent", self.file.percent.is_some()),
            ("bands", self.file.bands.is_some()),
        ] {
            if given && !kind.takes.contains(&key) {
                let expected = format!("no '{key}': a figure of kind '{}' has none", self.file.kind);
                return Err(Error::plan(self.key(key), "a value", expected));
            }
        }
        Ok(())
    }

    /// Checks that each distribution is of one policy and one cell. Errors: the policy or an axis has several values after the filter, but
    /// is not used as x, rows, series or facet.
    pub(super) fn keyed(&self, request: &FigureRequest) -> Result<()> {
        let named = || request.x.iter().chain(&request.rows).chain(&request.series).chain(&request.facet);
        let passing = |field: &Field, values: &[String], datum: &dyn Fn(&str) -> Datum| -> Vec<String> {
            let own = request.filter.iter().filter(|(one, _)| one == field);
            let passes = |value: &Datum| own.clone().all(|(_, wanted)| wanted.iter().any(|one| one.fits(value)));
            values.iter().filter(|value| passes(&datum(value))).cloned().collect()
        };
        // If the figure is of one cell, or has a key for cells, a curve has one value on each axis.
        let one_cell = |(field, wanted): &(Field, Vec<FilterValue>)| {
            *field == Field::Cell && matches!(wanted[..], [FilterValue::Value(_)])
        };
        let by_cell = named().any(|field| *field == Field::Cell) || request.filter.iter().any(one_cell);
        let policies = passing(&Field::Policy, &self.scope.policies, &|name| Datum::Text(name.to_owned()));
        let policy = std::iter::once((Field::Policy, "policy", policies));
        let axes = request.axes.iter().zip(&self.scope.axes).filter(|_| !by_cell);
        let axes =
            axes.map(|(field, (name, values))| (field.clone(), name.as_str(), passing(field, values, &Datum::of_axis)));
        for (field, name, values) in policy.chain(axes) {
            if values.len() > 1 && !named().any(|one| *one == field) {
                let given =
                    format!("'{}' without a key for '{name}', which has {} values", self.file.kind, values.len());
                let expected = format!(
                    "'{name}' in series, facet, x or where, since rows of different values are not one distribution"
                );
                return Err(Error::plan(self.key("series"), given, expected));
            }
        }
        Ok(())
    }
}
