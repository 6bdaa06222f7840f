//! The docs.

use std::path::Path;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A block.
pub struct Block {
    pub language: String,
    pub text: String,
}

pub fn blocks(_page: &str) -> Vec<Block> {
    Vec::new()
}
