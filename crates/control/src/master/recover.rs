//! The end of the recovery window, and machines that report after it.
//!
//! A Tubo's report is accepted, since it repeats an earlier FuxiMaster's caps. Hints are accepted only for machines that have not reported,
//! and only up to the machine's capacity. (If [`Setup::order_by_hints`] is set, they also decide which offline units above the request
//! stay.)

use std::collections::BTreeSet;

use super::{Contact, Master, PendingStep, Phase};
use crate::counts::Counts;
use crate::message::{Endpoint, Note, RecoverySource, Units, Why};
use crate::rules::Rule;
use crate::setup::{AppId, RoleId, Setup, fitting};
use plimsoll_base::units::MachineId;

impl Master {
    /// Ends the window: rebuilds the tables, then sends the full state to all peers.
    pub(super) fn recover(&mut self, turn: &mut PendingStep) {
        self.phase = Phase::Normal;
        // Units of completed applications are dropped.
        let known = |caps: Counts| caps.iter().filter(|(role, _)| turn.setup.find(*role).is_some()).collect();
        let reports: Vec<(MachineId, Counts)> =
            turn.setup.machine_ids().filter_map(|m| Some((m, known(self.sites[m.index()].caps.take()?)))).collect();
        // Offline units in the report of their application master have precedence over leftovers of earlier grants.
        let rests: Vec<Counts> = reports.iter().map(|(machine, caps)| self.adopt_caps(turn, *machine, caps)).collect();
        for ((machine, _), rest) in reports.iter().zip(rests) {
            self.adopt_rest(turn, *machine, &rest);
            turn.full_cap(*machine);
        }
        let apps: Vec<AppId> = self.tenants.keys().copied().collect();
        for app in apps {
            let hints = self.tenants.get_mut(&app).map(|tenant| std::mem::take(&mut tenant.hints)).unwrap_or_default();
            if self.reported(app) {
                self.adopt_hints(turn, &hints);
                turn.full_hint(app);
            } else {
                // A master that has not reported by now has timed out.
                self.replace_app(turn, app);
            }
        }
        turn.push_note(Note::Recovered);
    }

    /// Returns whether the master of an application has sent a full report to this FuxiMaster.
    pub(super) fn reported(&self, app: AppId) -> bool {
        self.tenants.get(&app).is_some_and(|tenant| tenant.epoch > 0)
    }

    /// Returns the units in hints for a machine that has no room for them, until the machine reports.
    pub fn claims(&self, machine: MachineId) -> &Counts {
        &self.sites[machine.index()].claims
    }

    /// Returns the number of units that may still be granted to a role within its request.
    pub fn wanting(&self, role: RoleId) -> u32 {
        let account = self.accounts.get(&role).copied().unwrap_or_default();
        account.request.saturating_sub(account.granted)
    }

    /// Rebuilds units; a mock request is set to the rebuilt units of the role.
    fn rebuild(&mut self, turn: &mut PendingStep, units: Units<u32>, source: RecoverySource) {
        self.change(turn, Units { machine: units.machine, role: units.role, count: units.count as i32 });
        if source == RecoverySource::Mock {
            let account = self.accounts.entry(units.role).or_default();
            (account.request, account.mocked) = (account.granted, account.granted);
        }
        if units.count > 0 {
            turn.push_note(Note::Rebuilt(units, source));
        }
    }

    /// Records units that are not rebuilt.
    fn leave(turn: &mut PendingStep, units: Units<u32>, why: Why) {
        if units.count > 0 {
            turn.push_note(Note::Dropped(units, why));
        }
    }

    /// Rebuilds the units on a machine that reported within the window. Returns the offline units of applications with a report that are
    /// not rebuilt yet: those above the request, and those without precedence (see [`Master::hinted`]).
    fn adopt_caps(&mut self, turn: &mut PendingStep, machine: MachineId, caps: &Counts) -> Counts {
        let rules = turn.setup.rules;
        let mut rest = Counts::default();
        for (role, count) in caps.iter() {
            let spec = turn.setup.role(role);
            let (keep, source) = match self.reported(spec.app) {
                true if spec.stable && rules.has(Rule::SurplusToAm) => (count, RecoverySource::Cap),
                true if spec.stable => (count.min(self.wanting(role)), RecoverySource::Cap),
                true => (
                    count.min(self.wanting(role)).min(self.hinted(turn.setup, spec.app, machine, role)),
                    RecoverySource::Cap,
                ),
                false if spec.stable && rules.has(Rule::MockRequest) => (count, RecoverySource::Mock),
                false => (0, RecoverySource::Mock),
            };
            self.rebuild(turn, Units { machine, role, count: keep }, source);
            let left = Units { machine, role, count: count - keep };
            match self.reported(spec.app) {
                true if spec.stable => Master::leave(turn, left, Why::AboveRequest),
                true => rest.set(role, left.count),
                false => Master::leave(turn, left, Why::AppAbsent),
            }
        }
        rest
    }

    /// Rebuilds the remaining offline units as far as the request allows.
    fn adopt_rest(&mut self, turn: &mut PendingStep, machine: MachineId, rest: &Counts) {
        for (role, count) in rest.iter() {
            let keep = count.min(self.wanting(role));
            self.rebuild(turn, Units { machine, role, count: keep }, RecoverySource::Cap);
            Master::leave(turn, Units { machine, role, count: count - keep }, Why::AboveRequest);
        }
    }

    /// Returns the number of units of a role on a machine that have precedence over the role's other units: all of them, unless hints order
    /// them ([`Setup::order_by_hints`]); then the units in the application master's report.
    ///
    /// This departs from the source and is off by default: the article ignores hints for a machine that has reported. The hints only order
    /// offline units above the request; see `docs/failover.md`, "Departures from the article".
    fn hinted(&self, setup: &Setup, app: AppId, machine: MachineId, role: RoleId) -> u32 {
        let hints = self.tenants.get(&app).filter(|_| setup.order_by_hints).map(|tenant| &tenant.hints);
        let Some(hints) = hints else { return u32::MAX };
        let found = hints.binary_search_by_key(&(machine, role), |hint| (hint.machine, hint.role));
        found.map_or(0, |at| hints[at].count)
    }

    /// Rebuilds stable units on machines that have not reported.
    ///
    /// A hint without room is stored as a claim: if the machine reports the unit too, the unit exists.
    pub(super) fn adopt_hints(&mut self, turn: &mut PendingStep, hints: &[Units<u32>]) {
        let rules = turn.setup.rules;
        if !rules.has(Rule::HintRecovery) {
            return;
        }
        for &Units { machine, role, count } in hints {
            let spec = turn.setup.role(role);
            let site = &self.sites[machine.index()];
            if site.contact != Contact::Unknown || !spec.stable {
                continue;
            }
            let mut new = count.saturating_sub(site.alloc.get(role));
            if !rules.has(Rule::SurplusToAm) {
                new = new.min(self.wanting(role));
            }
            let room = self.free(turn.setup, machine);
            let keep = if rules.has(Rule::Clamp) { fitting(&room, &spec.unit, new) } else { new };
            self.sites[machine.index()].claims.set(role, new - keep);
            self.rebuild(turn, Units { machine, role, count: keep }, RecoverySource::Hint);
            Master::leave(turn, Units { machine, role, count: new - keep }, Why::NoRoom);
        }
    }

    /// Processes the first report of a machine after the window.
    ///
    /// Its offline units are lost. Stable units stay if they are in the application master's report too, or if the application master has
    /// not reported. A unit that is known only from a hint (its cap never arrived) yields to the units in the machine's report.
    fn late(&mut self, turn: &mut PendingStep, machine: MachineId, caps: &Counts) {
        let (setup, rules) = (turn.setup, turn.setup.rules);
        let site = &mut self.sites[machine.index()];
        let (known, claims) = (site.alloc.clone(), std::mem::take(&mut site.claims));
        let mut kept = Counts::default();
        for (role, count) in caps.iter().filter(|(role, _)| setup.find(*role).is_some_and(|role| role.stable)) {
            let had = known.get(role);
            kept.set(
                role,
                match self.reported(setup.role(role).app) {
                    true if rules.has(Rule::SurplusToAm) => count.min(had + claims.get(role)),
                    true => count.min(had + claims.get(role).min(self.wanting(role))),
                    false if rules.has(Rule::MockRequest) => count,
                    false => 0,
                },
            );
        }
        let mut room = setup.machines[machine.index()].saturating_sub(setup.size_of(&kept));
        for (role, count) in known.iter() {
            let unit = &setup.role(role).unit;
            let more = fitting(&room, unit, count.saturating_sub(kept.get(role)));
            room = room.saturating_sub(unit.times(more));
            kept.add(role, more as i32);
        }
        let roles: BTreeSet<RoleId> = known.iter().chain(caps.iter()).map(|(role, _)| role).collect();
        let roles: Vec<RoleId> = roles.into_iter().filter(|role| setup.find(*role).is_some()).collect();
        // Reductions come first, so that allocations never exceed the capacity of the machine.
        for shrinking in [true, false] {
            for &role in &roles {
                let (had, has) = (known.get(role), kept.get(role));
                if (has < had) == shrinking && has != had {
                    let source =
                        if self.reported(setup.role(role).app) { RecoverySource::Cap } else { RecoverySource::Mock };
                    match shrinking {
                        true => self.change(turn, Units { machine, role, count: has as i32 - had as i32 }),
                        false => self.rebuild(turn, Units { machine, role, count: has - had }, source),
                    }
                }
            }
        }
        for &role in &roles {
            let lost = known.get(role).max(caps.get(role)) - kept.get(role);
            Master::leave(turn, Units { machine, role, count: lost }, Why::Late);
        }
        self.welcome(turn, machine);
    }

    /// Processes a Tubo's report of its caps: stores it during the window; after the window, accepts it as far as [`Master::late`] allows.
    pub(super) fn tubo_report(&mut self, turn: &mut PendingStep, machine: MachineId, epoch: u32, caps: Counts) {
        if epoch != self.epoch {
            turn.ask(Endpoint::Tubo(machine), self.epoch);
        } else if self.phase == Phase::Recovering {
            let site = &mut self.sites[machine.index()];
            (site.told, site.caps) = (caps.clone(), Some(caps));
            self.set_contact(turn, machine, Contact::Here);
        } else {
            match self.sites[machine.index()].contact {
                Contact::Unknown => {
                    self.late(turn, machine, &caps);
                    self.sites[machine.index()].told = caps;
                }
                Contact::Away => self.welcome(turn, machine),
                // An answer to a repeated request.
                Contact::Here => turn.full_cap(machine),
            }
        }
    }

    /// Revokes the stable units of an application above its request, on the machines with the highest numbers first. Used without the rule
    /// `surplus-to-am`, which leaves the choice to the application master.
    pub(super) fn cut_surplus(&mut self, turn: &mut PendingStep, app: AppId, setup: &Setup) {
        for role in setup.roles_of(app).filter(|role| setup.role(*role).stable) {
            let account = self.accounts.get(&role).copied().unwrap_or_default();
            let mut excess = account.granted.saturating_sub(account.request);
            for machine in (0..self.sites.len() as u32).rev().map(MachineId) {
                let count = self.sites[machine.index()].alloc.get(role).min(excess);
                excess -= count;
                self.change(turn, Units { machine, role, count: -(count as i32) });
                Master::leave(turn, Units { machine, role, count }, Why::AboveRequest);
            }
        }
    }
}
