//! The run time of a task on its machine: its duration, times a factor for the distance from its data, over the machine's speed.
//!
//! The levels are those of Fuxi's locality tree (Zhang et al., VLDB 2014, section 3.1). The user chooses the factors, like the longer run
//! times of non-local tasks in delay scheduling (Zaharia et al., EuroSys 2010, section 3.4).

use crate::cluster::{Cluster, Speed};
use crate::record::Locality;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{MachineId, Rounding, Span, decimal};

/// The factors for tasks in the rack of their preferred machine, in the same room, and in other rooms, in millionths.
///
/// A task that prefers a rack or room takes equally long on all of its machines. As text: `1.1,1.3,2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance([u64; 3]);

/// One, in the millionths of factors, chances, loads and rates.
pub const ONE: u64 = Speed::ONE;

/// The largest factor, load or slowdown.
pub const MOST: u64 = 1000 * ONE;

/// Parses a decimal number, in millionths.
pub fn millionths(text: &str) -> Option<u64> {
    decimal(text.as_bytes(), ONE, Rounding::Nearest).ok()
}

/// Returns a span times a factor over another one, rounded up and at most the longest span.
pub fn scaled(span: Span, factor: u64, over: u64) -> Span {
    let span = (u128::from(span.0) * u128::from(factor)).div_ceil(u128::from(over));
    Span(u64::try_from(span).unwrap_or(u64::MAX))
}

impl Distance {
    fn factor(self, reach: Option<Locality>) -> u64 {
        match reach {
            None | Some(Locality::There) => ONE,
            Some(Locality::Rack) => self.0[0],
            Some(Locality::Room) => self.0[1],
            Some(Locality::Elsewhere) => self.0[2],
        }
    }
}

impl std::fmt::Display for Distance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [rack, room, elsewhere] = self.0.map(|factor| factor as f64 / ONE as f64);
        write!(f, "{rack},{room},{elsewhere}")
    }
}

impl std::str::FromStr for Distance {
    type Err = Error;

    fn from_str(text: &str) -> Result<Distance> {
        let factors: Option<Vec<u64>> = text.split(',').map(|part| millionths(part.trim())).collect();
        let factors = factors.and_then(|factors| <[u64; 3]>::try_from(factors).ok());
        let grows = |[rack, room, elsewhere]: &[u64; 3]| {
            ONE <= *rack && rack <= room && room <= elsewhere && *elsewhere <= MOST
        };
        factors.filter(grows).map(Distance).ok_or_else(|| {
            let expected = "three factors from 1 to 1000, for the same rack, the same room and elsewhere, none less than the \
                            one before, such as 1.1,1.3,2";
            Error::plan("distance", format!("'{text}'"), expected)
        })
    }
}

/// Returns the run time of a task of this duration on a machine of the cluster, rounded up to the microsecond.
pub fn on(
    cluster: &Cluster,
    distance: Option<Distance>,
    duration: Span,
    machine: MachineId,
    reach: Option<Locality>,
) -> Span {
    if duration == Span::ENDLESS {
        return duration;
    }
    let factor = distance.map_or(ONE, |distance| distance.factor(reach));
    let speed = cluster.speeds.get(machine.index()).copied().unwrap_or_default().millionths();
    if factor == speed {
        return duration;
    }
    scaled(duration, factor, speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_and_speeds_multiply_and_round_up() {
        let distance: Distance = "1.1,1.3,2".parse().expect("three factors");
        assert_eq!(distance.to_string(), "1.1,1.3,2");
        let speeds = vec![Speed::new(500_000).expect("a speed"), Speed::new(3_000_000).expect("a speed")];
        let cluster = Cluster { speeds, ..Cluster::default() };
        let on = |machine, reach| on(&cluster, Some(distance), Span(10), MachineId(machine), reach).0;
        assert_eq!(on(0, None), 20);
        assert_eq!(on(0, Some(Locality::Rack)), 22);
        assert_eq!(on(1, Some(Locality::There)), 4, "10 / 3 rounded up");
        assert_eq!(on(1, Some(Locality::Elsewhere)), 7, "20 / 3 rounded up");
        assert_eq!(super::on(&cluster, None, Span(u64::MAX), MachineId(0), None), Span(u64::MAX));
        for wrong in ["1,2", "2,1,1", "0.5,1,1", "1,1,1001", "a,b,c", ""] {
            assert!(wrong.parse::<Distance>().is_err(), "{wrong}");
        }
    }
}
