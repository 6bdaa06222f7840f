//! Many simulations, stepped together on threads.

use std::sync::Arc;

use plimsoll_base::error::{Error, Result};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::simulation::{Setting, Simulation, Step};

/// Simulations of one setting, and what their agents see.
pub struct Fleet {
    simulations: Vec<Simulation>,
    /// None for one simulation.
    pool: Option<ThreadPool>,
    shape: (usize, usize),
    actions: usize,
    /// Whether a step of an episode that is over begins the next one.
    begins_anew: bool,
    observations: Vec<f32>,
    masks: Vec<u8>,
}

/// The outcome of the decisions of all agents.
pub type Stepped = Vec<Step>;

impl Fleet {
    /// So many simulations on at most so many threads. Where it `begins_anew`, a step of an episode that is over takes no decision but
    /// begins the next one. Errors: [`Error::Mismatch`] when there can be no threads.
    pub fn new(setting: Setting, count: usize, threads: usize, begins_anew: bool) -> Result<Fleet> {
        let dims = setting.cluster.dims.len();
        let (shape, actions) = (setting.observation.shape(dims), setting.observation.window() + 1);
        let setting = Arc::new(setting);
        let threads = threads.min(count);
        let build = || ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = (threads > 1).then(build).transpose();
        let pool = pool.map_err(|error| Error::Mismatch { problem: format!("threads: {error}") })?;
        Ok(Fleet {
            simulations: (0..count).map(|_| Simulation::new(Arc::clone(&setting))).collect(),
            pool,
            shape,
            actions,
            begins_anew,
            observations: vec![0.0; count * shape.0 * shape.1],
            masks: vec![0; count * actions],
        })
    }

    /// How many simulations there are.
    pub fn count(&self) -> usize {
        self.simulations.len()
    }

    /// Rows and columns of an observation.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// How many actions there are; the last one is to wait.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// The observations, one simulation after the other.
    pub fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// Which actions are allowed, 1 or 0, one simulation after the other.
    pub fn masks(&self) -> &[u8] {
        &self.masks
    }

    /// A simulation. Panics: if there is none of this number (a programmer error).
    pub fn simulation(&self, number: usize) -> &Simulation {
        &self.simulations[number]
    }

    /// Begins an episode in every simulation, as [`Simulation::reset`] does. Errors: as there.
    /// Panics: unless there are as many seeds (a programmer error).
    pub fn reset(&mut self, seeds: &[Option<u64>]) -> Result<Stepped> {
        assert_eq!(seeds.len(), self.simulations.len(), "a seed for each simulation, or none");
        self.each(seeds, |simulation, seed| Ok(Step { reward: 0.0, over: simulation.reset(*seed)? }))
    }

    /// Takes a decision in every simulation, as [`Simulation::step`] does. Errors: as there.
    /// Panics: unless there are as many actions (a programmer error).
    pub fn step(&mut self, actions: &[usize]) -> Result<Stepped> {
        assert_eq!(actions.len(), self.simulations.len(), "an action for each simulation");
        let begins_anew = self.begins_anew;
        self.each(actions, |simulation, action| {
            if begins_anew && !simulation.is_live() {
                return Ok(Step { reward: 0.0, over: simulation.reset(None)? });
            }
            simulation.step(*action)
        })
    }

    /// Does something with every simulation, and writes what its agent sees then.
    fn each<T: Sync>(
        &mut self,
        inputs: &[T],
        act: impl Fn(&mut Simulation, &T) -> Result<Step> + Sync,
    ) -> Result<Stepped> {
        let (observation, actions) = (self.shape.0 * self.shape.1, self.actions);
        let one = |(((simulation, input), seen), mask): (((&mut Simulation, &T), &mut [f32]), &mut [u8])| {
            let step = act(simulation, input)?;
            simulation.observe(seen);
            simulation.mask(mask);
            Ok(step)
        };
        let Fleet { simulations, observations, masks, pool, .. } = self;
        match pool {
            None => {
                let all = simulations.iter_mut().zip(inputs);
                let all = all.zip(observations.chunks_exact_mut(observation)).zip(masks.chunks_exact_mut(actions));
                all.map(one).collect()
            }
            Some(pool) => pool.install(|| {
                let all = simulations.par_iter_mut().zip(inputs);
                let all = all.zip(observations.par_chunks_exact_mut(observation));
                all.zip(masks.par_chunks_exact_mut(actions)).map(one).collect()
            }),
        }
    }
}
