//! The saved states of a run: a run that was killed continues from the last one.
//!
//! The folder of a run has one file with the state of the engine, the policy and the metrics, and the incomplete tables. The state is
//! written under a temporary name and renamed, after the rows of the tables are on disk. It begins with the identity of the run and the
//! program, and a digest. A run begins again if its saved state is of another program, damaged, or does not fit.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_results::files::STATE;
use plimsoll_results::folder::check_links;
use plimsoll_results::ownership;
use plimsoll_results::schema::Table;
use plimsoll_store::file::{digest_of, write_whole};

/// The first bytes of a state, with the version of its format.
const MAGIC: &[u8] = b"plimsoll state 1\n";

/// The length of a digest in hexadecimal.
const DIGEST: usize = 64;

/// The length of the header: the first bytes, the digests of the identity and of the state, a line end, and whether the replay is shared.
const HEADER: usize = MAGIC.len() + 2 * DIGEST + 2;

/// The interval between two saved states of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveEvery {
    /// A real time.
    Time(Duration),
    /// A number of instants of the run.
    Instants(u64),
}

/// The place of a run's saved states, and the interval between them.
#[derive(Clone, Debug)]
pub struct SavedStates {
    /// The results folder, below which no link is followed.
    pub results: PathBuf,
    /// The folder of the saved states of this run, below `results`.
    pub folder: PathBuf,
    /// The identity of the run.
    pub id: String,
    /// The interval.
    pub every: SaveEvery,
}

/// A state that was read.
pub(crate) struct SavedState {
    /// Whether the run used the shared fluid replay of its workload.
    pub is_shared: bool,
    pub bytes: Vec<u8>,
}

impl SavedStates {
    /// Returns the path of an incomplete table.
    pub(crate) fn table(&self, table: Table) -> PathBuf {
        self.folder.join(format!("{}.parquet", table.name()))
    }

    /// Returns the path of the state. Errors: [`Error::Output`](plimsoll_base::error::Error::Output) if a link is on the way to a file of the saved states.
    fn state(&self) -> Result<PathBuf> {
        let state = self.folder.join(STATE);
        Table::all().try_for_each(|table| check_links(&self.results, &self.table(table)))?;
        check_links(&self.results, &state).map(|()| state)
    }

    /// Returns the saved state, if there is one. Errors: it cannot be used, for the returned reason.
    pub(crate) fn load(&self) -> std::result::Result<Option<SavedState>, String> {
        let path = self.state().map_err(|error| error.to_string())?;
        let mut bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|error| error.to_string())?,
        };
        let program = program().ok_or("the file of the running program cannot be read")?;
        let Some((header, state)) = bytes.split_at_checked(HEADER) else { return Err("it is damaged".to_owned()) };
        let is_shared = header[HEADER - 1] == 1;
        match self.header(program, state, is_shared) {
            expected if expected == header => {}
            expected if expected[..MAGIC.len() + DIGEST] == header[..MAGIC.len() + DIGEST] => {
                return Err("it is damaged".to_owned());
            }
            _ => return Err("it was saved by another program".to_owned()),
        }
        bytes.drain(..HEADER);
        Ok(Some(SavedState { is_shared, bytes }))
    }

    /// Saves the state of a run. Returns the reason if the state cannot be written, which leaves the state before it. Errors: those of the
    /// object, such as tables that cannot be written.
    pub(crate) fn save(
        &self,
        object: &mut impl Checkpoint,
        is_shared: bool,
    ) -> Result<std::result::Result<(), String>> {
        let Some(program) = program() else {
            return Ok(Err("the file of the running program cannot be read".to_owned()));
        };
        let path = match self.state() {
            Ok(path) => path,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut bytes = Visitor::save(object, vec![0; HEADER])?;
        let header = self.header(program, &bytes[HEADER..], is_shared);
        bytes[..HEADER].copy_from_slice(&header);
        Ok(write_whole(&path, &bytes).map(drop).map_err(|error| error.to_string()))
    }

    /// Returns the bytes before a state.
    fn header(&self, program: &str, state: &[u8], is_shared: bool) -> Vec<u8> {
        let identity = digest_of(format!("{} {program}", self.id).as_bytes());
        [MAGIC, identity.as_bytes(), digest_of(state).as_bytes(), &[b'\n', u8::from(is_shared)]].concat()
    }

    /// Removes the saved state and the incomplete tables. Errors: [`Error::Output`](plimsoll_base::error::Error::Output).
    pub fn remove(&self) -> Result<()> {
        self.state()?;
        ownership::remove_saved(&self.folder)
    }
}

/// Returns the digest of the file that contains this code: the program, or the library of the Python package. `None` if it cannot be read,
/// for example because it was replaced since the start.
fn program() -> Option<&'static str> {
    static PROGRAM: OnceLock<Option<String>> = OnceLock::new();
    let digest = || Some(digest_of(&std::fs::read(code_file()?).ok()?));
    PROGRAM.get_or_init(digest).as_deref()
}

/// Returns the path of the file that contains this code.
fn code_file() -> Option<PathBuf> {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return std::env::current_exe().ok() };
    let here = program as fn() -> Option<&'static str> as usize;
    let contains = |range: &str| {
        let (start, end) = range.split_once('-')?;
        let parse = |text| usize::from_str_radix(text, 16).ok();
        Some((parse(start)?..parse(end)?).contains(&here))
    };
    let line = maps.lines().find(|line| line.split(' ').next().and_then(contains) == Some(true))?;
    line.find('/').map(|at| Path::new(&line[at..]).to_owned())
}

/// Decides when the next state is saved.
pub(crate) struct SaveClock {
    every: SaveEvery,
    begun: Instant,
    since: Instant,
    instants: u64,
}

impl SaveClock {
    /// Number of instants between two readings of the clock.
    const STEP: u64 = 16;

    /// A run that is interrupted sooner after its beginning saves no state.
    const MIN_RUN: Duration = Duration::from_secs(10);

    pub fn new(every: SaveEvery) -> SaveClock {
        let now = Instant::now();
        SaveClock { every, begun: now, since: now, instants: 0 }
    }

    /// Records an instant; returns whether the state is to be saved after it.
    pub fn is_due(&mut self) -> bool {
        self.instants += 1;
        match self.every {
            SaveEvery::Time(time) => self.instants.is_multiple_of(Self::STEP) && self.since.elapsed() >= time,
            SaveEvery::Instants(instants) => self.instants >= instants,
        }
    }

    /// Records that a state was saved.
    pub fn saved(&mut self) {
        (self.since, self.instants) = (Instant::now(), 0);
    }

    /// Returns whether a run that is interrupted now saves its state.
    pub fn is_worth_saving(&self) -> bool {
        self.begun.elapsed() >= Self::MIN_RUN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(u64);

    impl Checkpoint for Count {
        fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
            let Count(count) = self;
            visitor.value(count)
        }
    }

    fn states(results: &Path, id: &str) -> SavedStates {
        let folder = results.join("saved").join("0123456789abcdef");
        SavedStates { results: results.to_owned(), folder, id: id.to_owned(), every: SaveEvery::Instants(1) }
    }

    #[test]
    fn a_state_is_of_one_run_and_undamaged() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let states = states(dir.path(), "one");
        assert!(states.load().is_ok_and(|state| state.is_none()));
        states.save(&mut Count(7), true).expect("no errors").expect("a writable folder");
        let state = states.load().expect("it is there").expect("it is there");
        let mut count = Count(0);
        Visitor::restore(&mut count, &state.bytes).expect("it fits");
        assert!(count.0 == 7 && state.is_shared);
        let other = super::tests::states(dir.path(), "two");
        assert_eq!(other.load().err().as_deref(), Some("it was saved by another program"));
        let path = states.state().expect("no link");
        let whole = std::fs::read(&path).expect("a file");
        for at in [0, MAGIC.len(), MAGIC.len() + DIGEST, HEADER - 1, HEADER] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).expect("a file");
            // The last byte of the header selects the replay, and has no digest.
            assert!(states.load().is_err() != (at == HEADER - 1), "byte {at}");
        }
        for length in [0, 1, HEADER - 1, HEADER, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).expect("a file");
            assert_eq!(states.load().err().as_deref(), Some("it is damaged"), "{length} bytes");
        }
        states.remove().expect("a folder of states");
        assert!(!states.folder.exists());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let states = states(dir.path(), "one");
        states.save(&mut Count(7), false).expect("no errors").expect("a writable folder");
        let other = dir.path().join("other");
        std::fs::write(&other, "kept").expect("a file");
        std::os::unix::fs::symlink(&other, states.table(Table::Jobs)).expect("a link");
        assert!(states.load().is_err_and(|reason| reason.contains("link")));
        assert!(states.save(&mut Count(8), false).expect("no errors").is_err());
        assert!(states.remove().is_err());
        assert_eq!(std::fs::read_to_string(other).expect("a file"), "kept");
    }

    #[test]
    fn the_program_is_this_one() {
        let file = code_file().expect("this test is a file");
        let own = std::env::current_exe().expect("this test is a file");
        assert_eq!(file.file_name(), own.file_name());
        assert!(program().is_some_and(|digest| digest.len() == DIGEST));
    }
}
