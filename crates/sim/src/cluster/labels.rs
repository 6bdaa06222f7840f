//! Labels of machines, and the classes of machines that label expressions select.
//!
//! [`LabelIndex`] resolves an expression to a class once and keeps the members of all classes up to date when machines get other labels or
//! join. A class may exclude single machines (a blacklist) in addition to its expression.

use std::collections::{BTreeMap, BTreeSet};

use super::expression::Expression;
use super::scope::MachineSet;
use plimsoll_base::units::MachineId;

/// The id of a class of machines; ids are dense, in order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct ClassId(pub u32);

/// The machines for which an expression is true, except excluded machines.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Class {
    expression: Expression,
    but: BTreeSet<MachineId>,
    members: MachineSet,
}

/// The machines that carry each label, and the class of machines for each expression in use.
///
/// Relabelling a machine updates all classes at once: O(classes · size of their expressions) per machine.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct LabelIndex {
    carriers: BTreeMap<String, MachineSet>,
    classes: Vec<Class>,
    /// Classes by the text of their expression as it was written.
    known: BTreeMap<String, ClassId>,
    machines: u32,
}

impl LabelIndex {
    /// Creates the index for machines in order, each with its labels.
    pub fn new<'a>(machines: impl IntoIterator<Item = &'a [String]>) -> LabelIndex {
        let mut index = LabelIndex::default();
        for labels in machines {
            let machine = MachineId(index.machines);
            index.machines += 1;
            for label in labels {
                index.carriers.entry(label.clone()).or_default().set(machine, true);
            }
        }
        index
    }

    /// Declares a label that no machine carries yet, such as one that an event will add.
    pub fn declare(&mut self, label: &str) {
        self.carriers.entry(label.to_owned()).or_default();
    }

    /// Returns the class of machines for which an expression is true.
    ///
    /// Errors, as a message without the place in the input: the problem of the expression and its position, or a label that is neither
    /// carried nor declared, with the known labels.
    pub fn class(&mut self, text: &str) -> Result<ClassId, String> {
        if let Some(class) = self.known.get(text) {
            return Ok(*class);
        }
        let expression = Expression::parse(text)?;
        if let Some(unknown) = expression.labels().into_iter().find(|label| !self.carriers.contains_key(*label)) {
            let known: Vec<&str> = self.known().collect();
            let known = if known.is_empty() { "no machine has labels".to_owned() } else { known.join(", ") };
            return Err(format!("'{unknown}' is no label of any machine; known: {known}"));
        }
        let class = self.class_of(expression, BTreeSet::new());
        self.known.insert(text.to_owned(), class);
        Ok(class)
    }

    /// Returns the class of the machines of `class` (or of all machines) except the machines in `but`. Machines that `class` excluded are
    /// included again unless they are in `but`.
    pub fn all_but(&mut self, class: Option<ClassId>, but: BTreeSet<MachineId>) -> ClassId {
        let all = || Expression::All(Vec::new());
        let expression = class.map_or_else(all, |class| self.classes[class.0 as usize].expression.clone());
        self.class_of(expression, but)
    }

    /// Returns the machines that a class excludes.
    pub fn but(&self, class: ClassId) -> &BTreeSet<MachineId> {
        &self.classes[class.0 as usize].but
    }

    fn class_of(&mut self, expression: Expression, but: BTreeSet<MachineId>) -> ClassId {
        let same = self.classes.iter().position(|other| other.expression == expression && other.but == but);
        let at = same.unwrap_or_else(|| {
            let carries = |label: &str, machine| self.carriers.get(label).is_some_and(|of| of.contains(machine));
            let holds = |m: &MachineId| expression.is_satisfied(&|label| carries(label, *m)) && !but.contains(m);
            let members = (0..self.machines).map(MachineId).filter(holds).collect();
            self.classes.push(Class { expression, but, members });
            self.classes.len() - 1
        });
        ClassId(at as u32)
    }

    /// Returns the text of the expression of a class, unless the class excludes machines.
    pub fn text(&self, class: ClassId) -> Option<&str> {
        self.known.iter().find(|(_, known)| **known == class).map(|(text, _)| text.as_str())
    }

    /// Returns the machines of a class.
    pub fn members(&self, class: ClassId) -> &MachineSet {
        &self.classes[class.0 as usize].members
    }

    /// Returns whether the expression of a class is false on every machine without the label.
    pub fn requires(&self, class: ClassId, label: &str) -> bool {
        self.classes[class.0 as usize].expression.requires(label)
    }

    /// Returns all labels that are carried or declared, in alphabetical order.
    pub fn known(&self) -> impl Iterator<Item = &str> {
        self.carriers.keys().map(String::as_str)
    }

    /// Returns the machines that carry a label, if it is known.
    pub fn carriers(&self, label: &str) -> Option<&MachineSet> {
        self.carriers.get(label)
    }

    /// Returns the labels of a machine, in alphabetical order.
    pub fn labels(&self, machine: MachineId) -> impl Iterator<Item = &str> {
        self.carriers.iter().filter(move |(_, of)| of.contains(machine)).map(|(label, _)| label.as_str())
    }

    /// Sets the labels of a machine (perhaps a new one) to exactly these and returns the classes that it joined and left.
    pub fn relabel(&mut self, machine: MachineId, labels: &[String]) -> Moved {
        self.machines = self.machines.max(machine.0 + 1);
        labels.iter().for_each(|label| self.declare(label));
        for (label, members) in &mut self.carriers {
            members.set(machine, labels.contains(label));
        }
        let mut moved = Moved::default();
        for (at, Class { expression, but, members }) in self.classes.iter_mut().enumerate() {
            let member =
                expression.is_satisfied(&|label| labels.iter().any(|own| own == label)) && !but.contains(&machine);
            if members.set(machine, member) {
                let list = if member { &mut moved.joined } else { &mut moved.left };
                list.push(ClassId(at as u32));
            }
        }
        moved
    }
}

/// The changes made by relabelling a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Classes that the machine has joined.
    pub joined: Vec<ClassId>,
    /// Classes that the machine has left.
    pub left: Vec<ClassId>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn list(labels: &str) -> Vec<String> {
        labels.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn classes_follow_the_labels() {
        const ASKED: [&str; 5] = ["ssd", "!gpu", "ssd & !gpu", "gpu | room=a", "!(ssd | gpu) & room=a"];
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut draw =
            || list(["ssd", "gpu", "room=a"].map(|l| if rng.random_bool(0.4) { l } else { "" }).join(" ").as_str());
        let mut of: Vec<Vec<String>> = (0..200).map(|_| draw()).collect();
        let mut index = LabelIndex::new(of.iter().map(Vec::as_slice));
        let classes = ASKED.map(|text| index.class(text).expect("known labels"));
        for step in 0..300 {
            // Machine 200 and the following ones join.
            let machine = MachineId(if step < 20 { 200 + step } else { step * 7 % 220 });
            let labels = draw();
            let before: Vec<bool> = classes.iter().map(|class| index.members(*class).contains(machine)).collect();
            let moved = index.relabel(machine, &labels);
            of.resize(of.len().max(machine.index() + 1), Vec::new());
            of[machine.index()] = labels;
            for (at, (text, class)) in ASKED.into_iter().zip(classes).enumerate() {
                let expression = Expression::parse(text).expect("an expression");
                let holds = |own: &Vec<String>| expression.is_satisfied(&|label| own.iter().any(|l| l == label));
                let want: Vec<usize> = (0..of.len()).filter(|m| holds(&of[*m])).collect();
                let got: Vec<usize> = index.members(class).iter().map(MachineId::index).collect();
                assert_eq!(got, want, "{text}");
                let now = index.members(class).contains(machine);
                assert_eq!(moved.joined.contains(&class), now && !before[at]);
                assert_eq!(moved.left.contains(&class), !now && before[at]);
            }
        }
        assert_eq!(index.class("ssd&!gpu"), Ok(classes[2]), "another spelling, the same class");
    }

    /// An excluded machine stays excluded from its class when labels change.
    #[test]
    fn machines_that_are_left_out_stay_out() {
        let mut index = LabelIndex::new([list("ssd"), list("ssd gpu"), list("gpu")].iter().map(Vec::as_slice));
        let ssd = index.class("ssd").expect("a known label");
        let members = |index: &LabelIndex, class| index.members(class).iter().map(|m| m.0).collect::<Vec<u32>>();
        let but = |machines: &[u32]| machines.iter().map(|machine| MachineId(*machine)).collect::<BTreeSet<_>>();
        let (less, any) = (index.all_but(Some(ssd), but(&[1])), index.all_but(None, but(&[0])));
        assert_eq!((members(&index, less), members(&index, any)), (vec![0], vec![1, 2]));
        assert_eq!(index.all_but(Some(less), but(&[])), ssd, "without exclusions, the class is the original one");
        assert_eq!(index.all_but(Some(ssd), but(&[1])), less, "equal exclusions give the same class");
        let moved = index.relabel(MachineId(1), &list("ssd"));
        assert!(moved.joined.is_empty() && members(&index, less) == [0]);
        index.relabel(MachineId(2), &list("ssd"));
        assert_eq!((members(&index, less), members(&index, any)), (vec![0, 2], vec![1, 2]));
    }

    #[test]
    fn unknown_labels_are_named_with_the_known_ones() {
        let machines = [list("gpu ssd"), list("gpu")];
        let mut index = LabelIndex::new(machines.iter().map(Vec::as_slice));
        let message = index.class("gpu & sdd").expect_err("no such label");
        assert_eq!(message, "'sdd' is no label of any machine; known: gpu, ssd");
        index.declare("sdd");
        let none = index.class("sdd").expect("declared");
        assert!(index.members(none).is_empty() && index.carriers("gpu").is_some_and(|of| of.len() == 2));
        assert_eq!(index.labels(MachineId(0)).collect::<Vec<_>>(), ["gpu", "ssd"]);
        assert!(LabelIndex::default().class("x").expect_err("none").contains("no machine has labels"));
    }
}
