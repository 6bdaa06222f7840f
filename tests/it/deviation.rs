//! Deviation and the bound of theorem 7, recomputed from the tables of complete runs by their definitions.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll::fair::fill;
use plimsoll::output::schema::partition;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::frame::{Frame, Values};
use crate::replay::{plimsoll, run, said};

const POLICIES: [&str; 5] = ["drf", "fifo", "slot:3", "ceei", "asset"];

/// The demand of each user's tasks, in cores and GiB. All tasks of a user are equal, so this is also the mean demand of the user.
const DEMANDS: [[f64; 2]; 4] = [[1.0, 4.0], [3.0, 1.0], [2.0, 2.0], [0.5, 0.0]];
const CAPACITY: [f64; 2] = [16.0, 32.0];

/// Writes a plan and a random trace. The cluster has four machines, and the users have weights of 1, 2, 1 and 0.5.
fn write(dir: &Path, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\n".to_owned();
    let mut submit = 0;
    for job in 0..60 {
        submit += rng.random_range(0..6);
        let (user, tasks, duration) = (rng.random_range(0..4usize), rng.random_range(1..12), rng.random_range(1..30));
        let [cpu, memory] = DEMANDS[user];
        trace.push_str(&format!("j{job},u{user},{submit},{duration},{tasks},{cpu},{memory}\n"));
    }
    let plan = format!(
        "name = \"drawn\"\npolicies = {POLICIES:?}\nsample = \"3s\"\nweights = \"weights.csv\"\n\
         tables = [\"runs\", \"usage\", \"shares\", \"fairness\"]\n[cluster]\nmachines = \"4x4c8g\"\n\
         placement = \"first-fit\"\n[workload]\ntrace = \"trace.csv\"\n"
    );
    let weights = "user,weight\nu1,2\nu3,0.5\n".to_owned();
    for (name, text) in [("trace.csv", trace), ("plan.toml", plan), ("weights.csv", weights)] {
        std::fs::write(dir.join(name), text).expect("a temporary file is writable");
    }
}

fn weight(user: usize) -> f64 {
    [1.0, 2.0, 1.0, 0.5][user]
}

struct Table(Frame);

impl Table {
    fn read(dir: &Path, name: &str, policy: &str) -> Table {
        let path = dir.join(format!("out/{name}/policy={}/run=0/{name}.parquet", partition(policy)));
        Table(Frame::open(&path))
    }

    fn numbers(&self, name: &str) -> Vec<Option<f64>> {
        self.0.numbers(name)
    }

    fn users(&self) -> Vec<usize> {
        let names = self.0.texts("user").iter().map(|name| name.as_ref().expect("a name"));
        names.map(|name| name[1..].parse().expect("users are numbered")).collect()
    }
}

/// Returns the numbers of running and waiting tasks, at an instant, of every user that has any.
fn active(usage: &Table, at: f64) -> BTreeMap<usize, (f64, f64)> {
    let mut state = BTreeMap::new();
    let (times, running, waiting) = (usage.numbers("time_us"), usage.numbers("running"), usage.numbers("waiting"));
    for (row, user) in usage.users().into_iter().enumerate().filter(|(row, _)| times[*row] <= Some(at)) {
        state.insert(user, (running[row].expect("a count"), waiting[row].expect("a count")));
    }
    state.retain(|_, (running, waiting)| *running + *waiting > 0.0);
    state
}

fn task(user: usize) -> f64 {
    (0..2).map(|d| DEMANDS[user][d] / CAPACITY[d]).fold(0.0, f64::max)
}

/// Returns each active user's actual share, and its share under weighted DRF with divisible tasks.
fn shares(state: &BTreeMap<usize, (f64, f64)>) -> BTreeMap<usize, (f64, f64)> {
    let users: Vec<usize> = state.keys().copied().collect();
    let demand: Vec<Vec<f64>> =
        users.iter().map(|&user| (0..2).map(|d| DEMANDS[user][d] / CAPACITY[d]).collect()).collect();
    let caps: Vec<Option<f64>> = state.values().map(|(running, waiting)| Some(running + waiting)).collect();
    let stage = users.iter().enumerate().map(|(i, &user)| (i, weight(user) / task(user))).collect();
    let filled = fill(&[1.0, 1.0], &demand, &caps, &[stage]);
    let pair = |(&user, tasks): (&usize, f64)| (user, (state[&user].0 * task(user), tasks * task(user)));
    users.iter().zip(filled.tasks).map(pair).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn the_tables_hold_what_the_definitions_say() {
    let (mut points, mut broken) = (0, 0);
    for seed in 0..6 {
        let dir = tempfile::tempdir().expect("a temporary folder");
        write(dir.path(), seed);
        let output = run(plimsoll(&["run"]).arg(dir.path().join("plan.toml")).arg("-o").arg(dir.path().join("out")));
        assert!(output.status.success(), "{}", said(&output));
        for policy in POLICIES {
            let read = |name: &str| Table::read(dir.path(), name, policy);
            let (usage, fairness, series) = (read("usage"), read("fairness"), read("shares"));
            let (times, users) = (series.numbers("time_us"), series.users());
            let (plain, fluid) = (series.numbers("dominant_share"), series.numbers("fluid_share"));
            let column = |name: &str| fairness.numbers(name);
            let (mean, max, seven) = (column("deviation_mean"), column("deviation_max"), column("theorem7_broken"));
            let mut grid: Vec<(f64, f64, Option<bool>)> = Vec::new();
            for (row, at) in fairness.numbers("time_us").into_iter().enumerate() {
                let at = at.expect("a time");
                let state = active(&usage, at);
                let wanted = shares(&state);
                let place = format!("seed {seed}, {policy}, {} s", at / 1e6);
                let found: Vec<usize> = (0..users.len()).filter(|&row| times[row] == Some(at)).collect();
                assert_eq!(found.len(), wanted.len(), "{place}");
                for row in found {
                    let (plain, fluid) = (plain[row].expect("a share"), fluid[row].expect("a share"));
                    let (share, reference) = wanted[&users[row]];
                    assert!(near(plain, share) && near(fluid, reference), "{place}: {plain} {fluid}, {wanted:?}");
                }
                let off: Vec<f64> = wanted.values().map(|(share, fluid)| (share - fluid).abs()).collect();
                let largest = off.iter().copied().reduce(f64::max);
                assert!(
                    max[row].zip(largest).is_none_or(|(a, b)| near(a, b)) && max[row].is_some() == largest.is_some()
                );
                let average = off.iter().sum::<f64>() / off.len() as f64;
                assert!(mean[row].is_none_or(|mean| near(mean, average)), "{place}");
                let waiting: Vec<usize> =
                    state.iter().filter(|(_, (_, waiting))| *waiting > 0.0).map(|(user, _)| *user).collect();
                let level = |user: &usize| wanted[user].0 / weight(*user);
                let tallest = waiting.iter().map(|&user| task(user) / weight(user)).fold(0.0, f64::max);
                let apart = waiting.iter().any(|a| waiting.iter().any(|b| level(a) - level(b) > tallest + 1e-8));
                let expected = (waiting.len() > 1).then_some(apart);
                assert_eq!(seven[row], expected.map(|broken| f64::from(u8::from(broken))), "{place}");
                grid.push((at, if waiting.is_empty() { f64::NAN } else { average }, expected));
                points += usize::from(!off.is_empty());
                broken += usize::from(apart);
            }
            let runs = read("runs");
            let end = runs.numbers("end_us")[0].expect("a time");
            // A row represents the grid points until the next row.
            let ends = grid.iter().skip(1).map(|(at, ..)| *at).chain([end]);
            let spans: Vec<f64> = grid.iter().zip(ends).map(|((at, ..), end)| ((end - at) / 3e6).ceil()).collect();
            let mean = |values: Vec<Option<f64>>| {
                let (sum, points) = values
                    .into_iter()
                    .zip(&spans)
                    .filter_map(|(value, span)| Some((value?, span)))
                    .fold((0.0, 0.0), |(sum, points), (value, span)| (sum + value * span, points + span));
                sum / points
            };
            let average =
                mean(grid.iter().map(|(_, average, _)| Some(*average).filter(|mean| !mean.is_nan())).collect());
            let share =
                mean(grid.iter().map(|(.., broken)| broken.map(|broken| f64::from(u8::from(broken)))).collect());
            for (column, wanted) in [("deviation_mean", average), ("theorem7_broken", share)] {
                let found = runs.numbers(column)[0].expect("at least one user waited");
                assert!(near(found, wanted), "seed {seed}, {policy}, {column}: {found} is not {wanted}");
            }
        }
    }
    assert!(points > 500 && broken > 50, "too easy: {points} points, {broken} of them break the bound");
}

/// Policies with orders that change the next task of a user as time passes.
const ORDERED: [&str; 6] = ["drf", "fifo", "slot:3", "drf/las", "drf/srpt:true", "fifo/sjf:true"];

/// Writes the files of [`write`], with users of mixed task sizes.
fn write_mixed(dir: &Path, seed: u64) {
    write(dir, seed);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let trace = std::fs::read_to_string(dir.join("trace.csv")).expect("as written");
    let mut mixed = String::new();
    for (at, row) in trace.lines().enumerate() {
        let [cpu, memory] = DEMANDS[rng.random_range(0..4)];
        let fields: Vec<&str> = row.split(',').take(5).collect();
        let line = if at == 0 { row.to_owned() } else { format!("{},{cpu},{memory}", fields.join(",")) };
        mixed.push_str(&(line + "\n"));
    }
    let plan = std::fs::read_to_string(dir.join("plan.toml")).expect("as written");
    let plan = plan.replace(&format!("{POLICIES:?}"), &format!("{ORDERED:?}"));
    for (name, text) in [("trace.csv", mixed), ("plan.toml", plan)] {
        std::fs::write(dir.join(name), text).expect("a temporary file is writable");
    }
}

/// With the table `fairness`, users are ordered and evaluated at every grid point. Without this table, the state of the users is carried
/// over from one point to the next. The means over the grid cover the same states.
#[test]
fn users_kept_from_point_to_point_are_as_if_looked_at_anew() {
    for seed in 6..12 {
        let dir = tempfile::tempdir().expect("a temporary folder");
        write_mixed(dir.path(), seed);
        let ran = |tables: &str, out: &str| {
            let out = dir.path().join(out);
            let output = run(plimsoll(&["run"])
                .arg(dir.path().join("plan.toml"))
                .args(["--set", &format!("tables={tables}"), "-o"])
                .arg(&out));
            assert!(output.status.success(), "{}", said(&output));
            out
        };
        let kept = ran("[\"runs\",\"users\"]", "kept");
        let anew = ran("[\"runs\",\"users\",\"fairness\"]", "anew");
        for (policy, table) in ORDERED.iter().flat_map(|policy| [(policy, "runs"), (policy, "users")]) {
            let file = format!("{table}/policy={}/run=0/{table}.parquet", partition(policy));
            let [kept, anew] = [&kept, &anew].map(|out| Frame::open(&out.join(&file)));
            assert_eq!(kept.0.len(), anew.0.len());
            for ((name, kept), (_, anew)) in kept.0.iter().zip(&anew.0) {
                let (Values::Real(kept), Values::Real(anew)) = (kept, anew) else {
                    assert_eq!(kept, anew, "seed {seed}, {policy}, {name}");
                    continue;
                };
                // The values are summed in another order.
                let same = |(a, b): (&Option<f64>, &Option<f64>)| {
                    a.is_some() == b.is_some() && near(a.unwrap_or(0.0), b.unwrap_or(0.0))
                };
                assert!(kept.iter().zip(anew).all(same), "seed {seed}, {policy}, {name}: {kept:?} {anew:?}");
            }
        }
    }
}

/// Under `las` the next task of u is the large task of job b as soon as v arrives, because job a has been served. No other property of u
/// changes at that instant. User u has all 16 cores: as many as its large task needs, and sixteen times as many as a task of a needs.
#[test]
fn a_next_task_that_only_the_order_has_changed_is_seen() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let trace = "job,user,submit_s,duration_s,tasks,cpu,memory_gib\na,u,0,50,30,1,0\nb,u,0,50,1,16,0\nc,v,5,50,4,1,0\n";
    let plan = "name = \"order\"\npolicies = [\"fifo/las\", \"drf/las\"]\nuntil = \"40s\"\nsample = \"1s\"\ntables = [\"runs\"]\n\
                [cluster]\nmachines = \"1x16c16g\"\nplacement = \"pooled\"\n[workload]\ntrace = \"trace.csv\"\n";
    for (name, text) in [("trace.csv", trace), ("plan.toml", plan)] {
        std::fs::write(dir.path().join(name), text).expect("a temporary file is writable");
    }
    let output = run(plimsoll(&["run"]).arg(dir.path().join("plan.toml")).arg("-o").arg(dir.path().join("out")));
    assert!(output.status.success(), "{}", said(&output));
    for policy in ["fifo/las", "drf/las"] {
        let runs = Table::read(dir.path(), "runs", policy);
        assert_eq!(runs.numbers("theorem7_broken"), [Some(0.0)], "{policy}");
    }
}
