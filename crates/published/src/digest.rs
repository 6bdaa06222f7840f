//! Digests of input files.

use std::path::Path;

use sha1::{Digest, Sha1};

use plimsoll_base::error::{Error, Result};

fn bytes(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::io(path, error))
}

/// Returns the BLAKE3 digest of a file in hexadecimal. Errors: the file cannot be read.
pub fn blake3_of(path: &Path) -> Result<String> {
    Ok(blake3::hash(&bytes(path)?).to_hex().to_string())
}

/// Returns the id of a file as a git blob: the SHA-1 of `blob SIZE`, a zero byte and the content. Errors: the file cannot be read.
pub fn git_blob_of(path: &Path) -> Result<String> {
    let bytes = bytes(path)?;
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", bytes.len()).as_bytes());
    hasher.update(&bytes);
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_tools() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("x");
        std::fs::write(&path, "hello\n").expect("writable");
        // As `git hash-object` prints.
        assert_eq!(git_blob_of(&path).expect("readable"), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(blake3_of(&path).expect("readable").len(), 64);
    }
}
