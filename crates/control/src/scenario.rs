//! The seventeen combinations of failures of FuxiMaster, the application masters and a Tubo.
//!
//! FuxiMaster is healthy or fails over. Application masters and the Tubo are healthy, fail over (a process dies and is back soon) or time
//! out (a process is unreachable for long). These are 2 x 3 x 3 combinations; the one without any failure is omitted. Each scenario affects
//! one machine and all application masters, in several orders and for several durations. A Tubo that fails over may be back before
//! FuxiMaster notices or after; one that times out may be back within the recovery window, after it, or after the new application master.
//! Services either wait for an unreachable machine or move.

use super::rules::Rules;
use super::setup::AppId;
use super::stage::{StagePolicy, Testbed, WorkRow};
use super::world::plan::{Fault, Network, Script, Strike, Timing};
use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::units::{MachineId, Span, Time};

/// The state of an application master or a Tubo in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProcessState {
    /// The process is healthy.
    Well,
    /// The process dies and is back within its time-out.
    Failover,
    /// The process is unreachable for longer than its time-out.
    Timeout,
}

/// One of the seventeen scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scenario {
    /// Whether FuxiMaster fails over.
    pub master: bool,
    /// The state of the application masters.
    pub app: ProcessState,
    /// The state of the Tubo.
    pub tubo: ProcessState,
}

impl Scenario {
    /// Returns all scenarios in the order of the article.
    pub fn all() -> Vec<Scenario> {
        let failing = [ProcessState::Failover, ProcessState::Timeout];
        let states = |fails: bool| if fails { &failing[..] } else { &[ProcessState::Well][..] };
        // The failing roles: FuxiMaster, the application masters, the Tubo.
        let order = [
            (true, false, false),
            (false, true, false),
            (false, false, true),
            (false, true, true),
            (true, true, false),
            (true, false, true),
            (true, true, true),
        ];
        let mut all = Vec::new();
        for (master, apps, tubos) in order {
            for &app in states(apps) {
                all.extend(states(tubos).iter().map(|&tubo| Scenario { master, app, tubo }));
            }
        }
        all
    }

    /// Returns the number of the scenario in the article.
    pub fn number(self) -> usize {
        Scenario::all().iter().position(|other| *other == self).map_or(0, |at| at + 1)
    }

    /// Returns the name of the scenario on the command line, such as `fm-failover+am-timeout`.
    pub fn name(self) -> String {
        let state = |who: &str, state: ProcessState| match state {
            ProcessState::Well => None,
            ProcessState::Failover => Some(format!("{who}-failover")),
            ProcessState::Timeout => Some(format!("{who}-timeout")),
        };
        let master = self.master.then(|| "fm-failover".to_owned());
        let parts: Vec<String> =
            [master, state("am", self.app), state("tubo", self.tubo)].into_iter().flatten().collect();
        parts.join("+")
    }

    /// Returns the scenario with a name or a number. Errors: [`Error::Plan`] for other texts.
    pub fn parse(text: &str) -> Result<Scenario> {
        let all = Scenario::all();
        let by_number = text.parse().ok().and_then(|number: usize| all.get(number.wrapping_sub(1)).copied());
        by_number.or_else(|| all.iter().find(|scenario| scenario.name() == text).copied()).ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|scenario| scenario.name()).collect();
            let hint = did_you_mean(text, names.iter().map(String::as_str));
            Error::plan(
                "scenario",
                format!("'{text}'{hint}"),
                format!("1 to {}, or one of {}", all.len(), names.join(", ")),
            )
        })
    }

    /// Builds the cluster and the work of all scenarios: an offline job, and two online services, one with an additional offline role.
    ///
    /// The offline job fills the large machines first and shrinks later. Otherwise replacement units would return to the lost machine only
    /// because it is the emptiest.
    pub fn stage(rules: Rules, script: Script) -> Testbed {
        let row = |name: &str, job, tasks, stable| WorkRow {
            name: name.to_owned(),
            job,
            tasks,
            stable,
            duration: Span::ENDLESS,
            demand: [1000, 1024],
            ..WorkRow::default()
        };
        let early = WorkRow { duration: Span::from_secs(12), ..row("early sql", 0, 12, false) };
        let later = |row: WorkRow| WorkRow { submit: Time(5_000_000), ..row };
        let rows = vec![
            row("sql", 0, 4, false),
            early,
            later(row("web", 1, 3, true)),
            later(row("search", 2, 2, true)),
            later(row("index", 2, 2, false)),
        ];
        let machines = [4, 12, 12].map(|size| [1000 * size, 1024 * size]).to_vec();
        Testbed { machines, rows, policy: StagePolicy::Named("fifo"), options: Testbed::spreading(), script, rules }
    }

    /// The number of applications.
    const APPS: u32 = 3;

    /// Returns the scripts to run, the plainest first: every order and length of the faults, with services that wait and services that
    /// move.
    pub fn scripts(self, network: Network, timing: Timing) -> Vec<Script> {
        let mut scripts = Vec::new();
        for patience in [None, Some(Span::from_secs(2))] {
            for order in self.orders() {
                for &length in self.lengths() {
                    for cut in self.cuts() {
                        let strikes = self.strikes(order, length, cut);
                        let seed = scripts.len() as u64 + 1;
                        scripts.push(Script { strikes, network, timing, patience, seed, ..Script::default() });
                    }
                }
            }
        }
        scripts
    }

    /// Returns the instants at which FuxiMaster and the application masters fail, relative to the Tubo.
    fn orders(self) -> Vec<StrikeOrder> {
        let masters: &[i64] =
            if self.master && self.tubo != ProcessState::Well { &[0, 22_000, -1_000, 50_000] } else { &[0] };
        let apps: &[i64] = if self.app != ProcessState::Well { &[0, -500, 3_000] } else { &[0] };
        let pairs =
            masters.iter().flat_map(|&master| apps.iter().map(move |&app| StrikeOrder { master, app: master + app }));
        pairs.collect()
    }

    /// Returns the durations of the Tubo's fault in seconds. A failover ends before or after FuxiMaster notices it; a time-out ends after
    /// the recovery window, within it, or shortly after it.
    fn lengths(self) -> &'static [u64] {
        match self.tubo {
            ProcessState::Well => &[0],
            ProcessState::Failover => &[3, 35],
            ProcessState::Timeout => &[150, 40, 66],
        }
    }

    /// Returns the kinds of time-outs: application masters are lost or partitioned; the Tubo is partitioned from FuxiMaster or from all
    /// peers.
    fn cuts(self) -> Vec<Cut> {
        let apps: &[bool] = if self.app == ProcessState::Timeout { &[false, true] } else { &[false] };
        let dark: &[bool] = if self.tubo == ProcessState::Timeout { &[false, true] } else { &[false] };
        apps.iter().flat_map(|&app| dark.iter().map(move |&dark| Cut { app, dark })).collect()
    }

    fn strikes(self, order: StrikeOrder, length: u64, cut: Cut) -> Vec<Strike> {
        let start = 30_000_i64;
        let at = |offset: i64| Time((start + offset).unsigned_abs() * 1_000);
        let (gone, machine) = (Span::from_secs(length), MachineId(0));
        let mut strikes = Vec::new();
        match self.tubo {
            ProcessState::Well => {}
            ProcessState::Failover => strikes.push(Strike { at: at(0), fault: Fault::TuboCrash(machine, gone) }),
            ProcessState::Timeout if cut.dark => {
                strikes.push(Strike { at: at(0), fault: Fault::TuboDark(machine, gone) })
            }
            ProcessState::Timeout => strikes.push(Strike { at: at(0), fault: Fault::TuboCut(machine, gone) }),
        }
        let apps = (0..Scenario::APPS).map(AppId);
        strikes.extend(apps.filter(|_| self.app != ProcessState::Well).map(|app| {
            let fault = match self.app {
                ProcessState::Timeout if cut.app => Fault::AppCut(app, Span::from_secs(100)),
                ProcessState::Timeout => Fault::AppLost(app),
                _ => Fault::AppCrash(app, Span::from_secs(5)),
            };
            Strike { at: at(order.app), fault }
        }));
        if self.master {
            strikes.push(Strike { at: at(order.master), fault: Fault::MasterCrash(Span::from_secs(2)) });
        }
        strikes.sort_by_key(|strike| strike.at);
        strikes
    }
}

/// The instants at which the other processes fail, in milliseconds after the Tubo.
#[derive(Clone, Copy, Debug)]
struct StrikeOrder {
    master: i64,
    app: i64,
}

#[derive(Clone, Copy, Debug)]
struct Cut {
    app: bool,
    dark: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_seventeen_with_names_of_their_own() {
        let names: Vec<String> = Scenario::all().into_iter().map(Scenario::name).collect();
        assert_eq!(names.len(), 2 * 3 * 3 - 1);
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 17);
        for (number, shown) in [(1, "fm-failover"), (9, "am-timeout+tubo-timeout"), (11, "fm-failover+am-timeout")] {
            assert_eq!(names[number - 1], shown);
        }
        for scenario in Scenario::all() {
            assert_eq!(Scenario::parse(&scenario.name()).expect("known"), scenario);
            assert_eq!(Scenario::parse(&scenario.number().to_string()).expect("known"), scenario);
        }
    }

    #[test]
    fn what_is_no_scenario_is_an_error() {
        for text in ["0", "18", "fm-failovr", ""] {
            let message = Scenario::parse(text).expect_err(text).to_string();
            assert!(message.contains("am-failover+tubo-timeout"), "{message}");
        }
        assert!(Scenario::parse("fm-failovr").expect_err("wrong").to_string().contains("did you mean 'fm-failover'"));
    }
}
