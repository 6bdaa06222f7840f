//! Worked examples of the models.

use super::*;

/// A plan with one machine of 8 GPUs.
fn plan(pace: f64, cost: f64, round_s: Option<f64>) -> TimeSharing {
    let limits = vec![3250.0, 7200.0];
    TimeSharing {
        _name: "test".to_owned(),
        machines: 1,
        gpus: 8,
        pace,
        cost,
        round_s,
        slot_s: None,
        limits,
        free_choice: FreeChoice::Equal,
        draws: None,
    }
}

/// Jobs by GPUs, submission, iterations of 1 s, and cost.
fn jobs(plan: &TimeSharing, all: &[(u32, f64, f64, f64)]) -> Vec<SharedJob> {
    let one = |(at, &(gpus, submit, iterations, cost)): (usize, &(u32, f64, f64, f64))| SharedJob {
        name: at.to_string(),
        gpus,
        submit,
        left: iterations * plan.pace,
        iteration_s: plan.pace,
        cost: cost * plan.cost,
        ran: 0.0,
        running: false,
        start: None,
        end: None,
        starts: 0,
        deadline: None,
    };
    all.iter().enumerate().map(one).collect()
}

fn ends(order: Order, cost: f64, all: &[(u32, f64, f64, f64)]) -> Vec<f64> {
    let plan = plan(1.015, cost, None);
    let mut jobs = jobs(&plan, all);
    events::simulate(&plan, order, &mut jobs);
    jobs.iter().map(|job| (job.end.expect("ended") * 1e6).round() / 1e6).collect()
}

#[test]
fn an_event_costs_every_job_that_ran() {
    let all = [(8, 0.0, 1000.0, 10.0), (8, 500.0, 100.0, 10.0)];
    assert_eq!(ends(Order::Srtf, 1.0, &all), [1126.5, 601.5]);
    assert_eq!(ends(Order::Srtf, 0.0, &all), [1116.5, 601.5]);
    let all = [(8, 0.0, 1000.0, 10.0), (4, 500.0, 600.0, 10.0), (4, 505.0, 50.0, 5.0)];
    assert_eq!(ends(Order::Srtf, 1.0, &all), [1080.75, 1649.0, 555.75]);
    assert_eq!(ends(Order::Srsf, 1.0, &all), [1649.0, 1124.0, 555.75]);
    assert_eq!(ends(Order::Srtf, 0.0, &all), [1065.75, 1624.0, 555.75]);
}

#[test]
fn queues_are_those_of_attained_service() {
    let all = [(8, 0.0, 1000.0, 10.0), (4, 500.0, 600.0, 10.0), (4, 505.0, 50.0, 5.0)];
    assert_eq!(ends(Order::Tiresias, 1.0, &all), [1669.0, 1124.0, 555.75]);
    assert_eq!(ends(Order::Tiresias, 0.0, &all), [1624.0, 1109.0, 555.75]);
    let all = [(8, 0.0, 1000.0, 10.0), (2, 300.0, 2000.0, 10.0), (8, 350.0, 100.0, 10.0)];
    assert_eq!(ends(Order::Tiresias, 0.0, &all), [3146.5, 3031.5, 2133.5]);
    assert_eq!(ends(Order::Tiresias, 1.0, &all), [3196.5, 3041.5, 2133.5]);
    assert_eq!(ends(Order::Srtf, 0.0, &all), [1116.5, 3146.5, 451.5]);
}

#[test]
fn a_decision_at_a_boundary_launches_every_selected_job() {
    let plan = TimeSharing { machines: 8, ..plan(1.015, 1.0, Some(360.0)) };
    let mut two = jobs(&plan, &[(8, 0.0, 10_956.0 * 0.437, 10.0), (8, 1534.0, 1463.0 * 0.214, 9.0)]);
    rounds::simulate(&plan, 360.0, Order::Srtf, &mut two);
    let near = |value: Option<f64>, expected: f64| (value.expect("ended") - expected).abs() < 0.001;
    assert!(near(two[1].end, 2126.778) && near(two[0].end, 4889.589), "{two:?}");
    assert_eq!((two[0].starts, two[1].starts, two[1].start), (3, 1, Some(1800.0)));
}

#[test]
fn joined_events_and_costs_are_those_of_the_example() {
    let plan = TimeSharing { gpus: 4, slot_s: Some(60.0), ..plan(1.0, 1.0, None) };
    let mut four =
        jobs(&plan, &[(1, 0.0, 2000.0, 0.0), (2, 0.0, 600.0, 0.0), (4, 60.0, 600.0, 0.0), (1, 120.0, 600.0, 0.0)]);
    slots::simulate(&plan, 60.0, &mut four);
    let ends: Vec<f64> = four.iter().map(|job| job.end.expect("ended")).collect();
    assert_eq!(ends, [2004.0, 606.0, 2604.0, 724.0]);
    assert_eq!([cost_s(64, 512), cost_s(1, 512), cost_s(1, 128)], [21.0, 9.0, 4.0]);
}

fn cost_s(gpus: u32, cluster: u32) -> f64 {
    slots::cost_of(gpus, cluster, false)
}
