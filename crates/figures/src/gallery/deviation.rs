//! Distances of shares from fluid DRF: distributions over time, all seeds together.

use plimsoll_base::error::Result;
use plimsoll_charts::figure::Axis;
use plimsoll_charts::paper::Paper;
use plimsoll_results::read::Results;
use plimsoll_results::schema::Table;

use super::fairness::panels;
use super::{Gallery, seeds_of};

/// The panels: a heading and a column of the `fairness` table.
const PANELS: [(&str, &str); 2] = [("Mean over users", "deviation_mean"), ("Largest", "deviation_max")];

/// Draws the distances of dominant shares from divisible DRF while two or more users wait.
pub fn deviation(results: &Results, paper: &Paper) -> Result<Gallery> {
    let Some(panels) = panels(results, PANELS, 0.0)? else {
        return Ok(Gallery::without_table("deviation", Table::Fairness));
    };
    if panels.empty() || panels.largest == 0.0 {
        return Ok(Gallery::without("deviation", "at no time were two users waiting, or all shares were as in DRF"));
    }
    let caption = format!(
        "Distance of users' dominant shares from those under DRF with divisible tasks{}: the share of time in which the \
         mean over users, or the largest distance, is at most the value on the x axis. Only time with two or more waiting users counts.",
        seeds_of(results)
    );
    let svg = panels.draw(Axis::fraction("Distance (% of the cluster)"), paper);
    Ok(Gallery::with_figure("deviation", caption, svg, panels.data("distance")))
}
