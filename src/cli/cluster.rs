//! `plimsoll cluster`: executes a study as jobs of a batch system.
//!
//! For Slurm it writes and submits a job array with one task per shard, and a job that gathers the results after all shards have ended.
//! Shards without missing runs are not submitted.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Context;
use crate::error::{Error, Result};
use crate::experiment::Study;
use crate::experiment::study::{Shard, SlurmOptions, listed};
use crate::output::file::write_whole;
use crate::output::folder::check_output;
use crate::output::shell::{line, quoted};

/// Run an experiment on a cluster of computers
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    system: System,
}

#[derive(clap::Subcommand, Debug)]
enum System {
    Slurm(Slurm),
}

/// Write and submit a Slurm job array with one task per shard, and a job that gathers the results when all tasks have ended
///
/// The resources and options of each job are in the plan's table [slurm]. A second submission runs only the missing runs.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll cluster slurm experiments/load-sweep.toml --dry-run
  plimsoll cluster slurm experiments/load-sweep.toml --shards 40 \\
      -o /scratch/me/load-sweep")]
struct Slurm {
    /// The plan
    plan: PathBuf,
    /// The folder for the results, which all machines must see [default: results/NAME]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Change a key of the plan; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Number of jobs [default: slurm.shards of the plan, or 8]
    #[arg(long, value_name = "N")]
    shards: Option<u64>,
    /// Print the scripts, and write and submit nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let System::Slurm(args) = &args.system;
    slurm(args, context)
}

/// Default number of shards.
const SHARDS: u64 = 8;

fn slurm(args: &Slurm, context: &Context) -> Result<()> {
    let study = Study::read(&args.plan, &args.set, context.registry)?;
    let folder = args.output.clone().unwrap_or_else(|| Path::new("results").join(&study.name));
    let absolute = |path: &Path| std::path::absolute(path).map_err(|source| Error::io(path, source));
    check_output("--output", &folder)?;
    let (plan, folder) = (absolute(&args.plan)?, absolute(&folder)?);
    let of = args.shards.or(study.batch.shards).unwrap_or(SHARDS);
    if of == 0 {
        return Err(Error::plan("--shards", 0, "at least 1"));
    }
    let open = open_shards(&study, &folder, of)?;
    let program = std::env::current_exe().map_err(|source| Error::io("plimsoll", source))?;
    let mut words = vec![program.display().to_string(), "run".to_owned(), plan.display().to_string()];
    words.extend(["-o".to_owned(), folder.display().to_string()]);
    args.set.iter().for_each(|change| words.extend(["--set".to_owned(), change.clone()]));
    let command = line(words);
    let logs = folder.join("slurm");
    let array = array_script(&study, &logs, &open, of, &command);
    let gather = gather_script(&study, &logs, &command);
    if args.dry_run {
        return context.out(&format!("{array}\n{gather}"));
    }
    if open.is_empty() {
        context.print_message("all runs are complete; only gathering is left");
    }
    let (array_file, gather_file) = (logs.join("array.sh"), logs.join("gather.sh"));
    write_whole(&array_file, array.as_bytes())?;
    write_whole(&gather_file, gather.as_bytes())?;
    let mut options = Vec::new();
    if !open.is_empty() {
        let job = submit(&[], &array_file)?;
        context.print_message(&format!("job {job}: {} of {of} shards, with logs in {}", open.len(), logs.display()));
        // Starts after the shards regardless of their outcome; the gathering job reports missing runs.
        options.push(format!("--dependency=afterany:{job}"));
    }
    let job = submit(&options, &gather_file)?;
    context.out(&format!("{job}\n"))?;
    context.print_message(&format!("job {job}: gathers the results; submit again if it reports missing runs"));
    Ok(())
}

/// Returns the shards with missing runs.
fn open_shards(study: &Study, folder: &Path, of: u64) -> Result<Vec<u64>> {
    // The number of seeds depends on results that do not exist yet, so every shard may have missing runs.
    if study.cells.iter().any(|plan| plan.precision.is_some()) {
        return Ok((0..of).collect());
    }
    let runs = listed(study, Some(folder), None)?;
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    let has = |index: &u64| {
        let own = Shard { index: *index, of }.own(&ids);
        runs.iter().zip(own).any(|(run, own)| own && !run.there)
    };
    Ok((0..of).filter(has).collect())
}

/// Formats indices in Slurm's notation: `0-3,7`.
fn indices(open: &[u64]) -> String {
    let part = |run: &[u64]| match run {
        [only] => only.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    };
    open.chunk_by(|a, b| a + 1 == *b).map(part).collect::<Vec<_>>().join(",")
}

fn head(study: &Study, logs: &Path, log: &str, lines: &[String]) -> String {
    let SlurmOptions { partition, options, .. } = &study.batch;
    let mut text = format!("#!/bin/sh\n#SBATCH --job-name={}\n", quoted(&format!("plimsoll-{}", study.name)));
    text += &format!("#SBATCH --output={}\n", quoted(&logs.join(log).display().to_string()));
    let partition = partition.iter().map(|name| format!("--partition={name}"));
    for option in lines.iter().cloned().chain(partition).chain(options.iter().cloned()) {
        text += &format!("#SBATCH {option}\n");
    }
    text
}

fn array_script(study: &Study, logs: &Path, open: &[u64], of: u64, command: &str) -> String {
    let batch = &study.batch;
    let at_once = batch.at_once.map(|most| format!("%{most}")).unwrap_or_default();
    let cpus = batch.cpus.unwrap_or(1);
    let mut lines = vec![format!("--array={}{at_once}", indices(open)), format!("--cpus-per-task={cpus}")];
    lines.extend(batch.memory.iter().map(|memory| format!("--mem={memory}")));
    lines.extend(batch.time.iter().map(|time| format!("--time={time}")));
    // A shard that is moved to another machine continues with its missing runs.
    lines.extend(["--requeue".to_owned(), "--open-mode=append".to_owned()]);
    let head = head(study, logs, "%A_%a.log", &lines);
    format!("{head}exec {command} --shard auto/{of} -j {cpus}\n")
}

fn gather_script(study: &Study, logs: &Path, command: &str) -> String {
    let head = head(study, logs, "gather-%j.log", &["--cpus-per-task=1".to_owned()]);
    format!("{head}exec {command} --gather -j 1\n")
}

/// Submits a script to Slurm; returns the number of the job.
fn submit(options: &[String], script: &Path) -> Result<String> {
    let wrong = |message: String| Error::output(script, message);
    let output = Command::new("sbatch").arg("--parsable").args(options).arg(script).output();
    let output = output.map_err(|error| {
        wrong(format!(
            "sbatch cannot be executed ({error}); the scripts are written: submit them on a machine with Slurm"
        ))
    })?;
    if !output.status.success() {
        return Err(wrong(format!("sbatch reports: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // The text after a semicolon is the name of the cluster.
    Ok(said.split(';').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_listed_in_ranges() {
        assert_eq!(indices(&[0, 1, 2, 3, 7, 9, 10]), "0-3,7,9-10");
        assert_eq!((indices(&[4]), indices(&[])), ("4".to_owned(), String::new()));
    }
}
