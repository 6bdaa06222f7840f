//! The users of the groups: the allocation and demand of each user at its last update, and the lists of waiting users of a group.
//!
//! Lists are linked through the users, so that even ten thousand groups of one user each need no heap allocation per group.

use plimsoll_base::units::UserId;

/// No user.
const NONE: u32 = u32::MAX;

/// The state of a user in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum MemberState {
    Idle,
    Open,
    Refused,
}

/// The maximum number of resources with amounts stored inline; most runs have two resources.
const NEAR: usize = 2;

/// A user as of its last update; it fits one cache line.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[repr(align(64))]
pub(super) struct Member {
    pub leaf: u32,
    pub stand: MemberState,
    /// The round of its last activation.
    pub since: u32,
    /// Its neighbours in its list.
    previous: u32,
    next: u32,
    /// The allocation and the demand of each resource.
    near: [(u64, u64); NEAR],
}

/// Users of one group in the same state, in no particular order.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct List {
    first: u32,
    pub len: u32,
}

impl List {
    pub const EMPTY: List = List { first: NONE, len: 0 };

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn push(&mut self, user: u32, members: &mut [Member]) {
        let next = std::mem::replace(&mut self.first, user);
        (members[user as usize].previous, members[user as usize].next) = (NONE, next);
        if next != NONE {
            members[next as usize].previous = user;
        }
        self.len += 1;
    }

    fn remove(&mut self, user: u32, members: &mut [Member]) {
        let Member { previous, next, .. } = members[user as usize];
        match previous {
            NONE => self.first = next,
            _ => members[previous as usize].next = next,
        }
        if next != NONE {
            members[next as usize].previous = previous;
        }
        self.len -= 1;
    }
}

/// All users.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Members {
    dims: usize,
    all: Vec<Member>,
    /// The allocation and demand of each user, `dims` per user, if there are more resources than a [`Member`] stores.
    far: Vec<(u64, u64)>,
    /// The amounts that each user requested when it was refused, `dims` per user.
    asks: Vec<u64>,
}

impl Members {
    pub fn new(dims: usize) -> Members {
        Members { dims, all: Vec::new(), far: Vec::new(), asks: Vec::new() }
    }

    /// Adds a user of this leaf.
    pub fn open(&mut self, leaf: u32) {
        let near = [(0, 0); NEAR];
        self.all.push(Member { leaf, stand: MemberState::Idle, since: 0, previous: NONE, next: NONE, near });
        if self.dims > NEAR {
            self.far.resize(self.all.len() * self.dims, (0, 0));
        }
        self.asks.resize(self.all.len() * self.dims, 0);
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns all users.
    pub fn all(&self) -> impl Iterator<Item = UserId> + use<> {
        (0..self.all.len() as u32).map(UserId)
    }

    #[inline]
    pub fn member(&self, user: UserId) -> &Member {
        &self.all[user.index()]
    }

    /// Returns the allocation and demand of a user by resource, as of the last update.
    #[inline]
    pub fn seen(&mut self, user: UserId) -> &mut [(u64, u64)] {
        if self.dims <= NEAR {
            return &mut self.all[user.index()].near[..self.dims];
        }
        &mut self.far[user.index() * self.dims..][..self.dims]
    }

    /// Returns the amounts that a user requested when it was refused.
    pub fn next_request(&self, user: UserId) -> &[u64] {
        &self.asks[user.index() * self.dims..][..self.dims]
    }

    pub fn set_ask(&mut self, user: UserId, ask: &[u64]) {
        self.asks[user.index() * self.dims..][..self.dims].copy_from_slice(ask);
    }

    /// Moves a user from its current list, if any, to the list of its new state.
    pub fn set_stand(&mut self, user: UserId, stand: MemberState, round: u32, open: &mut List, refused: &mut List) {
        let before = std::mem::replace(&mut self.all[user.index()].stand, stand);
        match before {
            MemberState::Idle => self.all[user.index()].since = round,
            MemberState::Open => open.remove(user.0, &mut self.all),
            MemberState::Refused => refused.remove(user.0, &mut self.all),
        }
        match stand {
            MemberState::Idle => {}
            MemberState::Open => open.push(user.0, &mut self.all),
            MemberState::Refused => refused.push(user.0, &mut self.all),
        }
    }

    /// Returns the users in a list.
    pub fn list(&self, list: &List) -> impl Iterator<Item = UserId> + use<'_> {
        let some = |user: u32| (user != NONE).then_some(user);
        std::iter::successors(some(list.first), move |&user| some(self.all[user as usize].next)).map(UserId)
    }
}
