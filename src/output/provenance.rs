//! What every file says of the program that made it.

/// The program's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The last commit that changed the program's sources, with `+changes` where they were not as committed; `None` where it
/// was not built from a repository.
pub const COMMIT: Option<&str> = option_env!("PLIMSOLL_COMMIT");

/// The program as metadata of a file: the same for every way to run it.
pub fn program() -> Vec<(String, String)> {
    let commit = COMMIT.map(|commit| ("plimsoll.commit".to_owned(), commit.to_owned()));
    [("plimsoll.version".to_owned(), VERSION.to_owned())].into_iter().chain(commit).collect()
}

/// The same as rows of a page.
pub fn rows() -> Vec<(String, String)> {
    program().into_iter().map(|(key, value)| (key.replace("plimsoll.", ""), value)).collect()
}
