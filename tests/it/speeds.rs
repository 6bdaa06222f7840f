//! Service delays and speeds of users: the measures that compare policies over the same users and the same work.

use plimsoll::experiment::WorkloadPlan;
use plimsoll::output::schema::partition;
use plimsoll::workload::Estimates;
use plimsoll::workload::formats::FormatOptions;

use crate::frame::Frame;
use crate::replay::{plimsoll, run, said};

/// The results of a plan over a trace.
pub struct Replayed(tempfile::TempDir);

impl Replayed {
    /// Runs fifo and DRF on a machine of ten cores. `plan` is inserted before the tables of the plan.
    pub fn new(rows: &str, plan: &str) -> Replayed {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let trace = format!("job,user,submit_s,duration_s,tasks,cpu,memory_gib\n{rows}");
        let plan = format!(
            "name = \"speeds\"\npolicies = [\"fifo\", \"drf\"]\nsample = \"1s\"\n{plan}\n[cluster]\n\
             machines = \"1x10c10g\"\nplacement = \"first-fit\"\nevents = \"events.csv\"\n[workload]\ntrace = \"trace.csv\"\n"
        );
        let events = "at_s,machine,event\n1004,0,fail\n1006,0,join\n";
        for (name, text) in [("trace.csv", trace.as_str()), ("plan.toml", &plan), ("events.csv", events)] {
            std::fs::write(dir.path().join(name), text).expect("a temporary file is writable");
        }
        let done = run(plimsoll(&["run", "plan.toml", "-o", "out"]).current_dir(dir.path()));
        assert!(done.status.success(), "{}", said(&done));
        Replayed(dir)
    }

    /// Returns the numbers of a column.
    pub fn column(&self, table: &str, policy: &str, name: &str) -> Vec<Option<f64>> {
        let file = format!("out/{table}/policy={}/run=0/{table}.parquet", partition(policy));
        Frame::open(&self.0.path().join(file)).numbers(name)
    }

    /// Returns the first number of a column of the `runs` table.
    pub fn one(&self, policy: &str, name: &str) -> f64 {
        self.column("runs", policy, name)[0].unwrap_or_else(|| panic!("{name} of {policy} has no value"))
    }
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
}

/// Two users submit 100 s of work for the whole cluster each at the same time. Fair sharing serves both evenly over 200 s, so that their
/// work is 100 s old on average when it is served. First come first served gives the whole cluster to the first user for 100 s (50 s on
/// average), and then to the second user (150 s on average).
#[test]
fn a_policy_that_lets_one_user_wait_is_less_fair() {
    let both = Replayed::new("a,ann,0,10,100,1,0\nb,bob,0,10,100,1,0\n", "");
    let fair = [Some(100.0), Some(100.0)];
    for policy in ["fifo", "drf"] {
        assert_eq!(both.column("users", policy, "fair_service_delay_s"), fair);
    }
    // Tasks of 10 s start in waves of ten: 50 s and 150 s under fifo.
    let delays: Vec<f64> = both.column("users", "fifo", "service_delay_s").into_iter().flatten().collect();
    assert_eq!(delays, [50.0, 150.0]);
    let speeds: Vec<f64> = both.column("users", "fifo", "speed").into_iter().flatten().collect();
    near(speeds[0], 2.0);
    near(speeds[1], 2.0 / 3.0);
    near(both.one("fifo", "speed_jain"), (8.0f64 / 3.0).powi(2) / (2.0 * (4.0 + 4.0 / 9.0)));
    near(both.one("fifo", "speed_gap"), 4.0 / 3.0);
    near(both.one("fifo", "speed_min"), 2.0 / 3.0);
    near(both.one("drf", "speed_jain"), 1.0);
    near(both.one("drf", "speed_gap"), 0.0);
}

/// A user that is alone has the same speed under every policy: the Jain index is 1, and the gap is 0.
#[test]
fn a_lone_user_is_even_under_every_policy() {
    let alone = Replayed::new("a,ann,0,10,100,1,0\n", "");
    for policy in ["fifo", "drf"] {
        assert_eq!((alone.one(policy, "speed_jain"), alone.one(policy, "speed_gap")), (1.0, 0.0));
        near(alone.one(policy, "speed_min"), 1.0);
    }
}

/// A light user submits little work during the work of a heavy user. Under fifo it waits until that work is complete.
#[test]
fn a_light_user_that_waits_behind_a_heavy_one_is_the_slowest() {
    let both = Replayed::new("a,heavy,0,10,100,1,0\nb,light,10,10,1,1,0\nc,light,50,10,1,1,0\n", "");
    let speeds = |policy: &str| both.column("users", policy, "speed").into_iter().flatten().collect::<Vec<f64>>();
    assert_eq!(
        both.column("users", "fifo", "fair_service_delay_s"),
        both.column("users", "drf", "fair_service_delay_s")
    );
    // Fair sharing serves the light user's jobs at once: their work is 5 s old on average. Under fifo both jobs start at 100 s, and their
    // work is 95 s and 55 s old on average.
    assert_eq!(both.column("users", "drf", "fair_service_delay_s")[1], Some(5.0));
    near(speeds("fifo")[1], 5.0 / 75.0);
    assert_eq!(speeds("drf")[1], 1.0);
    assert!(both.one("drf", "speed_jain") > 0.99 && both.one("fifo", "speed_jain") < 0.6);
}

/// With a horizon, only the work counts that the reference serves before the horizon. If the policy has not served a part of this work, the
/// part has its age at the horizon. Work that is submitted before the window delays other work and is not judged.
#[test]
fn cuts_windows_and_what_never_fits() {
    let cut = Replayed::new("a,ann,0,10,100,1,0\nb,bob,0,10,100,1,0\nc,bob,0,10,1,11,0\n", "until = \"100s\"");
    let delays: Vec<f64> = cut.column("users", "fifo", "service_delay_s").into_iter().flatten().collect();
    // The reference serves 50 s of each user's work until the horizon. Fifo serves 50 s of ann's work in the first 50 s, and does not start
    // bob's work.
    near(delays[0], 25.0);
    near(delays[1], 100.0);
    let fair: Vec<f64> = cut.column("users", "fifo", "fair_service_delay_s").into_iter().flatten().collect();
    near(fair[0], 50.0);
    near(fair[1], 50.0);
    assert_eq!(cut.column("users", "fifo", "fair_work_served"), [Some(1.0), Some(0.0)]);
    near(cut.column("users", "fifo", "speed")[0].expect("judged work"), 2.0);
    assert_eq!(cut.column("users", "fifo", "speed")[1], Some(0.0));
    // Of 111 s of bob's work and 100 s of ann's work, 100 s are served.
    near(cut.one("fifo", "work_unserved"), 1.0 - 100.0 / 211.0);
    let late = Replayed::new("a,ann,0,10,100,1,0\nb,bob,1,10,100,1,0\n", "measure = { from = \"1s\" }");
    assert_eq!(late.column("users", "fifo", "speed")[0], None);
    assert_eq!(late.one("fifo", "speed_jain"), 1.0);
}

/// The machine fails four seconds after the start of the task and joins two seconds later. The task runs again from 6 s to 16 s after its
/// submission.
#[test]
fn a_task_that_is_stopped_is_served_when_it_runs_again() {
    let stopped = Replayed::new("a,ann,1000,10,1,1,0\n", "");
    assert_eq!(stopped.column("users", "drf", "service_delay_s"), [Some(11.0)]);
    assert_eq!(stopped.column("users", "drf", "fair_service_delay_s"), [Some(5.0)]);
}

#[test]
fn only_closed_loops_depend_on_the_policy() {
    let plan = |text: &str| WorkloadPlan::Generator(toml::from_str(text).expect("a generator"), Estimates::AsGiven);
    assert!(!plan("generator = 'facebook'").submissions_depend_on_policy());
    let trace = WorkloadPlan::Trace {
        path: "a.csv".into(),
        format: None,
        options: FormatOptions::default(),
        thin: None,
        resample: None,
        estimates: Estimates::AsGiven,
    };
    assert!(!trace.submissions_depend_on_policy());
    let closed = "generator = 'closed-loop'\nuntil = 40\n[[class]]\nname = 'a'\nduration = 10\ndemand = { cpu = 1 }\n";
    assert!(plan(closed).submissions_depend_on_policy());
}
