//! Numbers of units by role: a small sorted list without zeros, so that equal amounts are equal values.

use super::setup::RoleId;

/// Units by role.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counts(Vec<(RoleId, u32)>);

impl Counts {
    /// Returns the number of units of a role.
    pub fn get(&self, role: RoleId) -> u32 {
        self.find(role).map_or(0, |at| self.0[at].1)
    }

    /// Sets the number of units of a role.
    pub fn set(&mut self, role: RoleId, count: u32) {
        match (self.find(role), count) {
            (Ok(at), 0) => {
                self.0.remove(at);
            }
            (Ok(at), count) => self.0[at].1 = count,
            (Err(_), 0) => {}
            (Err(at), count) => self.0.insert(at, (role, count)),
        }
    }

    /// Adds a change to the number of units of a role; the result is at least 0.
    pub fn add(&mut self, role: RoleId, change: i32) {
        self.set(role, self.get(role).saturating_add_signed(change));
    }

    /// Returns the roles with their counts, in order of role.
    pub fn iter(&self) -> impl Iterator<Item = (RoleId, u32)> + '_ {
        self.0.iter().copied()
    }

    /// Returns the number of roles that have units.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of units of all roles together.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| u64::from(count)).sum()
    }

    fn find(&self, role: RoleId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&role, |(role, _)| *role)
    }
}

impl FromIterator<(RoleId, u32)> for Counts {
    fn from_iter<I: IntoIterator<Item = (RoleId, u32)>>(pairs: I) -> Counts {
        let mut counts = Counts::default();
        for (role, count) in pairs {
            counts.set(role, counts.get(role) + count);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_amounts_are_equal_values() {
        let mut counts: Counts = [(RoleId(2), 1), (RoleId(0), 3), (RoleId(2), 1)].into_iter().collect();
        assert_eq!(counts.get(RoleId(2)), 2);
        counts.add(RoleId(1), 4);
        counts.add(RoleId(1), -9);
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(RoleId(0), 3), (RoleId(2), 2)]);
        assert_eq!(counts.total(), 5);
        counts.set(RoleId(0), 0);
        counts.set(RoleId(2), 0);
        assert_eq!(counts, Counts::default());
    }
}
