//! Tables as canonical CSV: the columns of the declarations, integers in decimal, doubles in the fewest digits that identify them.

use plimsoll_base::column::{Cell, ColumnValue, Computed, TableRow};
use plimsoll_base::units::Dim;

/// The tables of a run, as CSV with a header. Absent values are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTables {
    /// The row of the run, with the columns of the table `runs`.
    pub runs: String,
    /// The jobs in order of completion, with the columns of the table `jobs`.
    pub jobs: String,
    /// The values over time, with the columns of the table `fairness`; without rows if the plan has no such table.
    pub fairness: String,
}

/// A CSV text that is being written.
pub(crate) struct CsvText(csv::Writer<Vec<u8>>);

impl CsvText {
    /// Creates a text with a header.
    pub fn new<'n>(columns: impl IntoIterator<Item = &'n str>) -> CsvText {
        let mut text = CsvText(csv::Writer::from_writer(Vec::new()));
        text.row(columns.into_iter().map(Cell::Text));
        text
    }

    /// Adds a row. Writing to memory cannot fail, and all rows have the length of the header.
    pub fn row<'c>(&mut self, cells: impl IntoIterator<Item = Cell<'c>>) {
        let fields = cells.into_iter().map(|cell| match cell {
            Cell::Null => String::new(),
            Cell::Int(value) => value.to_string(),
            Cell::Large(value) => value.to_string(),
            Cell::Float(value) => value.to_string(),
            Cell::Text(text) => text.to_owned(),
        });
        self.0.write_record(fields).expect("rows of equal length in memory");
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        let bytes = self.0.into_inner().expect("memory can be written");
        String::from_utf8(bytes).expect("all cells are text")
    }
}

/// A table of rows of one declaration.
pub(crate) struct CsvTable<R: TableRow> {
    text: CsvText,
    /// The function of each column, and the index of its resource.
    values: Vec<(ColumnValue<R>, usize)>,
}

impl<R: TableRow> CsvTable<R> {
    /// Creates a table for a run with these resources.
    pub fn new(dims: &[Dim]) -> CsvTable<R> {
        let columns = R::columns();
        let names: Vec<String> =
            columns.iter().flat_map(|column| column.described(dims)).map(|column| column.name).collect();
        let each = |value: ColumnValue<R>| (0..if value.each() { dims.len() } else { 1 }).map(move |d| (value, d));
        let values = columns.iter().flat_map(|column| each(column.value)).collect();
        CsvTable { text: CsvText::new(names.iter().map(String::as_str)), values }
    }

    /// Adds a row.
    pub fn push<'a>(&mut self, row: &'a R::Of<'a>) {
        let CsvTable { text, values } = self;
        text.row(values.iter().map(|(value, d)| value.cell(row, *d)));
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.text.finish()
    }
}
