//! Marks in tables of means: the best values, the equivalent ones, and the tests behind the marks.

use plimsoll_metrics::compare::ALPHA;
use plimsoll_metrics::{Award, Contest, Design, MARGIN, awards};

use crate::html::{HtmlTable as Sheet, Mark};

/// The means of one metric in a sheet: the values of the candidates, and the cell of each candidate as `(row, column)`.
pub(crate) struct ShownMetric {
    pub contest: Contest,
    pub cells: Vec<(usize, usize)>,
}

const GREEN: &str = "Green: significantly better than all others.";

/// Describes the mark of equivalent values.
fn equal() -> String {
    format!("“=”: the best mean and the means shown to be equivalent to it, within {:.0} %.", 100.0 * MARGIN)
}

/// Marks the best values and the values equivalent to the best, and describes the tests below the sheet. With fewer than two seeds there
/// are no marks.
pub(crate) fn mark(sheet: &mut Sheet, design: Design, shown: Vec<ShownMetric>) {
    let (contests, cells): (Vec<Contest>, Vec<Vec<(usize, usize)>>) =
        shown.into_iter().map(|one| (one.contest, one.cells)).unzip();
    let found = awards(design, &contests);
    for (awards, cells) in found.awards.iter().zip(&cells) {
        let marked = awards.iter().zip(cells).filter_map(|(award, &(row, column))| match award {
            Award::Best => Some((row, column, Mark::Best)),
            Award::Equivalent => Some((row, column, Mark::Equivalent)),
            Award::Unmarked => None,
        });
        sheet.marks.extend(marked);
    }
    // The note explains only marks that occur.
    let any = |wanted: Mark| sheet.marks.iter().any(|(.., mark)| *mark == wanted);
    let marks = match (any(Mark::Best), any(Mark::Equivalent)) {
        (true, true) => format!("{GREEN} {} No mark: neither is shown.", equal()),
        (true, false) => format!("{GREEN} No mark: this is not shown."),
        (false, true) => format!("{} No mark: this is not shown.", equal()),
        (false, false) => {
            let margin = 100.0 * MARGIN;
            format!(
                "No value is marked: no value is shown to be better than all others or, within {margin:.0} %, equivalent to the best."
            )
        }
    };
    sheet.note = match found.family {
        0 => String::new(),
        family => format!(
            "{marks} p < {ALPHA} in {}, corrected by Holm's method for all {family} pairs of policies in this table.",
            design.test()
        ),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_base::column::Better;

    #[test]
    fn marks_stand_where_the_candidates_do() {
        let values = [[9.0, 9.3, 9.2, 9.1], [1.0, 1.1, 1.2, 1.1], [1.001, 1.1, 1.199, 1.1]];
        let values = values.map(|values| values.map(Some).to_vec());
        let shown = |values: &[Vec<Option<f64>>]| ShownMetric {
            contest: Contest { better: Better::Lower, values: values.to_vec() },
            cells: (0..values.len()).map(|row| (row, 4)).collect(),
        };
        let mut sheet = Sheet::default();
        mark(&mut sheet, Design::Paired, vec![shown(&values)]);
        assert_eq!(sheet.marks, [(1, 4, Mark::Equivalent), (2, 4, Mark::Equivalent)]);
        assert!(sheet.note.contains("all 3 pairs") && sheet.note.starts_with('“'), "{}", sheet.note);
        let mut sheet = Sheet::default();
        mark(&mut sheet, Design::Unpaired, vec![shown(&values[..2])]);
        assert_eq!(sheet.marks, [(1, 4, Mark::Best)]);
        assert!(sheet.note.starts_with(GREEN) && !sheet.note.contains('='), "{}", sheet.note);
        let mut sheet = Sheet::default();
        mark(&mut sheet, Design::Paired, vec![shown(&[vec![Some(1.0)], vec![Some(2.0)]])]);
        assert_eq!((sheet.marks.len(), sheet.note.as_str()), (0, ""));
    }
}
