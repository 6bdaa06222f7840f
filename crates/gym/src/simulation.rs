//! Runs one episode after the other, from decision to decision.
//!
//! A [`Simulation`] advances the engine until a job in the window fits; then the agent decides. Equal seeds give equal episodes. The log
//! of the episode supplies rewards, metrics and the times of jobs.

use std::sync::{Arc, Mutex};

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Time, UserId};
use plimsoll_metrics::Run;
use plimsoll_sim::books::Weights;
use plimsoll_sim::cluster::Cluster;
use plimsoll_sim::engine::{Engine, Options, RunContext};
use plimsoll_sim::workload::synthetic::random::stream;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::episode_log::{AdmitNone, EpisodeLog, JobTimes, RecorderHandle, locked};
use crate::features::Features;
use crate::image::Image;
use crate::jobs::{Episode, EpisodeRows, JobPool};
use crate::line::{AgentView, JobLine, RunningBatch, requested};
use crate::reward::{Reward, metrics};

/// The form of the agent's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// Rows of numbers.
    Window(Features),
    /// An image.
    Image(Image),
}

impl Observation {
    /// Returns the number of jobs that the agent can choose.
    pub fn window(&self) -> usize {
        match self {
            Observation::Window(features) => features.window,
            Observation::Image(image) => image.window,
        }
    }

    /// Returns the numbers of rows and columns for a number of resources.
    pub fn shape(&self, dims: usize) -> (usize, usize) {
        match self {
            Observation::Window(features) => (features.window, Features::columns(dims)),
            Observation::Image(image) => (image.horizon, image.columns(dims)),
        }
    }

    fn write(&self, view: &AgentView, into: &mut [f32]) {
        match self {
            Observation::Window(features) => features.write(view, into),
            Observation::Image(image) => image.write(view, into),
        }
    }
}

/// The parameters that all episodes share.
pub struct Setting {
    /// Returns the jobs for a seed.
    pub supply: Box<dyn Fn(u64) -> Result<Arc<JobPool>> + Send + Sync>,
    /// The number of jobs in an episode; all jobs if absent.
    pub jobs: Option<usize>,
    /// Whether the seed draws the first job of an episode; otherwise it is the first job of the workload.
    pub anywhere: bool,
    /// The machines.
    pub cluster: Arc<Cluster>,
    /// Engine options.
    pub options: Options,
    /// The form of the agent's input.
    pub observation: Observation,
    /// The reward of the agent.
    pub reward: Reward,
}

impl Setting {
    /// Returns the jobs of an episode. Errors: those of the supply, [`Error::Mismatch`] for a workload without jobs, and [`Error::Plan`]
    /// for a workload with too few jobs.
    fn episode(&self, seed: u64) -> Result<Episode> {
        let pool = (self.supply)(seed)?;
        let all = pool.jobs();
        let count = self.jobs.unwrap_or(all);
        if all == 0 {
            return Err(Error::Mismatch { problem: "the workload has no jobs".to_owned() });
        }
        if !(1..=all).contains(&count) {
            return Err(Error::plan("jobs", count, format!("1 to {all}, as many as the workload has")));
        }
        let first = if self.anywhere { stream(seed, "gym/first job").random_range(0..=all - count) } else { 0 };
        Ok(Episode::new(pool, first, count))
    }
}

/// The outcome of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The reward since the last decision.
    pub reward: f64,
    /// Whether the episode is over.
    pub over: bool,
}

/// An unfinished episode.
struct Live {
    engine: Engine<'static>,
    log: Arc<Mutex<EpisodeLog>>,
    episode: Arc<Episode>,
    line: JobLine,
    /// Whether room can appear without the end of a task, because machines join, or because tasks fall back to machines farther away
    /// (locality).
    eventful: bool,
}

/// A simulation that an agent steps from decision to decision.
pub struct Simulation {
    setting: Arc<Setting>,
    /// The random stream of seeds for later episodes.
    later: ChaCha8Rng,
    live: Option<Live>,
    /// For the last completed episode, columns of the table `runs` and their values.
    metrics: Vec<(String, f64)>,
    /// The times of the jobs of the last completed episode.
    times: Vec<JobTimes>,
    episode: Option<Arc<Episode>>,
}

impl Simulation {
    /// Creates a simulation before its first episode.
    pub fn new(setting: Arc<Setting>) -> Simulation {
        let (metrics, times) = (Vec::new(), Vec::new());
        Simulation { setting, later: stream(0, "gym/episodes"), live: None, metrics, times, episode: None }
    }

    /// Begins an episode and advances to its first decision. With a seed, it is the episode of this seed; otherwise it is the next episode
    /// of the sequence that began with the last given seed. Errors: those of the workload, and [`Error::Idle`] if no job ever fits.
    pub fn reset(&mut self, seed: Option<u64>) -> Result<()> {
        self.live = None;
        let seed = match seed {
            Some(seed) => {
                self.later = stream(seed, "gym/episodes");
                seed
            }
            // Plans accept seeds below 2^63.
            None => self.later.random::<u64>() >> 1,
        };
        let episode = Arc::new(self.setting.episode(seed)?);
        let Setting { cluster, options, .. } = &*self.setting;
        let log = Arc::new(Mutex::new(EpisodeLog::new(&episode.users, cluster.total())));
        let rows = Box::new(EpisodeRows::new(Arc::clone(&episode)));
        let context = RunContext::own(rows, Box::new(AdmitNone), Box::new(RecorderHandle::new(Arc::clone(&log))));
        let options = Options { seed, ..options.clone() };
        let engine = Engine::new(context, Arc::clone(cluster), Weights::default(), &options)?;
        let line = JobLine::new(episode.jobs(), self.setting.observation.window(), cluster.total(), cluster.dims.len());
        (self.episode, self.times) = (Some(Arc::clone(&episode)), vec![JobTimes::default(); episode.jobs()]);
        let located = episode.sets.iter().any(|set| set.location.is_some());
        let eventful = located || !cluster.events.events.is_empty();
        let mut live = Live { engine, log, episode, line, eventful };
        if !live.advance()? {
            let expected = "expected larger machines, or jobs that ask for less";
            let problem =
                format!("no job of the episode with seed {seed} fits the machines when they are empty; {expected}");
            return Err(Error::Idle { problem });
        }
        self.live = Some(live);
        Ok(())
    }

    /// Returns whether an episode has begun and is not over.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Executes a decision and advances to the next one.
    ///
    /// A decision is a place of the window: the next task set of the job in this place starts as many tasks as fit. Any other action waits
    /// until the state changes. A place without a job, or with a job that does not fit, also means to wait. If no further event would
    /// come, the first job that fits is started instead of a wait.
    ///
    /// Errors: [`Error::Mismatch`] without an episode, and errors that end a run. Errors that end a run also end the episode.
    pub fn step(&mut self, action: usize) -> Result<Step> {
        let Some(live) = &mut self.live else {
            return Err(Error::Mismatch { problem: "the episode is over; call reset()".to_owned() });
        };
        let goes_on = match live.act(action) {
            Ok(goes_on) => goes_on,
            Err(error) => {
                self.live = None;
                return Err(error);
            }
        };
        let jobs = live.episode.jobs();
        let sums = std::mem::take(&mut locked(&live.log).sums);
        let mut reward = self.setting.reward.running(&sums, jobs);
        if !goes_on {
            self.end()?;
            reward += self.setting.reward.at_end(&self.metrics);
        }
        Ok(Step { reward, over: !goes_on })
    }

    /// Ends the episode and computes its metrics. Errors: those of the recorder.
    fn end(&mut self) -> Result<()> {
        let Some(live) = self.live.take() else { return Ok(()) };
        let outcome = live.engine.finish()?;
        let log = locked(&live.log);
        let cluster = &self.setting.cluster;
        let machines = (cluster.capacities.len() as u64, cluster.total());
        self.metrics = metrics(&Run::new(&log.totals, outcome, log.users(), machines), &cluster.dims);
        self.times = (0..live.episode.jobs()).map(|job| log.times(job)).collect();
        Ok(())
    }

    /// Returns the numeric columns of the table `runs` for the last completed episode.
    pub fn metrics(&self) -> &[(String, f64)] {
        &self.metrics
    }

    /// Returns the name, the user and the times so far of each job of the current episode, or of the last one.
    pub fn jobs(&self) -> impl Iterator<Item = (String, &str, JobTimes)> {
        let times = |job: usize| match &self.live {
            Some(live) => locked(&live.log).times(job),
            None => self.times[job],
        };
        let episode = self.episode.as_deref();
        episode.into_iter().flat_map(move |episode| {
            (0..episode.jobs()).map(move |job| (episode.name(job), episode.user(job), times(job)))
        })
    }

    /// Returns the state that the agent observes; `None` if the episode is over.
    pub fn view(&self) -> Option<AgentView<'_>> {
        let (live, cluster) = (self.live.as_ref()?, &self.setting.cluster);
        Some(AgentView {
            now: live.engine.now(),
            arrival: locked(&live.log).arrival,
            window: &live.line.window,
            beyond: live.line.beyond(),
            running: &live.line.running,
            capacity: cluster.total(),
            dims: cluster.dims.len(),
        })
    }

    /// Writes the observation; it is 0 everywhere if the episode is over. Panics: if `into` has another size (a programmer error).
    pub fn observe(&self, into: &mut [f32]) {
        match self.view() {
            Some(view) => self.setting.observation.write(&view, into),
            None => into.fill(0.0),
        }
    }

    /// Writes 1 for each allowed action and 0 for the others. The places of jobs that fit are allowed, and the wait if a further event
    /// will come. If the episode is over, only the wait is allowed. Panics: unless `into` has a place for each action (a programmer
    /// error).
    pub fn mask(&self, into: &mut [u8]) {
        into.fill(0);
        let wait = into.len() - 1;
        match &self.live {
            Some(live) => {
                let window = live.line.window.iter();
                into.iter_mut().zip(window).for_each(|(allowed, shown)| *allowed = u8::from(shown.fits));
                into[wait] = u8::from(live.more_to_come());
            }
            None => into[wait] = 1,
        }
    }
}

impl Live {
    /// Returns whether a wait would end, because tasks run or jobs have not arrived yet.
    fn more_to_come(&self) -> bool {
        self.engine.books().total_running() > 0 || locked(&self.log).rows < self.episode.sets.len()
    }

    /// Executes a decision, see [`Simulation::step`]; returns `false` if the episode is over. Errors: errors that end a run.
    fn act(&mut self, action: usize) -> Result<bool> {
        let chosen = self.line.window.get(action).filter(|shown| shown.fits);
        let instead = || self.line.first_that_fits().filter(|_| !self.more_to_come());
        let job = chosen.or_else(instead).map(|shown| shown.job);
        if let Some((job, next)) = job.and_then(|job| Some((job, self.line.next(job)?))) {
            let set = &self.episode.sets[next.row as usize];
            let count = self.engine.start(UserId(job))?;
            let now = self.engine.now();
            let end = Time(now.0.saturating_add(requested(set).0));
            let tasks = (next.number, count);
            self.line.started(RunningBatch { job, tasks, count, start: now, demand: set.demand, end });
            self.refresh_job(job);
            self.line.open(&mut self.engine, &self.episode.sets);
            if self.line.first_that_fits().is_some() {
                return Ok(true);
            }
        }
        self.advance()
    }

    /// Advances until a job in the window fits; returns `false` if the run is over. Errors: errors that end a run.
    fn advance(&mut self) -> Result<bool> {
        while self.engine.step()?.is_some() {
            let (changed, ended) = {
                let mut log = locked(&self.log);
                (std::mem::take(&mut log.changed), std::mem::take(&mut log.ended))
            };
            if self.eventful || !ended.is_empty() {
                self.line.grown();
            }
            ended.iter().for_each(|ended| self.line.ended(ended));
            changed.iter().for_each(|job| self.refresh_job(job.0));
            self.line.open(&mut self.engine, &self.episode.sets);
            if self.line.first_that_fits().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Updates the state of a job after its allocation or pending demand has changed.
    fn refresh_job(&mut self, job: u32) {
        let next = self.line.refresh(job, &mut self.engine, &self.episode.sets);
        let mut log = locked(&self.log);
        log.update_job(job as usize, self.engine.books());
        if let Some(next) = next {
            log.ideal(job as usize, next.ideal);
        }
    }
}
