//! The size of a figure: the column widths of common paper formats, and slides.
//!
//! Figures are drawn at their final size, with most text at 7 to 8 points and most lines at 0.75 points or more, so that they are included
//! in a paper without scaling. Widths: ACM `acmart` sigconf (241.1 and 506.3 pt), IEEEtran (252 and 516 pt), USENIX (3.33 in).

use super::figure::Chart;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::named;

named! {
    /// A named width of figures.
    Preset {
        Acm "acm": "One column of an ACM page",
        AcmWide "acm-wide": "The whole width of an ACM page",
        Ieee "ieee": "One column of an IEEE page",
        IeeeWide "ieee-wide": "The whole width of an IEEE page",
        Usenix "usenix": "One column of a USENIX page",
        Slides "slides": "A slide: twice the size, including the text",
    }
}

impl Preset {
    fn paper(self) -> Paper {
        let (width, zoom) = match self {
            Preset::Acm => (241.1, 1.0),
            Preset::AcmWide => (506.3, 1.0),
            Preset::Ieee => (252.0, 1.0),
            Preset::IeeeWide => (516.0, 1.0),
            Preset::Usenix => (240.0, 1.0),
            Preset::Slides => (320.0, 2.0),
        };
        Paper { width: Some(width), height: None, zoom }
    }
}

/// The sheet for a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paper {
    /// The width in points; if absent, each kind of figure has its own.
    pub width: Option<f64>,
    /// The height in points; if absent, in proportion to the width.
    pub height: Option<f64>,
    /// The magnification of the drawing, including text.
    pub zoom: f64,
}

/// The least width of a panel with readable title and labels.
const PANEL: f64 = 84.0;

/// The approximate space beside and below panels.
const AROUND: (f64, f64) = (44.0, 40.0);

impl Default for Paper {
    fn default() -> Paper {
        Paper { width: None, height: None, zoom: 1.0 }
    }
}

impl Paper {
    /// Returns the paper of a preset; the default paper without a preset.
    pub fn from_preset(preset: Option<Preset>) -> Paper {
        preset.map(Preset::paper).unwrap_or_default()
    }

    /// Creates a paper of this width; errors name the option or plan key `key`. Errors: [`Error::Plan`] for less than 60 points or more
    /// than 2000.
    pub fn wide(key: &str, width: f64) -> Result<Paper> {
        Ok(Paper { width: Some(points(key, width)?), ..Paper::default() })
    }

    /// Adapts a chart to the width of the paper, with as many panels side by side as fit; panels keep their height.
    pub fn fit(&self, chart: Chart, panels: usize) -> Chart {
        let (natural, height) = chart.size_pt;
        let width = self.width.unwrap_or(natural);
        let room = (((width - AROUND.0) / PANEL) as usize).max(1);
        let columns = chart.columns.map(|columns| columns.min(room));
        let rows = |columns: Option<usize>| panels.div_ceil(columns.unwrap_or(1).max(1)).max(1) as f64;
        let grown = AROUND.1 + (height - AROUND.1) * rows(columns) / rows(chart.columns);
        Chart { size_pt: (width, self.height.unwrap_or(grown)), columns, ..chart }
    }

    /// Enlarges a drawing.
    pub fn zoomed(&self, svg: String) -> String {
        if self.zoom == 1.0 {
            return svg;
        }
        let mut out = svg;
        for name in [" width=\"", " height=\""] {
            let Some(from) = out.find(name).map(|at| at + name.len()) else { continue };
            let Some(to) = out[from..].find('"').map(|at| from + at) else { continue };
            if let Ok(value) = out[from..to].parse::<f64>() {
                out.replace_range(from..to, &(value * self.zoom).to_string());
            }
        }
        out
    }
}

/// Checks a width or a height in points; errors name `key`. Errors: [`Error::Plan`] for less than 60 or more than 2000.
pub fn points(key: &str, value: f64) -> Result<f64> {
    match (60.0..=2000.0).contains(&value) {
        true => Ok(value),
        false => Err(Error::plan(key, value, "points (1/72 inch), 60 to 2000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Join, Series, lines};

    fn chart(columns: Option<usize>) -> Chart {
        Chart { size_pt: (506.0, 160.0), columns, ..Chart::new(Axis::number("x"), Axis::number("y")) }
    }

    #[test]
    fn panels_without_room_move_below() {
        let fit = |preset, columns, panels| Paper::from_preset(preset).fit(chart(columns), panels);
        assert_eq!(fit(None, Some(3), 3).size_pt, (506.0, 160.0));
        let narrow = fit(Some(Preset::Acm), Some(3), 3);
        assert_eq!((narrow.columns, narrow.size_pt), (Some(2), (241.1, 280.0)));
        assert_eq!(fit(Some(Preset::Ieee), None, 1).size_pt, (252.0, 160.0));
    }

    #[test]
    fn slides_are_larger_but_not_other() {
        let drawn = lines(&chart(None), Join::Straight, &[Series::new("drf", vec![(0.0, 1.0), (1.0, 2.0)])]);
        let zoomed = Paper::from_preset(Some(Preset::Slides)).zoomed(drawn.clone());
        assert!(
            zoomed.starts_with("<svg ") && zoomed.contains("width=\"1012\" height=\"320\" viewBox=\"0 0 5060 1600\"")
        );
        assert_eq!(Paper::default().zoomed(drawn.clone()), drawn);
    }

    #[test]
    fn names_read_and_strangers_get_a_hint() {
        assert_eq!(Preset::parse("--preset", "ieee-wide").expect("a name"), Preset::IeeeWide);
        let said = Preset::parse("figures.preset", "amc").expect_err("no name").to_string();
        assert!(said.contains("figures.preset: 'amc'") && said.contains("did you mean 'acm'"), "{said}");
    }
}
