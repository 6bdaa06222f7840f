//! Import of foreign cluster logs by mappings.
//!
//! A mapping is a TOML file that describes how the rows of a log become the rows of a trace ([`Mapping`]). [`import`] reads the files of a
//! log by a mapping into a [`Workload`](plimsoll_sim::workload::Workload). Every row that is dropped or repaired and every column that is
//! not read is in its report.
//!
//! The steps are: files to tables (`tables.rs`, `input/`), nested records to rows (`readers/`), events to rows (`fold.rs`), expressions
//! to values (`expr/`, `bind.rs`), values to drafts (`draft.rs`), attempts to drafts (`attempts.rs`), drafts to sorted task sets
//! (`assemble.rs`, `job.rs`, `imported.rs`). Events, attempts, jobs and submit times are sorted within a bound of memory (`spill/`). Shipped
//! mappings are in the folder `mappings`.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod account;
mod assemble;
mod attempts;
mod bind;
mod clock;
mod condition;
mod draft;
mod expr;
mod fold;
mod guess;
mod imported;
mod input;
mod job;
mod joined;
mod machines;
mod mapping;
mod number;
mod preceding;
mod readers;
mod report;
mod run;
mod shipped;
mod short;
mod spill;
mod tables;
mod target;
mod value;

pub use condition::Condition;
pub use expr::functions;
pub use guess::guess;
pub use imported::{Imported, ImportedRows};
pub use machines::{ImportedMachines, import_machines};
pub use mapping::{Mapping, VERSION};
pub use run::{ImportOptions, import, import_interruptible, import_sorted};
pub use shipped::{SHIPPED, Shipped, recognise};
pub use short::{read_mapping, with_changes};
pub use spill::Spill;
pub use tables::Interrupt;

/// The name of a mapping that is not shipped.
pub const OWN: &str = "mapping";
