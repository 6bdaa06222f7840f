//! Integration tests of the whole program: one binary, so that polars links once.
//!
//! `slow` is the obvious twin that the engine must equal; `workloads` makes its input; `replay` runs the binary.

mod browser;
mod bundle;
mod cases;
mod check;
mod check_whole;
mod determinism;
mod deviation;
mod docs;
mod errors;
mod example;
mod failover;
mod failover_cli;
mod failover_model;
mod failover_rules;
mod failover_study;
mod figures;
mod interior;
#[cfg(unix)]
mod interrupt;
mod laws;
mod laws_recorder;
mod leximin;
mod machines_asks;
mod machines_cases;
mod machines_errors;
mod machines_events;
mod machines_slow;
mod machines_twin;
mod machines_world;
mod nash;
mod paper;
mod paper_machines;
mod parity;
mod python;
mod quota;
mod quota_check;
mod quota_groups;
mod quota_inline;
mod quota_label_tables;
mod quota_labels;
mod quota_policy;
mod quota_slow;
mod quota_solve;
mod quota_twin;
mod replay;
mod slow;
mod slow_checks;
mod slow_rate;
#[cfg(target_os = "linux")]
mod slurm;
mod solve;
mod study_compare;
mod study_disk;
mod study_kill;
mod study_queue;
mod study_run;
mod study_slurm;
mod tidy;
mod traces;
mod twin;
mod water;
mod whole_tasks;
mod workloads;
