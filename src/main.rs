//! The `plimsoll` program: the command line with the built-in policies.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll::cli::main(&plimsoll::policy::Registry::new(plimsoll::policy::BUILT_IN))
}
