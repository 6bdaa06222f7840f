//! Usage, runtime quota and demand of every group over time, for the first seed: one panel per group and resource.

use plimsoll_base::error::Result;
use plimsoll_base::units::resource_name;
use plimsoll_charts::figure::{Axis, Data, Join, Panel, Series, small_multiples};
use plimsoll_charts::paper::Paper;
use plimsoll_results::read::Results;
use plimsoll_results::schema::Table;

use super::groups::{Family, GroupPoint, GroupTables, GroupValues, name, read};
use super::over_time::chart;
use super::{Drawn, Gallery, seed_of};

/// Maximum number of groups with panels.
const GROUPS: usize = 8;

/// Maximum number of resources with panels.
const RESOURCES: usize = 3;

/// Draws one figure per policy and tree of groups: the default tree and the tree of each label.
pub fn quotas(results: &Results, paper: &Paper) -> Result<Gallery> {
    let run = results.first_run();
    let families = match read(results, run)? {
        GroupTables::Nothing => return Ok(Gallery::default()),
        GroupTables::NoLevels => return Ok(Gallery::without_table("quotas", Table::Levels)),
        GroupTables::Families(families) => families,
    };
    let drawn =
        |(nth, family): (usize, &Family)| draw(results, run, family, (name("quotas", nth, families.len()), paper));
    Ok(Gallery { figures: families.iter().enumerate().map(drawn).collect(), notes: Vec::new() })
}

fn draw(results: &Results, run: usize, family: &Family, (name, paper): (String, &Paper)) -> Drawn {
    let chosen = largest(family);
    let resources: Vec<usize> = (0..results.dims.len().min(RESOURCES)).collect();
    let panel = |group: usize, d: usize| {
        let account = &family.groups[group].at[d];
        Panel {
            title: format!("{}: {}", family.groups[group].name, resource_name(&results.dims[d].name)),
            series: curves(account, family.end),
        }
    };
    let panels: Vec<Panel> =
        chosen.iter().flat_map(|&group| resources.iter().map(move |&d| (group, d))).map(|(g, d)| panel(g, d)).collect();
    let what = if family.label.is_empty() { "cluster" } else { "label" };
    let chart = chart(Axis::fraction(format!("Share of the {what}")), panels.len(), resources.len());
    let chart = paper.fit(chart, panels.len());
    let mut left_out = String::new();
    if chosen.len() < family.groups.len() {
        let others = family.groups.len() - chosen.len();
        left_out += &format!(" The {} groups with the largest usage are shown; {others} others are not.", chosen.len());
    }
    if resources.len() < results.dims.len() {
        left_out += &format!(" Shown are the first {} resources.", resources.len());
    }
    let caption = format!(
        "Use, runtime quota, demand and minimum of quota groups over time under {}{}. Demand is the allocation and \
         the pending demand of a group, limited to its max and to the cluster.{left_out}",
        family.name(results),
        seed_of(results, run)
    );
    let data = Data::of_panels(["group_and_resource", "measure", "time_s", "share"], &panels);
    Drawn { name, caption, svg: small_multiples(&chart, Join::Steps, &panels), data }
}

/// Returns the groups with panels, in the order of the policy: all groups if they are few, else the leaves with the largest usage of any
/// resource.
fn largest(family: &Family) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..family.groups.len()).collect();
    if chosen.len() > GROUPS {
        chosen.retain(|&group| family.is_leaf(group));
        let share =
            |account: &GroupValues| if account.capacity > 0.0 { account.used_s / account.capacity } else { 0.0 };
        let used = |group: usize| family.groups[group].at.iter().map(share).fold(0.0, f64::max);
        chosen.sort_by(|&a, &b| used(b).total_cmp(&used(a)).then(a.cmp(&b)));
        chosen.truncate(GROUPS);
        chosen.sort_unstable();
    }
    chosen
}

/// Returns one series of steps per quantity, as shares of the capacity of the cluster or of the label's machines, up to the end of the run.
fn curves(account: &GroupValues, end: f64) -> Vec<Series> {
    let share = |amount: f64| if account.capacity > 0.0 { amount / account.capacity } else { 0.0 };
    let curve = |label: &str, of: &dyn Fn(&GroupPoint) -> f64| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for point in &account.points {
            let value = share(of(point));
            if points.last().is_none_or(|(_, last)| *last != value) {
                points.push((point.time, value));
            }
        }
        let last = points.last().map(|(_, value)| (end, *value));
        points.extend(last);
        Series::new(label, points)
    };
    let min = [(0.0, share(account.min)), (end, share(account.min))];
    vec![
        curve("used", &|point| point.used),
        curve("runtime quota", &|point| point.runtime),
        curve("demand", &|point| account.demand(point).min(account.capacity)),
        Series::new("min", if account.min > 0.0 { min.into() } else { Vec::new() }),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::groups::GroupPanel;
    use super::*;

    #[test]
    fn of_many_groups_the_leaves_that_used_most_are_shown() {
        let group = |(at, used_s): (usize, f64)| GroupPanel {
            name: format!("g{at}"),
            parent: (at > 0).then_some(0),
            at: vec![GroupValues { capacity: 10.0, used_s, ..GroupValues::default() }],
        };
        let used = [99.0, 1.0, 5.0, 2.0, 3.0, 4.0, 9.0, 8.0, 7.0, 6.0, 0.5];
        let groups = used.into_iter().enumerate().map(group).collect();
        let mut family = Family { policy: 0, label: String::new(), sunk: true, groups, end: 1.0 };
        assert_eq!(largest(&family), [2, 3, 4, 5, 6, 7, 8, 9]);
        family.groups.truncate(8);
        assert_eq!(largest(&family), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
