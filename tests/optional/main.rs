//! Tests that need programs, packages, files or rights that not every machine has. A test with a missing requirement is skipped at run
//! time, and the summary counts it, with the reason:
//!
//! ```text
//! test browser::the_report_opens_offline ... ignored (no chromium)
//! ```
//!
//! The first part of a test's name is its requirement. `PLIMSOLL_REQUIRE=browser,python` (or `all`) declares these requirements as present:
//! instead of being skipped, a test with one of them fails. `.ci/run` sets the variable to its installed components.

// The modules that both test binaries share have parts that only the other binary uses, so unused code is allowed.
#[path = "../it/determinism.rs"]
#[allow(unused)]
mod determinism;
#[path = "../it/docs.rs"]
#[allow(unused)]
mod docs;
#[path = "../it/frame.rs"]
#[allow(unused)]
mod frame;
#[path = "../it/page.rs"]
#[allow(unused)]
mod page;
#[path = "../it/quota_slow.rs"]
#[allow(unused)]
mod quota_slow;
#[path = "../it/reference_random.rs"]
#[allow(unused)]
mod reference_random;
#[path = "../it/replay.rs"]
#[allow(unused)]
mod replay;
#[path = "../it/report.rs"]
#[allow(unused)]
mod report;
#[path = "../it/slow/mod.rs"]
#[allow(unused)]
mod slow;
#[path = "../it/study_disk.rs"]
#[allow(unused)]
mod study_disk;
#[path = "../it/study_kill.rs"]
#[allow(unused)]
mod study_kill;
#[path = "../it/study_run.rs"]
#[allow(unused)]
mod study_run;
#[path = "../it/study_slurm.rs"]
#[allow(unused)]
mod study_slurm;
#[path = "../it/traces.rs"]
#[allow(unused)]
mod traces;
#[path = "../it/workloads/mod.rs"]
#[allow(unused)]
mod workloads;

mod book;
mod browser;
mod data;
mod devtools;
mod disk;
mod example;
mod pdf;
mod python;
#[cfg(target_os = "linux")]
mod slurm;
#[cfg(target_os = "linux")]
mod strace;
mod wasm;
mod wheel;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// The missing component, in words.
pub struct Missing(pub String);

/// Passed, or skipped; a failing test panics.
pub type Outcome = Result<(), Missing>;

/// The variable with the required components.
const REQUIRE: &str = "PLIMSOLL_REQUIRE";

/// The requirements that tests can have, by their names in [`REQUIRE`].
const NEEDS: [&str; 11] =
    ["book", "browser", "data", "disk", "example", "pdf", "python", "slurm", "strace", "wasm", "wheel"];

/// Returns a test that is named after its requirement.
fn trial(name: &str, test: impl FnOnce() -> Outcome + Send + 'static) -> Trial {
    let needs = name.split("::").next().unwrap_or_default();
    assert!(NEEDS.contains(&needs), "{needs} is not a known requirement");
    let required = std::env::var(REQUIRE).unwrap_or_default();
    let required = required.split(',').any(|word| word == needs || word == "all");
    Trial::ignorable_test(name, move || match test() {
        Ok(()) => Ok(Completion::Completed),
        Err(Missing(why)) if required => Err(Failed::from(format!("skipped, although {REQUIRE} names it: {why}"))),
        Err(Missing(why)) => Ok(Completion::ignored_with(why)),
    })
}

fn main() -> ExitCode {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    let unknown = required.split(',').find(|word| !word.is_empty() && *word != "all" && !NEEDS.contains(word));
    if let Some(word) = unknown {
        eprintln!("{REQUIRE}: '{word}' is not accepted; expected all, or some of {}", NEEDS.join(","));
        return ExitCode::FAILURE;
    }
    let mut trials = vec![
        trial("book::the_book_is_built", book::is_built),
        trial("browser::the_report_opens_offline", browser::the_report_opens_offline),
        trial("browser::the_report_is_explored", browser::the_report_is_explored),
        trial("browser::a_timeline_shows_jobs", browser::a_timeline_shows_jobs),
        trial("browser::jobs_by_size_follow_the_selection", browser::jobs_by_size_follow_the_selection),
        trial("browser::a_sweep_is_explored", browser::a_sweep_is_explored),
        trial("disk::a_full_disk_leaves_nothing_half_written", disk::a_full_one_leaves_nothing_half_written),
        trial("example::replays_beside_built_in_policies", example::replays_beside_built_in_policies),
        trial("example::is_listed_among_the_policies", example::is_listed_among_the_policies),
        trial("example::remembers_what_users_have_had", example::remembers_what_users_have_had),
        trial("pdf::its_text_is_text", pdf::its_text_is_text),
        trial("wasm::the_module_is_small", wasm::the_module_is_small),
        trial("wasm::tables_of_random_plans_equal_the_native_ones", wasm::tables_of_random_plans_equal_the_native_ones),
        trial("wasm::the_page_simulates", wasm::the_page_simulates),
        trial("wasm::other_modules_and_plans_are_refused", wasm::other_modules_and_plans_are_refused),
        trial("wheel::the_package_passes_its_tests", wheel::passes_its_tests),
        trial("wheel::the_notebooks_run_on_small_plans", wheel::notebooks_run_on_small_plans),
        trial("python::polars_duckdb_and_pandas_read_results_as_the_docs_say", python::reads_results_as_the_docs_say),
        trial("python::simpy_ends_every_job_at_the_same_instant", python::simpy_ends_every_job_at_the_same_instant),
    ];
    // One test per file, so that a missing file does not skip the tests of other files.
    trials.extend(
        data::FILES.map(|file| trial(&format!("data::{}_round_trips", file.0), move || data::round_trips(file))),
    );
    #[cfg(target_os = "linux")]
    {
        trials.push(trial("slurm::a_real_slurm_runs_the_array", slurm::a_real_one_runs_the_array));
        trials.push(trial("strace::every_call_may_fail", strace::every_call_may_fail));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
