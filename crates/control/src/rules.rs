//! The rules of the protocol. Each can be switched off to show its purpose.
//!
//! The article states five of them: `mock-request`, `cap-checkpoint`, `hint-checkpoint`, `hint-recovery` and `keep-stable`. For
//! `wait-window` it states only that FuxiMaster waits. Experiments with this module showed that `wait-window` and the remaining rules are
//! needed too (see `docs/failover.md`).

use plimsoll_base::named;

named! {
    /// A rule that can be switched off.
    Rule {
        MockRequest "mock-request": "FuxiMaster creates a mock request for the stable caps of an application without master",
        CapCheckpoint "cap-checkpoint": "A Tubo keeps its caps on disk and reads them after a restart",
        HintCheckpoint "hint-checkpoint":
            "An application master keeps the hints of stable roles on disk and reads them after a restart",
        HintRecovery "hint-recovery":
            "FuxiMaster rebuilds the allocations on unreachable machines from the hints of application masters",
        WaitWindow "wait-window":
            "During recovery FuxiMaster only receives reports: it answers no request for full caps or hints",
        KeepStable "keep-stable":
            "When a Tubo times out its stable units stay, and the application master is notified",
        SurplusToAm "surplus-to-am":
            "The application master selects the stable units above the request to return",
        SequenceNumbers "sequence-numbers":
            "Increments are numbered: a late, duplicate or early one is not applied",
        Fencing "fencing": "Messages of a superseded application master are refused",
        Clamp "clamp": "The claims of hints are cut at the capacity of the machine",
    }
}

impl Rule {
    /// Returns the rules that are columns of the matrix of scenarios and rules. The other two, `fencing` and `clamp`, are always in force
    /// in the matrix.
    pub fn of_matrix() -> impl Iterator<Item = Rule> {
        Rule::ALL.iter().map(|(_, rule, _)| *rule).filter(|rule| !matches!(rule, Rule::Fencing | Rule::Clamp))
    }
}

/// The set of rules in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rules(u16);

impl Rules {
    /// All rules.
    pub const ALL: Rules = Rules(u16::MAX);

    /// Returns these rules without `rule`.
    pub fn without(self, rule: Rule) -> Rules {
        Rules(self.0 & !(1 << rule as u16))
    }

    /// Returns whether a rule is in force.
    pub fn has(self, rule: Rule) -> bool {
        self.0 >> rule as u16 & 1 == 1
    }

    /// Returns the rules that are switched off.
    pub fn missing(self) -> impl Iterator<Item = Rule> {
        Rule::ALL.iter().map(|(_, rule, _)| *rule).filter(move |rule| !self.has(*rule))
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
        for &(name, rule, _) in Rule::ALL {
            assert_eq!((Rule::parse("--without", name).expect("a known rule"), rule.name()), (rule, name));
            let rules = Rules::ALL.without(rule);
            assert!(!rules.has(rule));
            assert_eq!(rules.missing().collect::<Vec<_>>(), [rule]);
        }
        assert_eq!(Rule::of_matrix().count(), 8);
    }

    #[test]
    fn an_unknown_rule_names_the_nearest() {
        let message = Rule::parse("--without", "mock-requests").expect_err("unknown").to_string();
        assert!(message.contains("did you mean 'mock-request'") && message.contains("wait-window"), "{message}");
    }
}
