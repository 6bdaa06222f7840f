//! Many simulations, stepped together on threads.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_base::error::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::simulation::{Setting, Simulation, Step};

/// Simulations with one setting, and the observations and masks of their agents.
pub struct Fleet {
    simulations: Vec<Simulation>,
    /// The threads in addition to the calling thread.
    helpers: Option<ThreadPool>,
    shape: (usize, usize),
    actions: usize,
    /// Whether a step of a completed episode begins the next one.
    begins_anew: bool,
    observations: Vec<f32>,
    masks: Vec<u8>,
}

/// The outcome of the decisions of all agents.
pub type Stepped = Vec<Step>;

/// The result of a step that begins an episode.
const BEGUN: Step = Step { reward: 0.0, over: false };

impl Fleet {
    /// Creates `count` simulations on at most `threads` threads. With `begins_anew`, a step after the end of an episode takes no decision,
    /// but begins the next episode. Errors: [`Error::Mismatch`] if there are no threads.
    pub fn new(setting: Setting, count: usize, threads: usize, begins_anew: bool) -> Result<Fleet> {
        let dims = setting.cluster.dims.len();
        let (shape, actions) = (setting.observation.shape(dims), setting.observation.window() + 1);
        let setting = Arc::new(setting);
        let helpers = threads.min(count).saturating_sub(1);
        let build = || ThreadPoolBuilder::new().num_threads(helpers).build();
        let helpers = (helpers > 0).then(build).transpose();
        let helpers = helpers.map_err(|error| Error::Mismatch { problem: format!("threads: {error}") })?;
        Ok(Fleet {
            simulations: (0..count).map(|_| Simulation::new(Arc::clone(&setting))).collect(),
            helpers,
            shape,
            actions,
            begins_anew,
            observations: vec![0.0; count * shape.0 * shape.1],
            masks: vec![0; count * actions],
        })
    }

    /// Returns the number of simulations.
    pub fn count(&self) -> usize {
        self.simulations.len()
    }

    /// Returns the numbers of rows and columns of an observation.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// Returns the number of actions; the last action is the wait.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Returns the observations, one simulation after the other.
    pub fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// Returns 1 for each allowed action and 0 for the others, one simulation after the other.
    pub fn masks(&self) -> &[u8] {
        &self.masks
    }

    /// Returns a simulation. Panics: if the number is out of range (a programmer error).
    pub fn simulation(&self, number: usize) -> &Simulation {
        &self.simulations[number]
    }

    /// Begins an episode in every simulation, as [`Simulation::reset`] does. Errors: as [`Simulation::reset`]. Panics: unless there is one
    /// seed per simulation (a programmer error).
    pub fn reset(&mut self, seeds: &[Option<u64>]) -> Result<Stepped> {
        assert_eq!(seeds.len(), self.simulations.len(), "a seed for each simulation, or none");
        self.each(seeds, |simulation, seed| simulation.reset(*seed).map(|()| BEGUN))
    }

    /// Executes a decision in every simulation, as [`Simulation::step`] does. Errors: as [`Simulation::step`]. Panics: unless there is one
    /// action per simulation (a programmer error).
    pub fn step(&mut self, actions: &[usize]) -> Result<Stepped> {
        assert_eq!(actions.len(), self.simulations.len(), "an action for each simulation");
        let begins_anew = self.begins_anew;
        self.each(actions, |simulation, action| {
            if begins_anew && !simulation.is_live() {
                return simulation.reset(None).map(|()| BEGUN);
            }
            simulation.step(*action)
        })
    }

    /// Calls `act` on every simulation, and writes the new observation and mask of its agent.
    fn each<T: Sync>(
        &mut self,
        inputs: &[T],
        act: impl Fn(&mut Simulation, &T) -> Result<Step> + Sync,
    ) -> Result<Stepped> {
        let Fleet { simulations, observations, masks, .. } = self;
        let mut steps: Vec<Option<Result<Step>>> = simulations.iter().map(|_| None).collect();
        let all = simulations.iter_mut().zip(inputs).zip(&mut steps);
        let observations = observations.chunks_exact_mut(self.shape.0 * self.shape.1);
        let queue = Mutex::new(all.zip(observations).zip(masks.chunks_exact_mut(self.actions)));
        // Each thread takes the next simulation when it is free, so a thread that starts late does less work.
        let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(((((simulation, input), step), observation), mask)) = take() {
                *step = Some(act(simulation, input));
                simulation.observe(observation);
                simulation.mask(mask);
            }
        };
        match &self.helpers {
            None => work(),
            Some(helpers) => helpers.in_place_scope(|scope| {
                (0..helpers.current_num_threads()).for_each(|_| scope.spawn(|_| work()));
                work();
            }),
        }
        steps.into_iter().flatten().collect()
    }
}
