//! The messages of application masters: full reports and increments.

use std::collections::BTreeMap;

use super::{Contact, Master, PendingStep, Phase, Tenant};
use crate::counts::Counts;
use crate::message::{Endpoint, Note, Sender, Units};
use crate::rules::Rule;
use crate::setup::{AppId, RoleId};

impl Master {
    /// Processes a full report of an application master; returns whether it is accepted. The real request replaces a mock request. Units
    /// above the request stay and are sent back as hints, so that the application master returns the surplus.
    pub(super) fn app_report(
        &mut self,
        turn: &mut PendingStep,
        from: Sender,
        epoch: u32,
        request: Counts,
        hints: Vec<Units<u32>>,
        restarted: bool,
    ) -> bool {
        if self.refuses(turn, from) {
            return false;
        }
        if epoch != self.epoch {
            turn.ask(Endpoint::App(from.app, from.epoch), self.epoch);
            return false;
        }
        let (setup, rules) = (turn.setup, turn.setup.rules);
        let tenant = tenant_of(&mut self.tenants, from);
        let stale = tenant.epoch == from.epoch && from.number < tenant.heard;
        if stale && rules.has(Rule::SequenceNumbers) {
            return false;
        }
        let unknown = tenant.epoch == 0;
        let new = tenant.epoch != from.epoch || tenant.contact != Contact::Here;
        (tenant.epoch, tenant.heard, tenant.contact) = (from.epoch, from.number, Contact::Here);
        if new {
            turn.push_note(Note::Accepted(from.app, from.epoch));
        }
        for role in setup.roles_of(from.app) {
            let account = self.accounts.entry(role).or_default();
            if unknown && account.mocked > 0 {
                turn.push_note(Note::Converted(role, account.mocked));
            }
            (account.request, account.mocked) = (request.get(role), 0);
            turn.push_note(Note::Requested(role, account.request));
        }
        match self.phase {
            Phase::Recovering => {
                tenant_of(&mut self.tenants, from).hints = hints;
                if rules.has(Rule::WaitWindow) || !restarted {
                    return true;
                }
            }
            Phase::Normal => {
                self.adopt_hints(turn, &hints);
                if !rules.has(Rule::SurplusToAm) {
                    self.cut_surplus(turn, from.app, setup);
                }
            }
        }
        turn.full_hint(from.app);
        true
    }

    /// Returns whether this is the next message of a present application master. A master is requested to report if it is unknown, or if
    /// messages from it were lost.
    pub(super) fn is_next(&mut self, turn: &mut PendingStep, from: Sender, epoch: u32) -> bool {
        if self.refuses(turn, from) {
            return false;
        }
        let numbered = turn.setup.rules.has(Rule::SequenceNumbers);
        let tenant = tenant_of(&mut self.tenants, from);
        let known = tenant.contact == Contact::Here && tenant.epoch == from.epoch && epoch == self.epoch;
        if known && numbered && from.number <= tenant.heard {
            return false;
        }
        if !known || numbered && from.number != tenant.heard + 1 {
            turn.ask(Endpoint::App(from.app, from.epoch), self.epoch);
            return false;
        }
        tenant.heard = from.number;
        true
    }

    /// Processes a change of an application master's request, and returned units.
    pub(super) fn app_change(
        &mut self,
        turn: &mut PendingStep,
        from: Sender,
        epoch: u32,
        request: &[(RoleId, i32)],
        returned: &[Units<u32>],
    ) {
        if !self.is_next(turn, from, epoch) {
            return;
        }
        for &units in returned {
            self.take_back(turn, units);
        }
        for &(role, change) in request {
            let account = self.accounts.entry(role).or_default();
            account.request = account.request.saturating_add_signed(change);
            turn.push_note(Note::Requested(role, account.request));
        }
    }

    /// Releases returned units. During the window they are removed from the reports.
    fn take_back(&mut self, turn: &mut PendingStep, Units { machine, role, count }: Units<u32>) {
        let app = turn.setup.role(role).app;
        for hint in self.tenants.get_mut(&app).into_iter().flat_map(|tenant| &mut tenant.hints) {
            if (hint.machine, hint.role) == (machine, role) {
                hint.count = hint.count.saturating_sub(count);
            }
        }
        let site = &mut self.sites[machine.index()];
        if let Some(caps) = &mut site.caps {
            caps.add(role, -(count as i32));
        }
        let held = site.alloc.get(role);
        site.claims.add(role, -(count.saturating_sub(held) as i32));
        let count = count.min(held);
        if count > 0 {
            self.alter(turn, Units { machine, role, count: -(count as i32) });
            turn.push_note(Note::Released(Units { machine, role, count }));
        }
    }
}

/// Returns the record of a sender's application. Panics: when there is none; such a sender has been refused.
fn tenant_of(tenants: &mut BTreeMap<AppId, Tenant>, from: Sender) -> &mut Tenant {
    tenants.get_mut(&from.app).expect("a sender without application is refused")
}
