//! The engine as a WebAssembly module for the report. Its host is `crates/report/src/explore/host.js`.
//!
//! The module has a buffer for input and one for output. The host calls `allocate` and writes a text there; `prepare` reads a
//! [`PageRequest`] in JSON, a zero byte, and a canonical trace; `run` reads [`PageChanges`] in JSON. Both return 1 and leave tables in the
//! output, or return 0 and leave a message. The host reads the output at `output_start`, with `output_length` bytes. During a run the
//! module calls `plimsoll.progress` with the simulated seconds and the number of launched tasks.
//!
//! Command: `cargo build -p plimsoll-page --profile page --target wasm32-unknown-unknown`.

#![deny(missing_docs)]

use std::cell::RefCell;

use plimsoll_page_engine::{PageChanges, PageEngine, PageRequest, PageTables};

/// The state of the module, which has one thread.
#[derive(Default)]
struct Module {
    input: Vec<u8>,
    output: Vec<u8>,
    engine: Option<PageEngine>,
}

thread_local! {
    static MODULE: RefCell<Module> = RefCell::default();
}

#[cfg(target_family = "wasm")]
#[link(wasm_import_module = "plimsoll")]
unsafe extern "C" {
    /// Receives the simulated seconds and the number of launched tasks.
    safe fn progress(seconds: f64, launched: f64);
}

/// Only hosts of WebAssembly receive the progress.
#[cfg(not(target_family = "wasm"))]
fn progress(_seconds: f64, _launched: f64) {}

/// Returns the bytes of a text, for a section of the module.
const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let (mut bytes, mut at) = ([0; N], 0);
    while at < N {
        bytes[at] = text.as_bytes()[at];
        at += 1;
    }
    bytes
}

const COMMIT: &str = match option_env!("PLIMSOLL_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// The version of the sources: the report accepts only a module of its own version.
#[used]
#[cfg_attr(target_family = "wasm", unsafe(link_section = "plimsoll-version"))]
static VERSION_SECTION: [u8; env!("CARGO_PKG_VERSION").len()] = bytes(env!("CARGO_PKG_VERSION"));

/// The commit of the sources.
#[used]
#[cfg_attr(target_family = "wasm", unsafe(link_section = "plimsoll-commit"))]
static COMMIT_SECTION: [u8; COMMIT.len()] = bytes(COMMIT);

/// Resizes the buffer for input and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    MODULE.with_borrow_mut(|module| {
        module.input.clear();
        module.input.resize(length, 0);
        module.input.as_mut_ptr()
    })
}

/// Reads the request and the rows in the input. Returns 1; or 0, with a message as output.
#[unsafe(no_mangle)]
pub extern "C" fn prepare() -> u32 {
    MODULE.with_borrow_mut(|module| {
        let input = std::mem::take(&mut module.input);
        let prepared = read_request(input).map(|engine| module.engine = Some(engine));
        module.respond(prepared.map(|()| Vec::new()))
    })
}

/// Executes a run with the changes in the input. Returns 1, with the three tables as output, each followed by a zero byte; or 0, with a
/// message.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> u32 {
    MODULE.with_borrow_mut(|module| {
        let input = std::mem::take(&mut module.input);
        let result = execute(module.engine.as_ref(), &input);
        module.respond(result)
    })
}

/// Returns the address of the output.
#[unsafe(no_mangle)]
pub extern "C" fn output_start() -> *const u8 {
    MODULE.with_borrow(|module| module.output.as_ptr())
}

/// Returns the length of the output in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn output_length() -> usize {
    MODULE.with_borrow(|module| module.output.len())
}

impl Module {
    /// Stores a result or its message as output; returns whether it is a result.
    fn respond(&mut self, result: Result<Vec<u8>, String>) -> u32 {
        let success = result.is_ok();
        self.output = result.unwrap_or_else(String::into_bytes);
        success.into()
    }
}

fn read_request(mut input: Vec<u8>) -> Result<PageEngine, String> {
    let end = input.iter().position(|byte| *byte == 0).ok_or("the input has no zero byte after the request")?;
    let trace = input.split_off(end + 1);
    let request: PageRequest = serde_json::from_slice(&input[..end]).map_err(|error| error.to_string())?;
    PageEngine::new(request, trace).map_err(|error| error.to_string())
}

fn execute(engine: Option<&PageEngine>, input: &[u8]) -> Result<Vec<u8>, String> {
    let engine = engine.ok_or("the rows were not prepared")?;
    let changes: PageChanges = serde_json::from_slice(input).map_err(|error| error.to_string())?;
    let mut report = |now: plimsoll_base::units::Time, launched: u64| {
        progress(now.seconds(), launched as f64);
        Ok(())
    };
    let PageTables { runs, jobs, fairness } = engine.run(&changes, &mut report).map_err(|error| error.to_string())?;
    Ok([runs, jobs, fairness].into_iter().flat_map(|table| [table.into_bytes(), vec![0]]).flatten().collect())
}
