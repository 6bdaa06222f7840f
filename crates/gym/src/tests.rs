//! Tests of whole episodes against results derived from the times of their jobs alone.

use std::sync::Arc;

use plimsoll_base::units::{Dim, MAX_DIMS, Resources, Span, Time, Unit, UserId};
use plimsoll_sim::cluster::{Cluster, Placement};
use plimsoll_sim::engine::Options;
use plimsoll_sim::workload::{TaskSet, Workload};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{AgentView, Features, Fleet, Image, JobPool, JobTimes, Observation, Reward, Setting, Simulation};

const JOBS: usize = 60;
const SECOND: u64 = 1_000_000;

fn amounts(cpu: u64, memory: u64) -> Resources {
    let mut amounts = Resources::ZERO;
    (amounts.0[0], amounts.0[1]) = (cpu, memory);
    amounts
}

fn dims() -> Vec<Dim> {
    ["cpu", "memory"].map(|name| Dim { name: name.into(), unit: Unit::Milli }).to_vec()
}

/// Returns jobs with one task each, from three users.
fn workload(seed: u64) -> Workload {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut workload = Workload { dims: dims(), ..Workload::default() };
    let mut submit = 5 * SECOND;
    for number in 0..JOBS {
        submit += rng.random_range(0..3 * SECOND);
        let user = UserId(workload.users.intern(["x", "y", "z"][rng.random_range(0..3)]));
        let job = workload.job(&format!("job-{number}"));
        let duration = Span(rng.random_range(1..20 * SECOND));
        let guess = Span(duration.0 / 2 + rng.random_range(1..10 * SECOND));
        workload.sets.push(TaskSet {
            job,
            user,
            submit: Time(submit),
            duration,
            tasks: 1,
            demand: amounts(rng.random_range(1..9), rng.random_range(0..9)),
            estimate: (number % 2 == 0).then_some(guess),
            ..TaskSet::default()
        });
    }
    workload.finish()
}

const IMAGE: Image = Image { window: 4, step: Span(2_500_000), horizon: 7, slots: 3 };

fn setting(observation: Observation, reward: Reward, jobs: Option<usize>) -> Setting {
    let cluster = Cluster { dims: dims(), capacities: vec![amounts(10, 10), amounts(10, 6)], ..Cluster::default() };
    Setting {
        supply: Box::new(|seed| Ok(Arc::new(JobPool::new(workload(seed))))),
        jobs,
        anywhere: jobs.is_some(),
        cluster: Arc::new(cluster),
        options: Options { placement: Placement::FirstFit, audit: true, ..Options::default() },
        observation,
        reward,
    }
}

fn image() -> Observation {
    Observation::Image(IMAGE)
}

fn window() -> Observation {
    Observation::Window(Features { window: 6, longest: Span(15 * SECOND) })
}

fn simulation(observation: Observation, reward: Reward) -> Simulation {
    Simulation::new(Arc::new(setting(observation, reward, None)))
}

fn mask(simulation: &Simulation, actions: usize) -> Vec<u8> {
    let mut mask = vec![9; actions];
    simulation.mask(&mut mask);
    mask
}

/// A job of an episode: its row, and its times so far.
type TestJob = (TaskSet, JobTimes);

/// Returns the jobs of an episode, which are all jobs of its workload.
fn jobs(simulation: &Simulation, seed: u64) -> Vec<TestJob> {
    let sets = workload(seed).sets;
    let origin = sets[0].submit;
    let shifted = sets.into_iter().map(|set| TaskSet { submit: Time(set.submit.0 - origin.0), ..set });
    shifted.zip(simulation.jobs()).map(|(set, (_, _, times))| (set, times)).collect()
}

/// Returns the waiting jobs in order of arrival, and the running jobs with their expected ends.
fn standing(jobs: &[TestJob], now: Time) -> (Vec<&TaskSet>, Vec<(&TaskSet, Time)>) {
    let there = jobs.iter().filter(|(set, _)| set.submit <= now);
    let waits = there.clone().filter(|(_, times)| times.start.is_none()).map(|(set, _)| set).collect();
    let running = there.filter(|(_, times)| times.finish.is_none());
    let end = |set: &TaskSet, start: Time| start + set.estimate.unwrap_or(set.duration);
    let running = running.filter_map(|(set, times)| Some((set, end(set, times.start?))));
    (waits, running.collect())
}

/// Computes the image cell by cell.
fn drawn(jobs: &[TestJob], view: &AgentView) -> Vec<f32> {
    let Image { window, step, horizon, slots } = IMAGE;
    let (waits, running) = standing(jobs, view.now);
    let last = jobs.iter().map(|(set, _)| set.submit).filter(|submit| *submit <= view.now).max().expect("a job");
    let cell = |share: f64, slot: usize| (share * slots as f64 - slot as f64).clamp(0.0, 1.0) as f32;
    let mut image = Vec::new();
    for row in 0..horizon {
        let at = Time(view.now.0 + row as u64 * step.0);
        for d in 0..2 {
            let whole = view.capacity.0[d] as f64;
            let used = running.iter().filter(|(_, end)| *end > at || row == 0).map(|(set, _)| set.demand.0[d]);
            let used = used.sum::<u64>() as f64 / whole;
            image.extend((0..slots).map(|slot| cell(used, slot)));
            for place in 0..window {
                let asks = waits.get(place).filter(|set| set.estimate.unwrap_or(set.duration).0 > row as u64 * step.0);
                let share = asks.map_or(0.0, |set| set.demand.0[d] as f64 / whole);
                image.extend((0..slots).map(|slot| cell(share, slot)));
            }
        }
        let wide = 60usize.div_ceil(horizon);
        let beyond = waits.len().saturating_sub(window);
        image.extend((0..wide).map(|place| if row * wide + place < beyond { 1.0 } else { 0.0 }));
        image.push((view.now.since(last).0 as f64 / (10.0 * step.0 as f64)).min(1.0) as f32);
    }
    image
}

/// Computes the rows of the window, except the column that states whether jobs fit, which depends on the machines.
fn listed(jobs: &[TestJob], view: &AgentView) -> Vec<[f32; 5]> {
    let (waits, _) = standing(jobs, view.now);
    let part = |span: Span| (span.0 as f64 / (15 * SECOND) as f64).min(1.0) as f32;
    let row = |place: usize| match waits.get(place) {
        None => [0.0; 5],
        Some(set) => {
            let asks = |d: usize| (set.demand.0[d] as f64 / view.capacity.0[d] as f64) as f32;
            let requested = part(set.estimate.unwrap_or(set.duration));
            [part(view.now.since(set.submit)), requested, asks(0), asks(1), 1.0]
        }
    };
    (0..6).map(row).collect()
}

fn near(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (at, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < 1e-5, "cell {at}: {a} is not {b}");
    }
}

/// Plays an episode with random actions, both allowed and not allowed, and calls `look` in each state.
fn play(simulation: &mut Simulation, seed: u64, actions: usize, mut look: impl FnMut(&Simulation)) -> (f64, usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut sum, mut decisions) = (0.0, 0);
    simulation.reset(Some(seed)).expect("an episode");
    loop {
        let allowed = mask(simulation, actions);
        assert!(allowed[..actions - 1].contains(&1), "there is a choice");
        look(simulation);
        let step = simulation.step(rng.random_range(0..actions)).expect("a step");
        (sum, decisions) = (sum + step.reward, decisions + 1);
        assert!(decisions < 100 * JOBS, "it ends");
        if step.over {
            return (sum, decisions);
        }
    }
}

#[test]
fn the_image_is_the_one_drawn_cell_by_cell() {
    for seed in 0..12 {
        let mut simulation = simulation(image(), Reward::Slowdown);
        let mut seen = vec![9.0; IMAGE.horizon * IMAGE.columns(2)];
        play(&mut simulation, seed, 5, |simulation| {
            let view = simulation.view().expect("it goes on");
            simulation.observe(&mut seen);
            near(&seen, &drawn(&jobs(simulation, seed), &view));
        });
        simulation.observe(&mut seen);
        assert!(seen.iter().all(|cell| *cell == 0.0));
    }
}

#[test]
fn the_window_has_the_jobs_that_wait() {
    for seed in 0..12 {
        let mut simulation = simulation(window(), Reward::Wait);
        let mut seen = vec![9.0; 6 * Features::columns(2)];
        play(&mut simulation, seed, 7, |simulation| {
            let view = simulation.view().expect("it goes on");
            simulation.observe(&mut seen);
            let allowed = mask(simulation, 7);
            for ((row, expected), allowed) in seen.chunks(6).zip(listed(&jobs(simulation, seed), &view)).zip(allowed) {
                near(&[row[0], row[1], row[2], row[3], row[5]], &expected);
                assert_eq!(row[4], f32::from(allowed));
            }
        });
    }
}

#[test]
fn rewards_add_up_to_the_metric_of_the_times() {
    for seed in 0..12 {
        let mean =
            |of: &dyn Fn(&TestJob) -> f64, jobs: &[TestJob]| jobs.iter().map(of).sum::<f64>() / jobs.len() as f64;
        let span = |from: Time, to: Option<Time>| to.expect("all jobs end").since(from).seconds();
        let completion = |(set, times): &TestJob| span(set.submit, times.finish);
        let wait = |(set, times): &TestJob| span(set.submit, times.start);
        let slowdown = |job: &TestJob| completion(job) / job.0.duration.seconds();
        let cases: [(Reward, &str, &dyn Fn(&TestJob) -> f64); 3] = [
            (Reward::Completion, "completion_mean_s", &completion),
            (Reward::Wait, "wait_mean_s", &wait),
            (Reward::Slowdown, "slowdown_mean", &slowdown),
        ];
        for (reward, name, of) in cases {
            assert_eq!(Reward::parse("reward", name, &dims()).ok(), Some(reward.clone()));
            let mut simulation = simulation(window(), reward);
            let (sum, decisions) = play(&mut simulation, seed, 7, |_| ());
            let expected = mean(of, &jobs(&simulation, seed));
            let metric = simulation.metrics().iter().find(|(known, _)| known == name).expect("the metric").1;
            // Slowdowns are counted in millionths.
            assert!(
                (metric - expected).abs() < 1e-6 && (sum + expected).abs() < 1e-9 * expected,
                "{sum} {expected} {metric}"
            );
            assert!(decisions >= JOBS);
        }
        let reward = Reward::parse("reward", "used_cpu", &dims()).expect("a metric");
        let mut simulation = simulation(window(), reward);
        let (sum, _) = play(&mut simulation, seed, 7, |_| ());
        let jobs = jobs(&simulation, seed);
        let end = jobs.iter().filter_map(|(_, times)| times.finish).max().expect("an end");
        let work: f64 = jobs.iter().map(|(set, _)| set.demand.0[0] as f64 * set.duration.seconds()).sum();
        assert!((sum - work / 20.0 / end.seconds()).abs() < 1e-9);
    }
}

#[test]
fn the_jain_index_is_that_of_the_users_of_the_workload() {
    let reward = Reward::parse("reward", "jain_backlogged", &dims()).expect("a metric");
    for seed in 0..6 {
        let mut simulation = simulation(window(), reward.clone());
        let (sum, _) = play(&mut simulation, seed, 7, |_| ());
        let jobs = jobs(&simulation, seed);
        let mut instants: Vec<Time> =
            jobs.iter().flat_map(|(set, times)| [Some(set.submit), times.start, times.finish]).flatten().collect();
        instants.sort_unstable();
        let (mut integral, mut time) = (0.0, 0.0);
        for pair in instants.windows(2) {
            let (now, seconds) = (pair[0], pair[1].since(pair[0]).seconds());
            let mut shares = Vec::new();
            for user in 0..3 {
                let own = || jobs.iter().filter(|(set, _)| set.user.0 == user);
                let waits = own().any(|(set, times)| set.submit <= now && times.start.is_some_and(|start| start > now));
                let runs = own().filter(|(_, times)| times.start <= Some(now) && times.finish > Some(now));
                let used = runs
                    .fold([0.0; 2], |sum, (set, _)| [sum[0] + set.demand.0[0] as f64, sum[1] + set.demand.0[1] as f64]);
                if waits {
                    shares.push(f64::max(used[0] / 20.0, used[1] / 16.0));
                }
            }
            if let Some(jain) = plimsoll_metrics::jain(&shares) {
                (integral, time) = (integral + jain * seconds, time + seconds);
            }
        }
        assert!((sum - integral / time).abs() < 1e-6, "{sum} is not {}", integral / time);
    }
}

#[test]
fn many_together_are_each_alone() {
    let count = 5;
    let mut fleet = Fleet::new(setting(image(), Reward::Slowdown, Some(20)), count, 3, true).expect("a fleet");
    let alone = Arc::new(setting(image(), Reward::Slowdown, Some(20)));
    let mut alone: Vec<Simulation> = (0..count).map(|_| Simulation::new(Arc::clone(&alone))).collect();
    let seeds: Vec<Option<u64>> = (0..count as u64).map(Some).collect();
    assert!(fleet.reset(&seeds).expect("episodes").iter().all(|step| !step.over));
    for (simulation, seed) in alone.iter_mut().zip(&seeds) {
        simulation.reset(*seed).expect("an episode");
    }
    let (mut rng, mut ends) = (ChaCha8Rng::seed_from_u64(7), 0);
    let mut seen = vec![0.0; IMAGE.horizon * IMAGE.columns(2)];
    for _ in 0..400 {
        let actions: Vec<usize> = (0..count).map(|_| rng.random_range(0..5)).collect();
        let steps = fleet.step(&actions).expect("steps");
        for (number, (simulation, step)) in alone.iter_mut().zip(&steps).enumerate() {
            if simulation.is_live() {
                assert_eq!(simulation.step(actions[number]).expect("a step"), *step);
                ends += usize::from(step.over);
            } else {
                simulation.reset(None).expect("an episode");
                assert_eq!((step.over, step.reward), (false, 0.0));
            }
            simulation.observe(&mut seen);
            assert_eq!(fleet.observations()[number * seen.len()..][..seen.len()], seen[..]);
            assert_eq!(fleet.masks()[number * 5..][..5], mask(simulation, 5));
            assert_eq!(fleet.simulation(number).metrics(), simulation.metrics());
        }
    }
    assert!(ends > 20, "{ends} episodes");
}

#[test]
fn episodes_begin_anywhere_and_at_nothing() {
    let mut simulation = Simulation::new(Arc::new(setting(window(), Reward::Wait, Some(10))));
    let mut firsts = Vec::new();
    for seed in 0..20 {
        simulation.reset(Some(seed)).expect("an episode");
        let mut jobs = simulation.jobs();
        let (name, _, times) = jobs.next().expect("a job");
        assert_eq!((times.submit, jobs.count()), (Some(Time::ZERO), 9));
        firsts.push(name);
    }
    firsts.sort();
    firsts.dedup();
    assert!(firsts.len() > 8, "{firsts:?}");
}

#[test]
fn what_cannot_go_on_says_so() {
    let mut simulation = Simulation::new(Arc::new(setting(window(), Reward::Wait, Some(JOBS + 1))));
    let message = |error: plimsoll_base::error::Error| error.to_string();
    assert!(simulation.step(0).map_err(message).expect_err("no episode").contains("call reset()"));
    assert!(
        simulation
            .reset(Some(1))
            .map_err(message)
            .expect_err("too many")
            .contains("jobs: 61 is not accepted; expected 1 to 60")
    );
    for (name, says) in [("slowdwn_mean", "slowdown_mean"), ("gini_backlogged", "one of"), ("jobs", "one of")] {
        let message = Reward::parse("reward", name, &dims()).map_err(message).expect_err(name);
        assert!(message.contains(says) && message.contains("jain_backlogged"), "{message}");
    }
}

#[test]
fn an_episode_in_which_nothing_fits_is_none() {
    let mut setting = setting(window(), Reward::Completion, None);
    setting.supply = Box::new(|seed| {
        let mut workload = workload(seed);
        workload.sets.iter_mut().for_each(|set| set.demand = Resources([11; MAX_DIMS]));
        Ok(Arc::new(JobPool::new(workload)))
    });
    let message = Simulation::new(Arc::new(setting)).reset(Some(1)).expect_err("nothing fits").to_string();
    assert!(message.contains("no job of the episode with seed 1 fits"), "{message}");
}

#[test]
fn a_task_that_fits_nowhere_is_left_out() {
    let mut setting = setting(window(), Reward::Completion, None);
    setting.supply = Box::new(|seed| {
        let mut workload = workload(seed);
        workload.sets[3].demand = Resources([11; MAX_DIMS]);
        Ok(Arc::new(JobPool::new(workload)))
    });
    let mut simulation = Simulation::new(Arc::new(setting));
    let (sum, _) = play(&mut simulation, 1, 7, |_| ());
    let metric = |name: &str| simulation.metrics().iter().find(|(known, _)| known == name).expect(name).1;
    assert_eq!((metric("tasks_never_started"), metric("jobs_finished")), (1.0, 59.0));
    assert!((sum + metric("completion_mean_s") * 59.0 / 60.0).abs() < 1e-6);
}
