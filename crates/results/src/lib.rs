//! Results folders of Plimsoll: the schema of the tables, the names of files ([`files`]), records, ownership, provenance, and bundles.
//!
//! A results folder has one description ([`folder::Contents`]), a receipt per complete run ([`receipt::Receipt`]), and a manifest of the
//! generated files ([`manifest::Manifest`]). Readers use only files that one of these lists, and only if their digests match.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod accelerators;
pub mod bundle;
pub mod comparison;
pub mod crate_json;
pub mod files;
pub mod folder;
pub mod manifest;
pub mod ownership;
pub mod provenance;
pub mod read;
pub mod receipt;
pub mod schema;
pub mod shell;
pub mod summary;
pub mod verify;
