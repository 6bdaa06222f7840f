//! Small random plans for the reference: policies, clusters and workloads of all kinds, in combinations that no experiment has.
//!
//! A plan depends on its number only. A change of any draw in this file changes the plans and requires a new reference.

use std::fmt::Write as _;

use plimsoll::workload::synthetic::random::stream;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::slow::Placement;
use crate::workloads::{Case, Weighting, chance, pick};

/// The available policies; a plan selects three of them. They support every workload and, with few exceptions, every cluster.
const POLICIES: &[&str] = &[
    "drf",
    "asset",
    "fifo",
    "maxmin:cpu",
    "maxmin:memory",
    "only:cpu",
    "slot:4",
    "slot:9",
    "pnorm:2",
    "pnorm:3.5",
    "ceei",
    "ceei:every:20s",
    "bmf",
    "bmf:tolerance:0.05",
    "quota:@teams",
];

/// The available tables besides `runs`; a plan selects three of them.
const TABLES: &[&str] = &[
    "users",
    "jobs",
    "tasks",
    "usage",
    "fairness",
    "shares",
    "groups",
    "levels",
    "bins",
    "quantiles",
    "demands",
    "decisions",
];

/// Machines of three kinds, with labels, places and devices.
const MACHINES: &str = "name,count,cpu,memory_gib,gpu,labels,room,rack\nweb,3,8,16,0,ssd,hz,r1\nbig,2,16,64,4,ssd;fast,hz,r2\n\
                        old,3,6,12,2,,sh,r1\n";

/// The events of these machines.
const EVENTS: &str = "at_s,machine,event,labels\n40,web-0,fail,\n90,big-0,leave,\n150,old-1,relabel,ssd\n200,web-0,join,\n\
                      210,old-0,fail,\n300,big-0,join,\n310,old-0,join,\n";

/// Returns the files of a random plan, including `plan.toml`.
pub fn random_plan(number: u64) -> Vec<(&'static str, String)> {
    let mut rng = stream(number, "plans of the reference");
    match number % 4 {
        0 => of_trace(&mut rng, number),
        1 => of_generator(&mut rng, number, "facebook"),
        2 => of_generator(&mut rng, number, "closed-loop"),
        _ => of_generator(&mut rng, number, "synthetic"),
    }
}

/// Draws a number of entries of a list, and keeps their order.
fn some(rng: &mut ChaCha8Rng, from: &[&str], count: usize) -> Vec<String> {
    let mut left: Vec<usize> = (0..from.len()).collect();
    let mut taken: Vec<usize> = (0..count).map(|_| left.remove(rng.random_range(0..left.len()))).collect();
    taken.sort_unstable();
    taken.into_iter().map(|at| from[at].to_owned()).collect()
}

/// Returns the beginning of every plan.
fn head(rng: &mut ChaCha8Rng, number: u64, policies: &[&str]) -> String {
    let policies = some(rng, policies, 3);
    let baseline = &policies[rng.random_range(0..3)];
    let mut tables = some(rng, TABLES, 3);
    tables.insert(0, "runs".to_owned());
    let mut text =
        format!("name = \"random-{number}\"\npolicies = {policies:?}\nbaseline = {baseline:?}\ntables = {tables:?}\n");
    writeln!(text, "seed = {}\nsample = \"{}s\"", number + 1, pick(rng, &[5, 20, 60])).expect("memory");
    text
}

/// Returns the groups of users for the policy `quota:@teams`.
fn teams(rng: &mut ChaCha8Rng) -> String {
    let variant = pick(rng, &["min-plus-share", "max-min-level"]);
    let reclaim = pick(rng, &["wait", "never", "kill-after:10s", "kill-after:60s"]);
    let inside = pick(rng, &["fifo", "fair"]);
    format!(
        "\n[quota.teams]\nvariant = \"{variant}\"\nreclaim = \"{reclaim}\"\ninside = \"{inside}\"\n\
         \n[[quota.teams.group]]\nname = \"first\"\nratio = 2\nmin = {{ cpu = 0.5, memory_gib = 0.25 }}\n\
         users = [\"web*\", \"mallory\", \"zoe\", \"user1*\"]\n\
         \n[[quota.teams.group]]\nname = \"second\"\nlend = {}\nmin = {{ cpu = 0.25 }}\nusers = [\"ads*\", \"bob\", \"u*\"]\n\
         \n[[quota.teams.group]]\nname = \"rest\"\ndefault = true\n",
        chance(rng, 50)
    )
}

/// Returns the files of a plan with a trace of [`Case`]. Many events of such a trace coincide.
fn of_trace(rng: &mut ChaCha8Rng, number: u64) -> Vec<(&'static str, String)> {
    let weighting = pick(rng, &[Weighting::None, Weighting::Scalar]);
    let case = Case::draw(9000 + number, weighting, &[Placement::Pooled]);
    let placement = pick(rng, &["pooled", "first-fit", "best-fit", "worst-fit", "spread", "dot-product", "random"]);
    let mut text = head(rng, number, POLICIES);
    if chance(rng, 40) {
        text += "seeds = 3\n";
    }
    let thin = text.ends_with("seeds = 3\n");
    let weights = case.weights_csv().filter(|_| !thin);
    if weights.is_some() {
        text += "weights = \"weights.csv\"\n";
    }
    text += &cluster(rng, &case.spec(), placement);
    text += "\n[workload]\ntrace = \"trace.csv\"\n";
    if thin {
        text += "thin = 0.7\n";
    }
    text += &teams(rng);
    let mut made = vec![("plan.toml", text), ("trace.csv", case.csv())];
    made.extend(weights.map(|weights| ("weights.csv", weights)));
    made
}

/// Returns the table `[cluster]` with these machines.
fn cluster(rng: &mut ChaCha8Rng, machines: &str, placement: &str) -> String {
    let mut text = format!("\n[cluster]\nmachines = \"{machines}\"\nplacement = \"{placement}\"\n");
    let on_blocked = pick(rng, &["skip", "skip", "stop"]);
    let ties = pick(rng, &["lowest-id", "highest-id", "fewest-running"]);
    writeln!(text, "on_blocked = \"{on_blocked}\"\nties = \"{ties}\"").expect("memory");
    if placement != "pooled" && chance(rng, 30) {
        text += "slowdown = \"0.5:1,0.9:1.5,1.2:4 by size\"\n";
    }
    text
}

/// Returns the files of a plan with a generator. The machines have labels and possibly events, or are plain.
fn of_generator(rng: &mut ChaCha8Rng, number: u64, generator: &str) -> Vec<(&'static str, String)> {
    let placements = ["pooled", "first-fit", "best-fit", "worst-fit", "spread", "dot-product", "random", "fgd"];
    let placement = pick(rng, &placements);
    let listed = placement != "pooled" && chance(rng, 60);
    let devices = listed && generator == "synthetic";
    let events = listed && chance(rng, 60);
    // Policies of slots, and policies that reserve one resource, do not support devices.
    let knows = |name: &&str| !devices || !["slot:", "only:"].iter().any(|kind| name.starts_with(kind));
    let policies: Vec<&str> = POLICIES.iter().copied().filter(knows).collect();
    let mut text = head(rng, number, &policies) + "seeds = 2\n";
    if chance(rng, 30) {
        text += "until = \"10m\"\n";
    }
    if chance(rng, 30) {
        text += "\n[measure]\nfrom = \"1m\"\nto = \"6m\"\n";
    }
    text += &cluster(rng, if listed { "machines.csv" } else { "5x8c16g,2x16c64g" }, placement);
    if devices {
        text += "devices = [\"gpu\"]\n";
    }
    if events {
        writeln!(text, "events = \"events.csv\"\non_failure = \"{}\"", pick(rng, &["requeue", "lose"]))
            .expect("memory");
    }
    if placement != "pooled" && !devices && chance(rng, 40) {
        text += "hoard = \"30s\"\n";
    }
    if !devices && chance(rng, 40) {
        let from = pick(rng, &["any", "same-user"]);
        writeln!(text, "preempt = \"{}\"\npreempt_from = \"{from}\"", pick(rng, &["0s", "20s"])).expect("memory");
    }
    if chance(rng, 20) {
        text += "\n[sweep]\n\"cluster.on_blocked\" = [\"skip\", \"stop\"]\n";
    }
    text += &match generator {
        "facebook" => format!(
            "\n[workload]\ngenerator = \"facebook\"\nhours = 0.1\nload = {}\ncluster_cores = 72\nmax_tasks = 60\n\
             duration_cap = \"2m\"\nusers = {}\ndemand = \"{}\"\n",
            pick(rng, &["0.7", "1.1"]),
            pick(rng, &["4", "12", "\"job\""]),
            pick(rng, &["per-job", "per-task-set"]),
        ),
        "closed-loop" => closed_loop(rng),
        _ => synthetic(rng, listed),
    };
    text += &teams(rng);
    let mut made = vec![("plan.toml", text)];
    made.extend(listed.then(|| ("machines.csv", MACHINES.to_owned())));
    made.extend(events.then(|| ("events.csv", EVENTS.to_owned())));
    made
}

fn closed_loop(rng: &mut ChaCha8Rng) -> String {
    let think = if chance(rng, 50) { "think = { distribution = \"exponential\", mean = 8 }\n" } else { "" };
    format!(
        "\n[workload]\ngenerator = \"closed-loop\"\nuntil = \"8m\"\n\
         \n[[workload.class]]\nname = \"web\"\nusers = 3\ntasks = {{ distribution = \"uniform\", min = 5, max = 30 }}\n\
         duration = {{ distribution = \"lognormal\", median = 15, sigma = 0.4 }}\nstagger = \"3s\"\n\
         noise = {{ distribution = \"uniform\", min = 0.8, max = 1.2 }}\npriority = 2\ndemand = {{ cpu = 1, memory_gib = 2 }}\n{think}\
         \n[[workload.class]]\nname = \"ads\"\nusers = 2\ntasks = {}\nduration = 21\npriority = 6\n\
         demand = {{ cpu = {{ distribution = \"choice\", values = [0.5, 2] }}, memory_gib = {} }}\n",
        pick(rng, &[8, 40]),
        pick(rng, &[1, 4]),
    )
}

/// Returns a workload of three classes. The first requests labels and devices if the machines have them, the second may have gangs, and the
/// third has stages.
fn synthetic(rng: &mut ChaCha8Rng, listed: bool) -> String {
    let burst = if chance(rng, 40) { "burst = { amplitude = 0.7, period = \"4m\" }\n" } else { "" };
    let (label, devices) = if listed { ("label = \"ssd | fast\"\n", true) } else { ("", false) };
    let gpu = if devices { ", gpu = { distribution = \"choice\", values = [0, 0.4, 1] }" } else { "" };
    format!(
        "\n[workload]\ngenerator = \"synthetic\"\njobs = {}\narrival = {{ distribution = \"exponential\", mean = {} }}\n{burst}\
         \n[[workload.class]]\nname = \"web\"\nweight = 2\nusers = 3\nzipf = 0.8\npriority = 1\nstable = true\n\
         tasks = {{ distribution = \"zipf\", n = 12, exponent = 1 }}\n\
         duration = {{ distribution = \"lognormal\", median = 20, sigma = 0.7 }}\n{label}\
         demand = {{ cpu = {{ distribution = \"choice\", values = [0.5, 1, 2] }}, memory_gib = 2{gpu} }}\n\
         \n[[workload.class]]\nname = \"ads\"\nusers = 2\npriority = 4\ngang = {}\ntasks = {{ distribution = \"uniform\", min = 1, max = 6 }}\n\
         duration = {{ distribution = \"pareto\", scale = 10, alpha = 1.8, max = 200 }}\ndemand = {{ cpu = 2, memory_gib = 3 }}\n\
         \n[[workload.class]]\nname = \"etl\"\npriority = 8\n\
         \n[[workload.class.stage]]\nname = \"map\"\ntasks = {{ distribution = \"uniform\", min = 4, max = 20 }}\n\
         duration = {{ distribution = \"uniform\", min = 5, max = 30 }}\ndemand = {{ cpu = 1, memory_gib = 1 }}\n\
         \n[[workload.class.stage]]\nname = \"reduce\"\ntasks = 3\nduration = \"25s\"\ndemand = {{ cpu = 1, memory_gib = 4 }}\n",
        pick(rng, &[60, 140]),
        pick(rng, &[3, 5]),
        chance(rng, 60),
    )
}
