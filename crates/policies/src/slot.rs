//! Slot fairness: machines are divided into equal slots, and the user with the fewest slots is next.
//!
//! A task takes exactly one slot regardless of its demand, so the true usage of a machine may be below or above its capacity; both are
//! reported. The run's `slowdown` defines how an over-committed machine slows down. Source: Hadoop's fair scheduler as in Ghodsi et al.,
//! NSDI 2011, §7.2 and §7.3.

use super::{ByShare, Lens, Parsed, PolicyRow, Prices, RankOrder, Setup, StaticEquivalent};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Resources;
use plimsoll_fair::Slots;

/// `slot:K`
pub static ROW: PolicyRow = PolicyRow {
    name: "slot",
    spelling: "slot:K",
    rank: RankOrder::Lowest("slots / w"),
    meaning: "K slots per machine; a task takes one, whatever its demand.",
    source: "Ghodsi et al., NSDI 2011, 7.2-7.3 (Hadoop's fair scheduler)",
    example: "slot:12",
    // With a dozen slots, small instances are always overfull, so that no other property could be checked.
    checked: "slot:2",
    variants: &[],
    keys: &[],
    read: |given| match given.unwrap_or_default().parse::<u32>() {
        Ok(slots) if slots > 0 => {
            let parsed = Parsed::new(Some(slots.to_string()), move |setup| Ok(Box::new(by_slots(setup, slots)?)));
            Ok(parsed.like(move |_| Ok(StaticEquivalent::Slots(Slots { per_machine: slots }))))
        }
        _ => Err("slots per machine, at least 1, such as slot:12".to_owned()),
    },
};

/// Creates the policy that serves the user with the lowest `slots / w`, where a machine has `per_machine` slots. Errors: [`Error::Policy`]
/// when weights differ by resource.
fn by_slots(setup: &Setup, per_machine: u32) -> Result<ByShare<Prices>> {
    let weights = setup.weights;
    if (0..weights.classes()).any(|class| weights.uniform(class).is_none()) {
        let expected = "one weight per user for slots (a column 'weight'), since a slot is not a resource";
        return Err(Error::policy(format!("slot:{per_machine}"), "weights by resource", expected));
    }
    let offered = Resources([u64::from(per_machine) * setup.machines, 0, 0, 0, 0, 0, 0, 0]);
    let setup = Setup { capacity: offered, ..*setup };
    Ok(ByShare::by_resource("slot", 0, &setup)?.with_lens(Lens::Slots(per_machine)))
}
