//! Cases with faults of tasks.

use plimsoll::engine::Draws;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{Case, chance, pick};
use crate::slow::Faults;

impl Case {
    /// Draws a case with tasks that fail, straggle and have backups. Half of the cases extend [`Case::urgent`] or [`Case::hoarding`].
    pub fn faulty(seed: u64) -> Case {
        let mut case = match seed % 4 {
            0 | 1 => Case::placed(seed),
            2 => Case::urgent(seed),
            _ => Case::hoarding(seed),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(5);
        case.lose &= chance(&mut rng, 50);
        let mut parts = Vec::new();
        if chance(&mut rng, 70) {
            parts.push(format!("fail={}", pick(&mut rng, &["0.05", "0.3", "0.9"])));
            parts.push(format!("retries={}", pick(&mut rng, &[0, 1, 3])));
        }
        if chance(&mut rng, 80) {
            parts.push(format!("straggle={}x{}", pick(&mut rng, &["0.1", "0.4"]), pick(&mut rng, &["2", "7.5"])));
        }
        if parts.is_empty() || (!case.lose && chance(&mut rng, 80)) {
            case.lose = false;
            parts.push(format!("backup={}x{}", pick(&mut rng, &["0.1", "0.5", "0.9"]), pick(&mut rng, &["1", "1.5"])));
        }
        case.faults = Some(parts.join(","));
        for row in &mut case.rows {
            row.gang &= chance(&mut rng, 50);
            row.estimate = chance(&mut rng, 50).then(|| pick(&mut rng, &[0, 3 * row.duration]));
        }
        case
    }
}

/// Returns the fault settings of the reference implementation.
pub fn parsed(text: &str) -> Faults {
    let part = |name: &str| text.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    let millionths = |text: &str| (text.parse::<f64>().expect("a number") * 1e6).round() as u64;
    let backup = part("backup").and_then(|rule| rule.split_once('x'));
    Faults {
        draws: Draws::new(text.parse().expect("a setting"), 0),
        retries: part("retries").map_or(3, |retries| retries.parse().expect("a number")),
        backup: backup.map(|(share, longer)| (millionths(share), millionths(longer))),
    }
}
