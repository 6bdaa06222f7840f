//! Results folders of Plimsoll: the schema of the tables, the names of files, manifests, provenance, and the check of bundles.
//!
//! A results folder has one description ([`folder::Contents`]), a receipt per complete run, and a manifest of the generated files
//! ([`manifest::Manifest`]). Readers use only files that one of these lists, and only if their digests match.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod comparison;
pub mod crate_json;
pub mod folder;
pub mod manifest;
pub mod provenance;
pub mod read;
pub mod schema;
pub mod shell;
pub mod verify;
