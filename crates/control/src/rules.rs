//! The rules of the protocol, each of which can be switched off to see what it is for.
//!
//! The article states the first six; the rest are needed besides, which is a finding of this module's experiments (see
//! `docs/failover.md`).

use std::str::FromStr;

use plimsoll_base::error::{Error, Result, nearest};

/// A rule that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// FuxiMaster invents a request for stable caps whose application master is away.
    MockRequest,
    /// A Tubo keeps its caps on disk and reads them after a restart.
    CapCheckpoint,
    /// An application master keeps the hints of stable roles on disk and reads them after a restart.
    HintCheckpoint,
    /// FuxiMaster rebuilds what machines that are away hold from the hints of application masters.
    HintRecovery,
    /// While it recovers FuxiMaster only listens: it answers no question for full caps or hints.
    WaitWindow,
    /// When a Tubo times out the stable units on it stay, and the application master is told.
    KeepStable,
    /// Stable units above the request are left to the application master, who says which to give back.
    SurplusToAm,
    /// Increments are numbered: one that is late, double or early is not applied.
    SequenceNumbers,
    /// Messages of a superseded application master are refused.
    Fencing,
    /// The claims of hints are cut at the capacity of the machine.
    Clamp,
}

impl Rule {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Rule); 10] = [
        ("mock-request", Rule::MockRequest),
        ("cap-checkpoint", Rule::CapCheckpoint),
        ("hint-checkpoint", Rule::HintCheckpoint),
        ("hint-recovery", Rule::HintRecovery),
        ("wait-window", Rule::WaitWindow),
        ("keep-stable", Rule::KeepStable),
        ("surplus-to-am", Rule::SurplusToAm),
        ("sequence-numbers", Rule::SequenceNumbers),
        ("fencing", Rule::Fencing),
        ("clamp", Rule::Clamp),
    ];

    /// The rules that concern what is kept and rebuilt: the columns of the matrix of scenarios and rules. The two others
    /// are taken for granted there.
    pub fn of_matrix() -> impl Iterator<Item = Rule> {
        Rule::ALL.into_iter().map(|(_, rule)| rule).filter(|rule| !matches!(rule, Rule::Fencing | Rule::Clamp))
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        Rule::ALL.iter().find(|(_, rule)| *rule == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Rule> {
        let names = Rule::ALL.map(|(name, _)| name);
        let found = Rule::ALL.iter().find(|(name, _)| *name == text).map(|(_, rule)| *rule);
        found.ok_or_else(|| {
            let hint = nearest(text, names).map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
            Error::plan("--without", format!("'{text}'{hint}"), format!("one of {}", names.join(", ")))
        })
    }
}

/// Which rules are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rules(u16);

impl Rules {
    /// Every rule.
    pub const ALL: Rules = Rules(u16::MAX);

    /// Without one more.
    pub fn without(self, rule: Rule) -> Rules {
        Rules(self.0 & !(1 << rule as u16))
    }

    /// Whether a rule is in force.
    pub fn has(self, rule: Rule) -> bool {
        self.0 >> rule as u16 & 1 == 1
    }

    /// The rules that are switched off.
    pub fn missing(self) -> impl Iterator<Item = Rule> {
        Rule::ALL.into_iter().map(|(_, rule)| rule).filter(move |rule| !self.has(*rule))
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_name_and_removed_one_by_one() {
        for (name, rule) in Rule::ALL {
            assert_eq!(name.parse::<Rule>().expect("a known rule"), rule);
            assert_eq!(rule.name(), name);
            let rules = Rules::ALL.without(rule);
            assert!(!rules.has(rule));
            assert_eq!(rules.missing().collect::<Vec<_>>(), [rule]);
        }
        assert_eq!(Rule::of_matrix().count(), 8);
    }

    #[test]
    fn an_unknown_rule_names_the_nearest() {
        let message = "mock-requests".parse::<Rule>().expect_err("unknown").to_string();
        assert!(message.contains("did you mean 'mock-request'") && message.contains("wait-window"), "{message}");
    }
}
