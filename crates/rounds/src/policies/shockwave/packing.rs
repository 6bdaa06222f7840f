//! From the number of rounds of each job to rounds.

use super::window::WindowProgram;

/// Places jobs in rounds: classes in descending order of scale, inside a class the job with the most rounds first, each in the rounds with
/// the most room. Returns the jobs of each round, ascending; rounds of a job that do not fit are dropped.
///
/// For one scale this is Gale and Ryser's construction, which succeeds whenever the capacity suffices.
pub(super) fn pack(window: &WindowProgram<'_>, counts: &[u32]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&job| (std::cmp::Reverse(window.jobs[job].scale), std::cmp::Reverse(counts[job])));
    let mut room = vec![window.accelerators; window.rounds as usize];
    let mut rounds: Vec<Vec<usize>> = vec![Vec::new(); room.len()];
    let mut by_room: Vec<usize> = (0..room.len()).collect();
    for job in order {
        by_room.sort_by_key(|&round| (std::cmp::Reverse(room[round]), round));
        let scale = window.jobs[job].scale;
        for &round in by_room.iter().take(counts[job] as usize).filter(|&&round| room[round] >= scale) {
            rounds[round].push(job);
        }
        for &round in by_room.iter().take(counts[job] as usize) {
            room[round] -= if room[round] >= scale { scale } else { 0 };
        }
    }
    rounds.iter_mut().for_each(|jobs| jobs.sort_unstable());
    rounds
}

#[cfg(test)]
/// Returns the cost of an order of rounds: the sum over jobs of weight times mean index of its rounds.
pub(super) fn lateness(window: &WindowProgram<'_>, rounds: &[Vec<usize>], counts: &[u32]) -> f64 {
    let urgency = |job: usize| window.jobs[job].weight / f64::from(counts[job].max(1));
    let of_round = |(at, jobs): (usize, &Vec<usize>)| at as f64 * jobs.iter().map(|&job| urgency(job)).sum::<f64>();
    rounds.iter().enumerate().map(of_round).sum()
}

/// Reorders the rounds so that urgent jobs run early, without a change of the number of rounds of a job: reduces the sum over jobs of weight
/// times mean index of its rounds.
///
/// For fixed sets of jobs the best order is by total urgency. Then single jobs move to an earlier round with room, or change places with a
/// less urgent job of at least their scale, until no such change helps. The result is a local optimum.
pub(super) fn arrange(window: &WindowProgram<'_>, rounds: &mut [Vec<usize>], counts: &[u32]) {
    let urgency = |job: usize| window.jobs[job].weight / f64::from(counts[job].max(1));
    let total = |jobs: &Vec<usize>| jobs.iter().map(|&job| urgency(job)).sum::<f64>();
    let scale = |job: usize| window.jobs[job].scale;
    loop {
        rounds.sort_by(|a, b| total(b).total_cmp(&total(a)).then_with(|| a.cmp(b)));
        let mut changed = false;
        for early in 0..rounds.len() {
            for late in early + 1..rounds.len() {
                let used: u32 = rounds[early].iter().map(|&job| scale(job)).sum();
                let mut room = window.accelerators - used;
                let mut movable: Vec<usize> =
                    rounds[late].iter().copied().filter(|job| !rounds[early].contains(job)).collect();
                movable.sort_by(|&a, &b| urgency(b).total_cmp(&urgency(a)).then(a.cmp(&b)));
                for job in movable {
                    if urgency(job) <= 0.0 {
                        break;
                    }
                    let free = window.accelerators - rounds[late].iter().map(|&job| scale(job)).sum::<u32>();
                    if scale(job) <= room {
                        room -= scale(job);
                    } else {
                        // The least urgent job that makes room and fits where this job leaves.
                        let fits = |&other: &usize| {
                            scale(other) + room >= scale(job)
                                && scale(other) <= scale(job) + free
                                && urgency(other) < urgency(job)
                                && !rounds[late].contains(&other)
                        };
                        let other = rounds[early].iter().copied().filter(fits);
                        let Some(other) = other.min_by(|&a, &b| urgency(a).total_cmp(&urgency(b)).then(a.cmp(&b)))
                        else {
                            continue;
                        };
                        rounds[early].retain(|&member| member != other);
                        rounds[late].push(other);
                        room = room + scale(other) - scale(job);
                    }
                    rounds[late].retain(|&member| member != job);
                    rounds[early].push(job);
                    changed = true;
                }
            }
        }
        rounds.iter_mut().for_each(|jobs| jobs.sort_unstable());
        if !changed {
            break;
        }
    }
}
