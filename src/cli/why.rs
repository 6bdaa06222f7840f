//! `plimsoll why`: explains why jobs waited, by repeating the run and observing it.

use std::path::{Path, PathBuf};

use plimsoll_runs::{JobWait, WaitInterval, WaitLog, WaitReport};

use super::printout::Printout;
use super::progress::Bar;
use super::replay::{self, ReplayOptions};
use super::screen::{Alignment, Grid, paragraphs};
use super::{Context, Format, separate_policies, stored};
use crate::engine::WatchedJobs;
use crate::error::{Error, Result};
use crate::experiment::{
    Attribution, CauseEffect, Progress, RepeatedRun, Robustness, Shakes, Study, StudyRun, attribute, check_repeated,
    parse_causes, policy_meaning,
};
use crate::output::numbers::{are, count, number, with_half};

/// Explain why jobs waited: jobs that came first, missing resources, and their holders
///
/// Repeats the run and observes the job. The intervals add up to its wait; each has one reason (docs/why.md). If results are
/// given, the repeated run must have their values.
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(after_help = "Examples:
  plimsoll why results/facebook job-17 --policy drf
  plimsoll why experiments/facebook.toml job-17 --policy drf --run 3
  plimsoll why trace.csv job-17 --machines 400x16c32g --policy drf
  plimsoll why trace.csv job-17 --machines 400x16c32g --policy drf \\
      --without user=alice --without machines=+1
  plimsoll why results/facebook job-17 job-20 --policy drf --format json")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written, a plan (.toml), or a trace with the options of `replay`
    source: PathBuf,
    /// The names of the jobs, as in the trace and in the table jobs
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    /// The run among those of the policy, from 0: the first seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    run: usize,
    /// The cell of a sweep
    #[arg(long, value_name = "NAME")]
    cell: Option<String>,
    /// Print all intervals, not only the longest ones
    #[arg(long)]
    all: bool,
    /// Also repeat the run without this cause of the wait: user=NAME, job=NAME, rule, gang, fragmentation or machines=+N; up to five times
    #[arg(long, value_name = "CAUSE")]
    without: Vec<String>,
    /// The number of perturbed pairs of runs for each cause
    #[arg(long, value_name = "N", default_value_t = 10)]
    shakes: u32,
    /// The largest perturbation of a duration, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    shake: f64,
    #[command(flatten)]
    #[serde(flatten)]
    options: ReplayOptions,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The number of intervals of a job that are printed by default.
const INTERVALS: usize = 12;

/// The number of holders in a row of the table.
const HOLDERS: usize = 3;

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let causes = parse_causes(&args.without)?;
    if !(0.0..=50.0).contains(&args.shake) {
        return Err(Error::plan("--shake", args.shake, "a percentage from 0 to 50"));
    }
    if !causes.is_empty() && args.jobs.len() > 1 {
        return Err(Error::plan("--without", args.without.join(", "), "one job: each attribution repeats the run"));
    }
    let (study, folder) = args.study(context)?;
    let run = args.chosen(&study, context)?;
    let repeated = RepeatedRun::new(&study, run)?;
    let bar = Bar::new(context.quiet, &context.stop);
    bar.planned(1, 0);
    bar.started(0, None);
    let mut log =
        WaitLog::new(WatchedJobs::Named(args.jobs.iter().cloned().collect()), policy_meaning(run.policy(&study)));
    let summary = repeated.observe(repeated.plan(), None, &mut log, &mut |now, launched| bar.tick(0, now, launched))?;
    if let Some(folder) = folder {
        check_repeated(folder, &study, run, &summary)?;
    }
    let log = log.finish(summary.outcome.end);
    let missing = args.jobs.iter().filter(|job| !log.waits.iter().any(|wait| wait.job == **job));
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    if !missing.is_empty() {
        let expected = "names of jobs that are submitted before the end of the run, as in the table jobs";
        return Err(Error::plan("JOB", format!("'{}'", missing.join("', '")), expected));
    }
    let waits: Vec<&JobWait> =
        args.jobs.iter().flat_map(|job| log.waits.iter().filter(move |wait| wait.job == *job)).collect();
    let attribution = match &waits[..] {
        [wait, ..] if !causes.is_empty() => {
            let shakes = Shakes { count: args.shakes, millionths: (args.shake * 10_000.0).round() as u32 };
            let heartbeat = |now, launched| bar.tick(0, now, launched);
            Some(attribute(&repeated, wait, &causes, shakes, &heartbeat)?)
        }
        _ => None,
    };
    bar.finished(0, &summary);
    drop(bar);
    if args.format == Format::Json {
        let jobs: Vec<serde_json::Value> = waits.iter().map(|wait| json(&log, wait)).collect();
        let attribution = attribution.as_ref().map(attribution_json);
        let policy = run.policy(&study);
        return context
            .json(&serde_json::json!({ "policy": policy, "run": run.run, "jobs": jobs, "attribution": attribution }));
    }
    let mut printout = Printout::default();
    for wait in waits {
        printout += paragraphs(&format!("{}\n", log.sentences(wait).join(" ")));
        if !(wait.before.is_empty() && wait.after.is_empty()) {
            printout += table(&log, wait, args.all);
        }
    }
    if let Some(attribution) = &attribution {
        printout += paragraphs(&format!("\n{}\n", attribution_text(attribution, args).join(" ")));
        printout += attribution_table(attribution);
    }
    context.out(&printout.render(args.format))
}

/// Returns the sentences about the runs without some causes.
fn attribution_text(attribution: &Attribution, args: &Args) -> Vec<String> {
    let all = match attribution.remainder_us {
        Some(rest) => format!(
            "Without all of these causes the job waits {} s instead of {} s; ",
            seconds(rest),
            seconds(attribution.wait_us)
        ),
        None => "Without all of these causes the job does not start; ".to_owned(),
    };
    let several = attribution.effects.len() > 1;
    let mut sentences = vec![format!(
        "{}{} simulated.",
        if several { all } else { String::new() },
        are(attribution.runs as u64, "run")
    )];
    for effect in &attribution.effects {
        sentences.push(format!("Without {}: {}.", effect.cause, effect.cause.removal()));
        match effect.robustness() {
            Some(Robustness::SignChanges) => sentences.push(format!(
                "The effect of {} is not robust: it changes its sign if durations change by up to {} %.",
                effect.cause, args.shake
            )),
            Some(Robustness::Unclear) => sentences.push(format!(
                "The effect of {} is not robust: the interval includes 0 if durations change by up to {} %.",
                effect.cause, args.shake
            )),
            Some(Robustness::NoEffect | Robustness::Robust) | None => {}
        }
    }
    sentences
}

/// Returns the table of causes.
fn attribution_table(attribution: &Attribution) -> Grid {
    let line = |effect: &CauseEffect| {
        let without = effect.without_us.map_or("not started".to_owned(), seconds);
        let change = effect.without_us.map_or(String::new(), |without| {
            let change = i128::from(without) - i128::from(attribution.wait_us);
            let sign = if change < 0 { "-" } else { "" };
            format!("{sign}{}", seconds(change.unsigned_abs() as u64))
        });
        let share = effect.share_s.map_or(String::new(), |share| number(Some(share)));
        let perturbed = effect.robustness().map_or(String::new(), |robustness| robustness.text().to_owned());
        vec![effect.cause.to_string(), without, change, with_half(effect.change_s()), perturbed, share]
    };
    let mut rows: Vec<Vec<String>> = attribution.effects.iter().map(line).collect();
    if let Some(rest) = attribution.remainder_us {
        let row = ["remainder".to_owned(), String::new(), String::new(), String::new(), String::new(), seconds(rest)];
        rows.push(row.to_vec());
        let total = seconds(attribution.wait_us);
        rows.push(vec!["wait".to_owned(), String::new(), String::new(), String::new(), String::new(), total]);
    }
    let header = [
        ("without", Alignment::Left),
        ("wait_s", Alignment::Right),
        ("change_s", Alignment::Right),
        ("perturbed change_s", Alignment::Right),
        ("perturbed", Alignment::Left),
        ("share_s", Alignment::Right),
    ];
    Grid::new(header.map(|(name, alignment)| (name.to_owned(), alignment)).to_vec(), rows)
}

/// Returns an attribution as JSON.
fn attribution_json(attribution: &Attribution) -> serde_json::Value {
    let effect = |effect: &CauseEffect| {
        serde_json::json!({
            "without": effect.cause.to_string(),
            "removal": effect.cause.removal(),
            "wait_us": effect.without_us,
            "change_mean_s": effect.change_s().map(|change| change.mean),
            "change_low_s": effect.change_s().and_then(|change| change.low),
            "change_high_s": effect.change_s().and_then(|change| change.high),
            "robust": effect.robustness().map(|robustness| robustness == Robustness::Robust),
            "perturbed": effect.robustness().map(Robustness::text),
            "share_s": effect.share_s,
        })
    };
    serde_json::json!({
        "wait_us": attribution.wait_us,
        "remainder_us": attribution.remainder_us,
        "runs": attribution.runs,
        "causes": attribution.effects.iter().map(effect).collect::<Vec<_>>(),
    })
}

impl Args {
    /// Returns the study, and the results folder if the source is one. Errors: the source is neither results, nor a plan, nor a trace with
    /// machines and policy.
    fn study(&self, context: &Context) -> Result<(Study, Option<&Path>)> {
        let source = &self.source;
        if source.is_dir() {
            self.refuse_options("a results folder", &["policy"])?;
            return Ok((stored::study(source, context)?, Some(source)));
        }
        if source.extension().is_some_and(|ending| ending == "toml") {
            self.refuse_options("a plan", &["policy", "set"])?;
            return Ok((Study::read(source, &self.options.rows.set, context.registry)?, None));
        }
        if source.as_os_str() != "-" && !source.exists() {
            let problem = "no such file or folder; expected results, a plan (.toml) or a trace";
            return Err(Error::trace(source, 0, "", problem));
        }
        if self.options.machines.is_none() {
            let expected = "machines such as 400x16c32g, because the source is a trace";
            return Err(Error::plan("--machines", "nothing", expected));
        }
        if self.options.policies.is_empty() {
            return Err(Error::plan("--policy", "nothing", "a policy, such as drf"));
        }
        Ok((Study::from_plan(replay::plan(source, &self.options, &[], context)?), None))
    }

    /// Checks that the options of a replay are given only with a trace; `own` are the ones that `source` accepts. Errors: [`Error::Plan`].
    fn refuse_options(&self, source: &str, own: &[&str]) -> Result<()> {
        match replay::given(&self.options).into_iter().find(|(option, _)| !own.contains(option)) {
            Some((option, value)) => {
                let expected = format!("a trace as source; {source} has its own settings");
                Err(Error::plan(format!("--{option}"), value, expected))
            }
            None => Ok(()),
        }
    }

    fn chosen(&self, study: &Study, context: &Context) -> Result<StudyRun> {
        let policies = separate_policies(&self.options.policies, |name| context.registry.policy(name).is_ok());
        match &policies[..] {
            [] => StudyRun::find(study, self.cell.as_deref(), None, self.run),
            [policy] => StudyRun::find(study, self.cell.as_deref(), Some(policy), self.run),
            several => Err(Error::plan("--policy", several.join(","), "one policy: a wait is explained in one run")),
        }
    }
}

/// Returns the table of a job's intervals: first those of its wait, which end with their sum, then those after its first start.
fn table(log: &WaitReport, wait: &JobWait, all: bool) -> Grid {
    let mut lines = part(log, &wait.before, "wait", all);
    if !wait.after.is_empty() {
        lines.extend(part(log, &wait.after, "after the start", all));
    }
    let header = [
        ("from_s", Alignment::Right),
        ("to_s", Alignment::Right),
        ("length_s", Alignment::Right),
        ("reason", Alignment::Left),
        ("held by", Alignment::Left),
    ];
    Grid::new(header.map(|(name, alignment)| (name.to_owned(), alignment)).to_vec(), lines)
}

/// Returns the lines of some intervals and of their sum; without `all` only the longest intervals.
fn part(log: &WaitReport, intervals: &[WaitInterval], sum: &str, all: bool) -> Vec<Vec<String>> {
    let mut shown: Vec<usize> = (0..intervals.len()).collect();
    if !all && shown.len() > INTERVALS {
        shown.sort_by_key(|at| std::cmp::Reverse(intervals[*at].length()));
        shown.truncate(INTERVALS);
        shown.sort_unstable();
    }
    let length = |at: &usize| intervals[*at].length().0;
    let (total, printed): (u64, u64) =
        ((0..intervals.len()).map(|at| length(&at)).sum(), shown.iter().map(length).sum());
    let mut lines: Vec<Vec<String>> = shown.iter().map(|at| line(log, &intervals[*at])).collect();
    let mut closing =
        |us: u64, text: String| lines.push(vec![String::new(), String::new(), seconds(us), text, String::new()]);
    if shown.len() < intervals.len() {
        let others = count((intervals.len() - shown.len()) as u64, "shorter interval");
        closing(total - printed, format!("{others} (--all)"));
    }
    closing(total, sum.to_owned());
    lines
}

fn line(log: &WaitReport, interval: &WaitInterval) -> Vec<String> {
    let resource = interval.reason.missing().and_then(|missing| missing.resource);
    let holders = interval.holder_means();
    let shown = holders.iter().take(HOLDERS).map(|(user, mean)| format!("{user} {}", log.amount(resource, *mean)));
    let more = holders.len().saturating_sub(HOLDERS);
    let more = (more > 0).then(|| format!("{more} more"));
    vec![
        seconds(interval.from.0),
        seconds(interval.to.0),
        seconds(interval.length().0),
        interval.reason.row().name.to_owned(),
        shown.chain(more).collect::<Vec<_>>().join(", "),
    ]
}

/// Returns microseconds as exact seconds.
fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns a job's wait as JSON: times in microseconds, amounts in base units.
fn json(log: &WaitReport, wait: &JobWait) -> serde_json::Value {
    let interval = |interval: &WaitInterval| {
        let missing = interval.reason.missing();
        let resource = missing.and_then(|missing| missing.resource).map(|d| log.dims[usize::from(d)].column());
        let holders: serde_json::Map<String, serde_json::Value> = interval
            .holder_means()
            .into_iter()
            .map(|(user, mean)| (user.to_owned(), u64::try_from(mean).unwrap_or(u64::MAX).into()))
            .collect();
        serde_json::json!({
            "from_us": interval.from.0,
            "to_us": interval.to.0,
            "reason": interval.reason.row().name,
            "detail": log.detail(interval),
            "tasks": interval.tasks,
            "attempt": interval.attempt,
            "resource": resource,
            "need": missing.map(|missing| missing.need),
            "short_mean": u64::try_from(interval.mean(interval.short)).ok(),
            "free_mean": u64::try_from(interval.mean(interval.free)).ok(),
            "behind_us": interval.behind.iter().map(|(name, span)| (name.clone(), span.0.into())).collect::<serde_json::Map<_, _>>(),
            "holders_mean": holders,
            "started": interval.started,
            "limit": interval.limit,
        })
    };
    serde_json::json!({
        "job": wait.job,
        "user": wait.user,
        "submit_us": wait.submit.0,
        "start_us": wait.start.map(|start| start.0),
        "wait_us": wait.wait().0,
        "explanation": log.sentences(wait),
        "before_start": wait.before.iter().map(interval).collect::<Vec<_>>(),
        "after_start": wait.after.iter().map(interval).collect::<Vec<_>>(),
        "stops": wait.stops.iter().map(|stop| serde_json::json!({
            "at_us": stop.at.0, "tasks": stop.tasks, "fate": log.fate(stop),
        })).collect::<Vec<_>>(),
    })
}
