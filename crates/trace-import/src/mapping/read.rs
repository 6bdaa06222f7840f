//! Reads a mapping from TOML.

use plimsoll_base::error::Result;
use plimsoll_base::tree::{Node, Place};

use super::{
    AttemptRule, AttemptSpec, Delimiter, FieldRule, FileForm, FoldSpec, Formula, Join, MachinesSpec, Mapping,
    MissingRule, OutputColumn, Recognition, TableSpec, VERSION,
};
use crate::clock::{Clock, RepeatedHour, zone};
use crate::target::{Target, unknown_target};

const KEYS: [&str; 17] = [
    "mapping",
    "about",
    "source",
    "recognise",
    "resources",
    "input",
    "table",
    "time",
    "fold",
    "let",
    "keep",
    "warn",
    "trace",
    "missing",
    "attempts",
    "fields",
    "machines",
];

const TABLE_KEYS: [&str; 12] = [
    "name",
    "files",
    "format",
    "delimiter",
    "quotes",
    "comment",
    "columns",
    "header",
    "overflow",
    "records",
    "missing",
    "reader",
];

fn text<'n>(key: &str, node: &'n Node) -> Result<&'n str> {
    node.text().ok_or_else(|| node.place.wrong(key, format!("{} is not accepted; expected text", node.shown())))
}

fn texts(key: &str, node: &Node) -> Result<Vec<String>> {
    match node.list() {
        Some(items) => items.iter().map(|item| scalar(key, item)).collect(),
        None => Ok(vec![scalar(key, node)?]),
    }
}

fn scalar(key: &str, node: &Node) -> Result<String> {
    use plimsoll_base::tree::Value::{Float, Integer, Text};
    match &node.value {
        Text(text) | Integer(text) | Float(text) => Ok(text.clone()),
        _ => Err(node.place.wrong(key, format!("{} is not accepted; expected text or a number", node.shown()))),
    }
}

fn truth(key: &str, node: &Node) -> Result<bool> {
    match node.value {
        plimsoll_base::tree::Value::Truth(truth) => Ok(truth),
        _ => Err(node.place.wrong(key, format!("{} is not accepted; expected true or false", node.shown()))),
    }
}

fn one_of<T: Copy>(key: &str, node: &Node, names: &[(&str, T)]) -> Result<T> {
    let given = text(key, node)?;
    names.iter().find(|(name, _)| *name == given).map(|(_, value)| *value).ok_or_else(|| {
        let known = names.iter().map(|(name, _)| *name);
        let hint = plimsoll_base::error::did_you_mean(given, known.clone());
        node.place
            .wrong(key, format!("'{given}' is not accepted; expected {}{hint}", plimsoll_base::error::either(known)))
    })
}

/// Calls `each` for every entry of a table. Errors: the value is no table, or those of `each`.
fn entries(key: &str, node: &Node, each: &mut dyn FnMut(&str, &Place, &Node) -> Result<()>) -> Result<()> {
    let entries = node.table().ok_or_else(|| node.place.wrong(key, "expected a table"))?;
    entries.iter().try_for_each(|entry| each(&entry.key, &entry.place, &entry.node))
}

impl Mapping {
    /// Parses a mapping in TOML; `place` is the whole text. Errors: [`plimsoll_base::error::Error::Placed`].
    pub fn parse(name: &str, place: &Place) -> Result<Mapping> {
        let tree = Node::toml(place)?;
        match tree.get("mapping") {
            Some(entry) if scalar("mapping", &entry.node)? == VERSION => Mapping::from_tree(name, &tree),
            Some(entry) => Err(entry
                .node
                .place
                .wrong("mapping", format!("{} is no known version; expected {VERSION}", entry.node.shown()))),
            None => Err(tree.place.wrong("", "is no mapping; expected 'mapping = 1' at its beginning")),
        }
    }

    /// Converts a parsed document. Errors: [`plimsoll_base::error::Error::Placed`].
    pub fn from_tree(name: &str, tree: &Node) -> Result<Mapping> {
        tree.known(&KEYS, "", " of a mapping")?;
        let mut mapping = Mapping {
            name: name.to_owned(),
            about: String::new(),
            source: String::new(),
            recognition: None,
            tables: Vec::new(),
            clock: Clock::default(),
            origin: None,
            fold: None,
            lets: Vec::new(),
            keep: Vec::new(),
            warn: Vec::new(),
            outputs: Vec::new(),
            after_key: None,
            demand_of_all: false,
            merge: false,
            attempts: None,
            fields: Vec::new(),
            machines: None,
            resources: Vec::new(),
        };
        if let Some(entry) = tree.get("resources") {
            mapping.resources = texts("resources", &entry.node)?;
        }
        for entry in tree.entries() {
            mapping.read_entry(&entry.key, &entry.node)?;
        }
        if let Some(entry) = tree.get("missing") {
            entries("missing", &entry.node, &mut |key, place, node| mapping.read_missing(key, place, node))?;
        }
        if mapping.tables.is_empty() {
            mapping.tables.push(TableSpec::default());
        }
        if let Some(entry) = tree.get("machines") {
            mapping.machines = Some(machines(&entry.node, &mapping)?);
        }
        if let Some(table) = mapping.tables.iter().skip(1).find(|table| table.join.is_none()) {
            return Err(table.place.wrong("join", "is missing; expected join = { key = \"...\", of = \"...\" }"));
        }
        if let Some(join) = &mapping.tables[0].join {
            return Err(join.key.place.wrong("join", "is not accepted in the first table, which is the main table"));
        }
        mapping.require_outputs(tree)?;
        Ok(mapping)
    }

    fn read_entry(&mut self, key: &str, node: &Node) -> Result<()> {
        let formulas = |list: &mut Vec<(Formula, String)>| {
            entries(key, node, &mut |condition, place, reason| {
                list.push((Formula::parse(key, condition, place)?, text(key, reason)?.to_owned()));
                Ok(())
            })
        };
        match key {
            "about" => self.about = text(key, node)?.to_owned(),
            "source" => self.source = text(key, node)?.to_owned(),
            "recognise" => self.recognition = Some(recognition(node)?),
            "input" => {
                if node.table().is_none() {
                    return Err(node.place.wrong(key, "expected a table"));
                }
                self.tables.insert(0, table(node)?);
            }
            "table" => {
                let list = node.list().ok_or_else(|| node.place.wrong(key, "expected tables: [[table]]"))?;
                for node in list {
                    self.tables.push(table(node)?);
                }
            }
            "time" => self.read_time(node)?,
            "fold" => self.fold = Some(fold(node)?),
            "let" => entries(key, node, &mut |name, _, node| {
                self.lets.push((name.to_owned(), Formula::from_node(name, node)?));
                Ok(())
            })?,
            "keep" => formulas(&mut self.keep)?,
            "warn" => formulas(&mut self.warn)?,
            "trace" => entries(key, node, &mut |name, place, node| self.read_output(name, place, node))?,
            "attempts" => {
                node.known(&["key", "use", "order"], key, " of [attempts]")?;
                let of = |name: &str| {
                    node.get(name)
                        .ok_or_else(|| node.place.wrong(key, format!("'{name}' is missing; expected key and use")))
                };
                let rules = [
                    ("first", AttemptRule::First),
                    ("last", AttemptRule::Last),
                    ("sum", AttemptRule::Sum),
                    ("each", AttemptRule::Each),
                ];
                let rule = one_of("attempts.use", &of("use")?.node, &rules)?;
                let key = Formula::from_node("attempts.key", &of("key")?.node)?;
                let order = node.get("order").map(|entry| Formula::from_node("attempts.order", &entry.node));
                self.attempts = Some(AttemptSpec { key, order: order.transpose()?, rule });
            }
            "fields" => entries(key, node, &mut |name, place, node| {
                let rule = text(name, node)?;
                let rule = match rule.split_once(':').map(|(rule, reason)| (rule.trim(), reason.trim())) {
                    Some(("ignored", reason)) if !reason.is_empty() => FieldRule::Ignored,
                    Some(("counted", reason)) if !reason.is_empty() => FieldRule::Counted(reason.to_owned()),
                    _ => {
                        let expected = "expected \"ignored: REASON\" or \"counted: REASON\"";
                        return Err(node
                            .place
                            .wrong(name, format!("'{}' is not accepted; {expected}", crate::value::short(rule))));
                    }
                };
                self.fields.push((name.to_owned(), rule, place.clone()));
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    }

    fn read_time(&mut self, node: &Node) -> Result<()> {
        node.known(&["format", "zone", "repeated", "origin"], "time", " of [time]")?;
        entries("time", node, &mut |key, _, node| {
            match key {
                "format" if node.text() == Some("iso8601") => self.clock.format = None,
                "format" => self.clock.format = Some(text("time.format", node)?.to_owned()),
                "zone" => {
                    let name = text("time.zone", node)?;
                    self.clock.zone = zone(name).map_err(|problem| node.place.wrong("time.zone", problem))?;
                    self.clock.zone_name = Some(name.to_owned());
                }
                "repeated" => {
                    let rules = [("first", RepeatedHour::First), ("second", RepeatedHour::Second)];
                    self.clock.repeated = one_of("time.repeated", node, &rules)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        if let Some(entry) = node.get("origin").filter(|entry| entry.node.text() != Some("first")) {
            let given = scalar("time.origin", &entry.node)?;
            let origin = crate::value::Value::text(given).number(&self.clock);
            self.origin =
                origin.map_err(|problem| entry.node.place.wrong("time.origin", format!("{problem}; or \"first\"")))?;
        }
        Ok(())
    }

    fn read_output(&mut self, name: &str, place: &Place, node: &Node) -> Result<()> {
        match name {
            "demand_of" => {
                self.demand_of_all = one_of("trace.demand_of", node, &[("task", false), ("job", true)])?;
                return Ok(());
            }
            "after_key" => {
                self.after_key = Some(Formula::from_node("trace.after_key", node)?);
                return Ok(());
            }
            "merge" => {
                self.merge = truth("trace.merge", node)?;
                return Ok(());
            }
            _ => {}
        }
        let target = Target::parse(name, &self.resources).ok_or_else(|| place.wrong("trace", unknown_target(name)))?;
        if let Some(other) = self.outputs.iter().find(|other| other.target.is_same(&target)) {
            return Err(place.wrong("trace", format!("'{name}' is already given by '{}'", other.name)));
        }
        let missing = if target.is_optional() { MissingRule::Unknown } else { MissingRule::Drop };
        let formula = Formula::from_node(name, node)?;
        self.outputs.push(OutputColumn { target, name: name.to_owned(), formula, missing });
        Ok(())
    }

    fn read_missing(&mut self, key: &str, place: &Place, node: &Node) -> Result<()> {
        let names: Vec<&str> = self.outputs.iter().map(|output| output.name.as_str()).collect();
        let Some(at) = names.iter().position(|name| *name == key) else {
            let hint = plimsoll_base::error::did_you_mean(key, names.iter().copied());
            let problem = format!("'{key}' is no column of [trace]{hint}; expected {}", names.join(", "));
            return Err(place.wrong("missing", problem));
        };
        let output = &mut self.outputs[at];
        output.missing = match node.text() {
            Some("drop") => MissingRule::Drop,
            Some("unknown") if output.target.is_optional() => MissingRule::Unknown,
            Some("unknown") => {
                let problem =
                    format!("'{key}' is required, so 'unknown' is not accepted; expected \"drop\" or a value");
                return Err(node.place.wrong("missing", problem));
            }
            _ => MissingRule::Constant(Formula::from_node(key, node)?),
        };
        Ok(())
    }

    fn require_outputs(&self, tree: &Node) -> Result<()> {
        let place = tree.get("trace").map_or(&tree.place, |entry| &entry.place);
        let has = |wanted: fn(&Target) -> bool| self.outputs.iter().any(|output| wanted(&output.target));
        let missing = if !has(|target| matches!(target, Target::Submit(_))) {
            "'submit' is missing; expected the time of submission, such as submit = \"submit_time\""
        } else if !has(|target| matches!(target, Target::Duration(_))) {
            "'duration' is missing; expected the time on a machine, such as duration = \"end_time - start_time\""
        } else if !has(|target| matches!(target, Target::Resource(..))) {
            "a resource is missing; expected a demand, such as cpu = \"cores\", gpu = \"num_gpus\" or cpu = 1"
        } else {
            return Ok(());
        };
        Err(place.wrong("trace", missing))
    }
}

fn recognition(node: &Node) -> Result<Recognition> {
    node.known(&["columns", "line", "texts"], "recognise", " of [recognise]")?;
    let Some(entry) = node.entries().first() else {
        return Err(node.place.wrong("recognise", "is empty; expected columns, line or texts"));
    };
    Ok(match entry.key.as_str() {
        "columns" => Recognition::Columns(texts("recognise.columns", &entry.node)?),
        "texts" => Recognition::Texts(texts("recognise.texts", &entry.node)?),
        _ => {
            let pattern = text("recognise.line", &entry.node)?;
            let regex = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build();
            Recognition::Line(regex.map_err(|error| entry.node.place.wrong("recognise.line", error))?)
        }
    })
}

fn table(node: &Node) -> Result<TableSpec> {
    let mut keys = TABLE_KEYS.to_vec();
    keys.push("join");
    node.known(&keys, "table", " of a table")?;
    let mut table = TableSpec { place: node.place.clone(), ..TableSpec::default() };
    for entry in node.entries() {
        let (key, node) = (entry.key.as_str(), &entry.node);
        let byte = |accepted: &str| {
            let given = text(key, node)?;
            match given.as_bytes() {
                [byte] if byte.is_ascii() => Ok(*byte),
                _ => Err(node
                    .place
                    .wrong(key, format!("'{}' is not accepted; expected {accepted}", given.escape_debug()))),
            }
        };
        match key {
            "name" => table.name = text(key, node)?.to_owned(),
            "files" => table.files = texts(key, node)?,
            "format" => table.form = Some(one_of(key, node, &FileForm::NAMES)?),
            "delimiter" => {
                table.delimiter = Some(match node.text() {
                    Some("blanks") => Delimiter::Blanks,
                    Some("tab") => Delimiter::Byte(b'\t'),
                    _ => Delimiter::Byte(byte("one ASCII character, \"tab\" or \"blanks\"")?),
                });
            }
            "quotes" => table.quotes = Some(truth(key, node)?),
            "comment" => table.comment = Some(byte("one ASCII character, such as \"#\"")?),
            "columns" => table.columns = texts(key, node)?,
            "header" => table.header = Some(truth(key, node)?),
            "overflow" => table.overflow = truth(key, node)?,
            "records" => {
                table.records =
                    text(key, node)?.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            }
            "missing" => table.missing = texts(key, node)?,
            "reader" => table.reader = Some(text(key, node)?.to_owned()),
            _ => table.join = Some(join(node)?),
        }
    }
    Ok(table)
}

fn join(node: &Node) -> Result<Join> {
    node.known(&["key", "of", "missing", "optional"], "join", " of a join")?;
    let key = node
        .get("key")
        .ok_or_else(|| node.place.wrong("join", "'key' is missing; expected the key in the main table"))?;
    let key_formula = Formula::from_node("join.key", &key.node)?;
    let of = node.get("of").map_or(Ok(key_formula.clone()), |entry| Formula::from_node("join.of", &entry.node))?;
    let keep = node.get("missing").map(|entry| one_of("join.missing", &entry.node, &[("drop", false), ("keep", true)]));
    let optional = node.get("optional").map(|entry| truth("join.optional", &entry.node));
    Ok(Join {
        key: key_formula,
        of,
        keep: keep.transpose()?.unwrap_or(false),
        optional: optional.transpose()?.unwrap_or(false),
    })
}

/// The columns of a machines file besides resources.
const OF_MACHINES: [&str; 6] = ["name", "count", "labels", "room", "rack", "speed"];

fn machines(node: &Node, mapping: &Mapping) -> Result<MachinesSpec> {
    let mut spec = MachinesSpec { table: 0, columns: Vec::new(), place: node.place.clone() };
    entries("machines", node, &mut |key, place, node| {
        if key == "table" {
            let name = text("machines.table", node)?;
            let tables = || mapping.tables.iter().map(|table| table.name.as_str());
            let problem = || {
                let known = plimsoll_base::error::either(tables());
                node.place.wrong("machines.table", format!("'{name}' is no table of the mapping; expected {known}"))
            };
            spec.table = tables().position(|known| known == name).ok_or_else(problem)?;
            return Ok(());
        }
        let is_resource = matches!(Target::parse(key, &mapping.resources), Some(Target::Resource(..)));
        if !is_resource && !OF_MACHINES.contains(&key) {
            let hint = plimsoll_base::error::did_you_mean(key, OF_MACHINES);
            let expected = format!("table, {} or a resource such as cpu or memory_gib", OF_MACHINES.join(", "));
            return Err(place.wrong("machines", format!("'{key}' is no column of machines{hint}; expected {expected}")));
        }
        spec.columns.push((key.to_owned(), is_resource, Formula::from_node(key, node)?));
        Ok(())
    })?;
    if !spec.columns.iter().any(|(_, is_resource, _)| *is_resource) {
        return Err(node.place.wrong("machines", "has no resource; expected a capacity, such as cpu = \"cores\""));
    }
    Ok(spec)
}

fn fold(node: &Node) -> Result<FoldSpec> {
    let keys = ["key", "time", "event", "submit", "start", "end", "update"];
    node.known(&keys, "fold", " of [fold]")?;
    let of = |key: &str| {
        let expected = keys.join(", ");
        node.get(key).ok_or_else(|| node.place.wrong("fold", format!("'{key}' is missing; expected {expected}")))
    };
    let formula = |key: &str| Formula::from_node(key, &of(key)?.node);
    let mut end = Vec::new();
    entries("fold.end", &of("end")?.node, &mut |outcome, _, node| {
        end.extend(texts("fold.end", node)?.into_iter().map(|code| (code, outcome.to_owned())));
        Ok(())
    })?;
    Ok(FoldSpec {
        key: formula("key")?,
        time: formula("time")?,
        event: formula("event")?,
        submit: texts("fold.submit", &of("submit")?.node)?,
        start: texts("fold.start", &of("start")?.node)?,
        end,
        update: node.get("update").map_or(Ok(Vec::new()), |entry| texts("fold.update", &entry.node))?,
    })
}
