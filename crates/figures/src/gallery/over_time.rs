//! Figures over time, of the first seed: utilisation and shares.

use std::collections::BTreeMap;

use plimsoll_base::error::Result;
use plimsoll_base::units::resource_name;
use plimsoll_charts::figure::{Axis, Chart, Data, Join, Panel, Series, small_multiples};
use plimsoll_charts::paper::Paper;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;

use super::{Gallery, RunEnds, seed_of};
use plimsoll_metrics::numbers::capital;

/// Maximum number of users in a run for which the figure of shares is drawn.
const USERS_MOST: f64 = 60.0;

/// Maximum number of users with a curve.
const CURVES: usize = 6;

fn seconds(part: &Part) -> Result<Vec<f64>> {
    Ok(part.numbers("time_us")?.into_iter().map(|time| time.unwrap_or(f64::NAN) / 1e6).collect())
}

/// Returns the points of a column over time, up to the end of the run; an absent value breaks the curve.
fn points(part: &Part, column: &str, ends: &RunEnds) -> Result<Vec<(f64, f64)>> {
    let values = part.numbers(column)?.into_iter().map(|value| value.unwrap_or(f64::NAN));
    let mut points: Vec<(f64, f64)> = seconds(part)?.into_iter().zip(values).collect();
    prolong(&mut points, part, ends);
    Ok(points)
}

fn prolong(points: &mut Vec<(f64, f64)>, part: &Part, ends: &RunEnds) {
    if let Some(&(time, value)) = points.last()
        && ends.after(part, time) > time
    {
        points.push((ends.after(part, time), value));
    }
}

/// Returns one panel per column of the `fairness` table with one curve per policy.
fn by_column(results: &Results, parts: &[Part], columns: &[(String, String)], ends: &RunEnds) -> Result<Vec<Panel>> {
    let panel = |(title, column): &(String, String)| -> Result<Panel> {
        let series = parts
            .iter()
            .map(|part| Ok(Series::new(&results.contents.policies[part.policy], points(part, column, ends)?)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Panel { title: title.clone(), series })
    };
    columns.iter().map(panel).collect()
}

pub(super) fn chart(y: Axis, panels: usize, columns: usize) -> Chart {
    let rows = panels.div_ceil(columns.max(1));
    Chart {
        size_pt: (Chart::PAGE.0, 40.0 + 120.0 * rows as f64),
        columns: Some(columns),
        ..Chart::new(Axis::seconds("Time"), y)
    }
}

/// Draws the used fraction of each resource, one panel per resource.
pub fn utilisation(results: &Results, paper: &Paper) -> Result<Gallery> {
    let columns: Vec<(String, String)> =
        results.dims.iter().map(|dim| (capital(&resource_name(&dim.name)), format!("used_{}", dim.name))).collect();
    let mut names = vec!["time_us"];
    names.extend(columns.iter().map(|(_, column)| column.as_str()));
    let run = results.first_run();
    let parts = results.table(Table::Fairness, &names, Some(run))?;
    if parts.is_empty() {
        return Ok(Gallery::without_table("utilisation", Table::Fairness));
    }
    let panels = by_column(results, &parts, &columns, &RunEnds::read(results, Some(run))?)?;
    let chart = paper.fit(chart(Axis::fraction("In use"), panels.len(), panels.len().min(3)), panels.len());
    let caption = format!(
        "Share of each resource that running tasks use over time{}; more than 100 % is overcommitted.",
        seed_of(results, run)
    );
    let data = Data::of_panels(["resource", "policy", "time_s", "used"], &panels);
    Ok(Gallery::with_figure("utilisation", caption, small_multiples(&chart, Join::Steps, &panels), data))
}

/// Draws the dominant shares of the users with the largest shares, one panel per policy.
pub fn shares(results: &Results, paper: &Paper) -> Result<Gallery> {
    let run = results.first_run();
    let users = results.table(Table::Runs, &["users"], Some(run))?;
    let users = users.iter().map(|part| part.numbers("users")).collect::<Result<Vec<_>>>()?;
    let users = users.into_iter().flatten().flatten().fold(0.0, f64::max);
    if users > USERS_MOST {
        let why = format!("{users} users are too many to distinguish (at most {USERS_MOST}); see the users table");
        return Ok(Gallery::without("shares", &why));
    }
    let parts = results.table(Table::Shares, &["time_us", "user", "dominant_share"], Some(run))?;
    if parts.is_empty() {
        return Ok(Gallery::without_table("shares", Table::Shares));
    }
    let grids = results.table(Table::Fairness, &["time_us"], Some(run))?;
    let ends = RunEnds::read(results, Some(run))?;
    let curves: Vec<BTreeMap<String, Vec<(f64, f64)>>> = parts
        .iter()
        .map(|part| {
            let grid = grids.iter().find(|grid| grid.policy == part.policy).map(seconds).transpose()?;
            let mut curves = curves(part, grid)?;
            curves.values_mut().for_each(|curve| prolong(curve, part, &ends));
            Ok(curves)
        })
        .collect::<Result<_>>()?;
    let chosen = largest(&curves);
    let panel = |(part, curves): (&Part, &BTreeMap<String, Vec<(f64, f64)>>)| Panel {
        title: results.contents.policies[part.policy].clone(),
        series: chosen.iter().map(|user| Series::new(user, curves.get(user).cloned().unwrap_or_default())).collect(),
    };
    let panels: Vec<Panel> = parts.iter().zip(&curves).map(panel).collect();
    let chart = paper.fit(chart(Axis::fraction("Dominant share"), panels.len(), panels.len().min(3)), panels.len());
    let left_out = users as usize - chosen.len().min(users as usize);
    let others = match left_out {
        0 => String::new(),
        1 => "; 1 user with a smaller allocation is not shown".to_owned(),
        n => format!("; {n} users with smaller allocations are not shown"),
    };
    let caption = format!("Dominant share of each user over time{}{others}.", seed_of(results, run));
    let data = Data::of_panels(["policy", "user", "time_s", "dominant_share"], &panels);
    Ok(Gallery::with_figure("shares", caption, small_multiples(&chart, Join::Steps, &panels), data))
}

/// Returns the share of each user at every grid point: 0 if the table has no row of the user, since it is then not active.
fn curves(part: &Part, grid: Option<Vec<f64>>) -> Result<BTreeMap<String, Vec<(f64, f64)>>> {
    let (times, users, shares) = (seconds(part)?, part.names("user")?, part.numbers("dominant_share")?);
    let mut grid = grid.unwrap_or_else(|| times.clone());
    grid.dedup();
    let mut curves: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for user in &users {
        curves.entry(user.clone()).or_insert_with(|| grid.iter().map(|&time| (time, 0.0)).collect());
    }
    let mut at = 0;
    for ((time, user), share) in times.iter().zip(&users).zip(shares) {
        while at < grid.len() && grid[at] < *time {
            at += 1;
        }
        if let (Some(curve), Some(share)) = (curves.get_mut(user), share)
            && let Some(point) = curve.get_mut(at)
        {
            point.1 = share;
        }
    }
    Ok(curves)
}

/// Returns the users with the largest integrals of their shares over all panels, largest first; ties by name.
fn largest(curves: &[BTreeMap<String, Vec<(f64, f64)>>]) -> Vec<String> {
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for (user, curve) in curves.iter().flatten() {
        let area: f64 = curve.windows(2).map(|pair| pair[0].1 * (pair[1].0 - pair[0].0)).sum();
        *totals.entry(user).or_default() += area;
    }
    let mut users: Vec<(&str, f64)> = totals.into_iter().collect();
    users.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    users.into_iter().take(CURVES).map(|(user, _)| user.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_users_come_first_and_ties_go_by_name() {
        let curve = |share: f64| vec![(0.0, share), (10.0, 0.0)];
        let many = (0..9).map(|at| (format!("u{at}"), curve(if at == 4 { 0.5 } else { 0.1 }))).collect();
        assert_eq!(largest(&[many]), ["u4", "u0", "u1", "u2", "u3", "u5"]);
    }
}
