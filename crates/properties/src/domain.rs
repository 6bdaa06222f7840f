//! Classes of instances, each an extension of the first.

use plimsoll_base::named;

named! {
    /// A class of instances; every class contains the first one.
    Domain {
        /// Demands above 0, equal weights, unlimited numbers of tasks: the class of the DRF paper's Table 2.
        Positive "positive": "strictly positive demands",
        /// Demands may be 0, but each user has at least one above 0.
        Zeros "zeros": "zero demands allowed",
        /// Users may have a finite number of tasks.
        Finite "finite": "finite numbers of tasks allowed",
        /// Users may have a weight.
        Weighted "weighted": "weights allowed",
        /// Users may have a weight for each resource.
        WeightedPerResource "weighted-per-resource": "weights for each resource allowed",
    }
}

impl Domain {
    /// Returns the smallest demand.
    pub(super) fn least(self) -> u64 {
        u64::from(self != Domain::Zeros)
    }
}
