//! Calls of commands by another program, with typed arguments instead of a command line.
//!
//! Names, types, defaults and conflicts of the arguments are those of the command line's declarations. A wrong call is reported before
//! anything runs, in terms of keywords: `on_blocked` for `--on-blocked`, and `from_` for `--from`.

use std::any::TypeId;
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Cli, Collected, Context, Stop, Verb, dispatch, parse, requirement, trace};
use crate::document::Document;
use crate::error::{Error, either, nearest};
use crate::output::shell;
use crate::policy::Registry;

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A truth value.
    Truth(bool),
    /// A whole number.
    Whole(u64),
    /// Another number.
    Number(f64),
    /// Text, or a path.
    Text(String),
    /// Values in order.
    List(Vec<Argument>),
    /// A plan, an instance or a state.
    Document(Document),
    /// The name of a type that no argument accepts.
    Other(String),
}

impl Argument {
    /// Returns the name of the type.
    fn kind(&self) -> &str {
        match self {
            Argument::Truth(_) => "bool",
            Argument::Whole(_) => "int",
            Argument::Number(_) => "float",
            Argument::Text(_) => "str",
            Argument::List(_) => "list",
            Argument::Document(_) => "dict",
            Argument::Other(name) => name,
        }
    }
}

/// Arguments by name.
pub type Arguments = Vec<(String, Argument)>;

/// The reason why a call is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongCall {
    /// An unknown name, or a value of another type.
    Type(String),
    /// A value that is not accepted.
    Input(String),
}

impl From<Error> for WrongCall {
    fn from(error: Error) -> WrongCall {
        WrongCall::Input(error.to_string())
    }
}

/// The outcome of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// The exit code that the program would have.
    pub code: u8,
    /// The text for standard output.
    pub printed: String,
    /// The problem, if the code is not 0; without 'error:'.
    pub problem: String,
    /// The warnings, each without 'warning:'.
    pub warnings: Vec<String>,
}

/// A command with its arguments.
#[derive(Debug)]
pub struct Call {
    verb: Verb,
    quiet: bool,
    /// The same call as a command line, for the record of the results.
    line: String,
    spelling: Spelling,
}

impl Call {
    /// Reads the arguments of a command such as `replay` or `trace_stats`. `given` are the arguments that the calling function sets,
    /// and `options` are those of its caller, which must not be the same ones.
    ///
    /// Errors: a [`WrongCall`] that names the argument, the value and the accepted names or values.
    pub fn new(name: &str, given: Arguments, options: Arguments) -> Result<Call, WrongCall> {
        let mut reader = ArgumentReader { name, given, options };
        let quiet = match reader.given.iter().position(|(name, _)| name == "quiet") {
            None => false,
            Some(at) => match reader.given.remove(at).1 {
                Argument::Truth(quiet) => quiet,
                other => return Err(wrong_type("quiet", &other, "True or False")),
            },
        };
        let (verb, line, spelling) = match name {
            "run" => reader.read(Verb::Run),
            "replay" => reader.read(Verb::Replay),
            "solve" => reader.read(Verb::Solve),
            "check" => reader.read(Verb::Check),
            "decide" => reader.read(Verb::Decide),
            "court" => reader.read(Verb::Court),
            "compare" => reader.read(Verb::Compare),
            "plot" => reader.read(Verb::Plot),
            "report" => reader.read(Verb::Report),
            "schema" => reader.read(Verb::Schema),
            "policies" => reader.read(Verb::Policies),
            "why" => reader.read(Verb::Why),
            "trace_stats" => reader.read(|args| Verb::Trace(trace::Args::stats(args))),
            _ => Err(WrongCall::Type(format!("'{name}' is no command that another program can call"))),
        }?;
        Ok(Call { verb, quiet, line, spelling })
    }

    /// Parses a command line, the program's name first. Errors: the message of the parser.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Call, String> {
        let args: Vec<OsString> = args.into_iter().collect();
        let Cli { verb, quiet, .. } = parse(&args).map_err(|error| error.to_string())?;
        let line = shell::line(args.iter().map(|arg| arg.to_string_lossy()));
        Ok(Call { verb, quiet, line, spelling: Spelling::default() })
    }

    /// Executes the command. It ends on request of `stop`, handles no signal, and writes only progress to standard error.
    pub fn execute(&self, registry: &Registry, stop: &Stop) -> Called {
        let (line, stop) = (self.line.clone(), stop.clone());
        let context = Context { registry, quiet: self.quiet, line, stop, collected: Some(RefCell::default()) };
        let outcome = dispatch(&self.verb, &context);
        let Collected { printed, warnings } = context.collected.map(RefCell::into_inner).unwrap_or_default();
        let (code, problem) =
            outcome.err().map_or_else(Default::default, |error| (error.exit_code(), error.to_string()));
        let warnings = warnings.iter().map(|warning| self.spelling.apply(warning)).collect();
        Called { code, printed, problem: self.spelling.apply(&problem), warnings }
    }
}

/// Options of the command line with their keywords.
#[derive(Clone, Debug, Default)]
struct Spelling(Vec<(String, String)>);

impl Spelling {
    /// Returns a message with keywords in place of the options.
    fn apply(&self, message: &str) -> String {
        let (mut text, mut rest) = (String::new(), message);
        while let Some(at) = rest.find("--") {
            let (before, after) = (&rest[..at], &rest[at + 2..]);
            let end = after.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(after.len());
            let is_start = !before.ends_with(|c: char| c.is_alphanumeric() || c == '-');
            let keyword = self.0.iter().find(|(option, _)| is_start && *option == after[..end]);
            text.push_str(before);
            match keyword {
                Some((_, keyword)) => text.push_str(keyword),
                None => text.push_str(&rest[at..at + 2 + end]),
            }
            rest = &after[end..];
        }
        text + rest
    }
}

/// The arguments of a call before they are read.
struct ArgumentReader<'a> {
    name: &'a str,
    given: Arguments,
    options: Arguments,
}

/// Returns the keyword of an option.
fn keyword(arg: &Arg) -> String {
    match arg.get_long() {
        Some("from") => "from_".to_owned(),
        Some(option) => option.replace('-', "_"),
        None => arg.get_id().to_string(),
    }
}

impl ArgumentReader<'_> {
    /// Reads the arguments of the command. Returns them with the command line and the spelling of the options.
    fn read<A: clap::Args + DeserializeOwned>(
        &mut self,
        verb: impl FnOnce(A) -> Verb,
    ) -> Result<(Verb, String, Spelling), WrongCall> {
        let words = self.name.replace('_', " ");
        let mut command = A::augment_args(Command::new("call"));
        command.build();
        let mut values: Map<String, Value> = Map::new();
        let (given, options) = (std::mem::take(&mut self.given), std::mem::take(&mut self.options));
        let fixed: Vec<String> = given.iter().map(|(name, _)| name.clone()).collect();
        let name_of = |arg: &Arg| {
            if fixed.iter().any(|name| arg.get_id() == name.as_str()) { arg.get_id().to_string() } else { keyword(arg) }
        };
        let spelling = command.get_arguments().filter_map(|arg| Some((arg.get_long()?.to_owned(), name_of(arg))));
        let spelling = Spelling(spelling.collect());
        for (name, value) in given {
            let arg = command.get_arguments().find(|arg| arg.get_id() == name.as_str());
            let arg = arg.ok_or_else(|| self.unknown(&name, &command, &fixed))?;
            values.insert(name.clone(), typed(arg, &name, value)?);
        }
        for (name, value) in options {
            let arg = allowed(&command, &fixed).find(|arg| keyword(arg) == name);
            let arg = arg.ok_or_else(|| self.unknown(&name, &command, &fixed))?;
            values.insert(arg.get_id().to_string(), typed(arg, &name, value)?);
        }
        values.retain(|_, value| *value != Value::Bool(false) && value.as_array().is_none_or(|list| !list.is_empty()));
        check(&command, self.name, &values, &name_of)?;
        let line = line(&command, &words, &values);
        for arg in command.get_arguments().filter(|arg| !values.contains_key(arg.get_id().as_str())).collect::<Vec<_>>()
        {
            if let Some(value) = default(arg) {
                values.insert(arg.get_id().to_string(), value);
            }
        }
        let args =
            serde_json::from_value(Value::Object(values)).map_err(|error| WrongCall::Input(error.to_string()))?;
        Ok((verb(args), line, spelling))
    }

    fn unknown(&self, name: &str, command: &Command, fixed: &[String]) -> WrongCall {
        let names: Vec<String> = allowed(command, fixed).map(keyword).collect();
        let hint = nearest(name, names.iter().map(String::as_str)).map(|near| format!("; did you mean '{near}'?"));
        let (function, hint) = (self.name, hint.unwrap_or_default());
        WrongCall::Type(format!("{function}() got an unexpected keyword argument '{name}'{hint}"))
    }
}

/// Returns the options that the caller may set: options without a value in `fixed`, except the format of the output.
fn allowed<'c>(command: &'c Command, fixed: &'c [String]) -> impl Iterator<Item = &'c Arg> {
    let is_fixed = |arg: &&Arg| fixed.iter().any(|name| arg.get_id() == name.as_str());
    let not_of_calls = |arg: &&Arg| ["format", "help"].contains(&arg.get_id().as_str());
    command.get_arguments().filter(move |arg| arg.get_long().is_some() && !is_fixed(arg) && !not_of_calls(arg))
}

fn wrong_type(name: &str, value: &Argument, expected: &str) -> WrongCall {
    WrongCall::Type(format!("{name}: a value of type {} is not accepted; expected {expected}", value.kind()))
}

fn is_whole(kind: TypeId) -> bool {
    [TypeId::of::<u64>(), TypeId::of::<u32>(), TypeId::of::<usize>()].contains(&kind)
}

/// Returns the type of the values of an argument.
fn type_of(arg: &Arg) -> TypeId {
    let known = [TypeId::of::<u64>(), TypeId::of::<u32>(), TypeId::of::<usize>(), TypeId::of::<f64>()];
    let known = known.into_iter().chain([TypeId::of::<PathBuf>(), TypeId::of::<Document>()]);
    known.into_iter().find(|kind| arg.get_value_parser().type_id() == *kind).unwrap_or(TypeId::of::<String>())
}

fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// Returns a value of the type that an argument has. Errors: another type, or no possible value.
fn typed(arg: &Arg, name: &str, value: Argument) -> Result<Value, WrongCall> {
    match (arg.get_action(), value) {
        (ArgAction::SetTrue, Argument::Truth(truth)) => Ok(truth.into()),
        (ArgAction::SetTrue, other) => Err(wrong_type(name, &other, "True or False")),
        (ArgAction::Append, Argument::List(values)) => {
            values.into_iter().map(|value| one(arg, name, value)).collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        (ArgAction::Append, value) => Ok(vec![one(arg, name, value)?].into()),
        (_, value) => one(arg, name, value),
    }
}

/// Returns a value that is no list, as [`typed`].
fn one(arg: &Arg, name: &str, value: Argument) -> Result<Value, WrongCall> {
    let kind = type_of(arg);
    let expected = match kind {
        kind if is_whole(kind) => "a whole number from 0 on",
        kind if kind == TypeId::of::<f64>() => "a number",
        kind if kind == TypeId::of::<PathBuf>() => "the path of a file or folder",
        kind if kind == TypeId::of::<Document>() => "a path or a dict",
        _ => "text",
    };
    match value {
        Argument::Whole(number) if is_whole(kind) => {
            let fits = kind != TypeId::of::<u32>() || u32::try_from(number).is_ok();
            let refused = || Error::plan(name, number, format!("a whole number up to {}", u32::MAX)).into();
            if fits { Ok(number.into()) } else { Err(refused()) }
        }
        Argument::Whole(number) if kind == TypeId::of::<f64>() => Ok(number.into()),
        Argument::Number(number) if kind == TypeId::of::<f64>() => match serde_json::Number::from_f64(number) {
            Some(number) => Ok(number.into()),
            None => Err(Error::plan(name, number, "a finite number").into()),
        },
        // A whole number that is negative or too large.
        Argument::Number(number) if is_whole(kind) && number.fract() == 0.0 => {
            Err(Error::plan(name, number, "a whole number from 0 on").into())
        }
        Argument::Text(text) if !is_whole(kind) && kind != TypeId::of::<f64>() => {
            let choices = arg.get_possible_values();
            if !choices.is_empty() && !choices.iter().any(|choice| choice.get_name() == text) {
                let names = either(choices.iter().map(|choice| choice.get_name()));
                return Err(Error::plan(name, format!("'{text}'"), names).into());
            }
            Ok(text.into())
        }
        Argument::Document(Document::Generated { name, text }) if kind == TypeId::of::<Document>() => {
            Ok(serde_json::json!({ "name": name, "text": text }))
        }
        other if is_list(arg) && !matches!(other, Argument::List(_)) => {
            Err(wrong_type(name, &other, &format!("{expected}, or a list of such values")))
        }
        other => Err(wrong_type(name, &other, expected)),
    }
}

/// Returns the default of an argument that is not given; `None` if it may be absent.
fn default(arg: &Arg) -> Option<Value> {
    let kind = type_of(arg);
    let mut values = arg.get_default_values().iter().map(|text| {
        let text = text.to_string_lossy();
        match kind {
            kind if is_whole(kind) => text.parse::<u64>().map_or(Value::Null, Value::from),
            kind if kind == TypeId::of::<f64>() => text.parse::<f64>().map_or(Value::Null, Value::from),
            _ => text.into_owned().into(),
        }
    });
    match arg.get_action() {
        ArgAction::SetTrue => Some(false.into()),
        ArgAction::Append => Some(values.collect::<Vec<Value>>().into()),
        _ => values.next(),
    }
}

/// Checks that required arguments are given, and that no two of them exclude each other.
fn check(
    command: &Command,
    verb: &str,
    values: &Map<String, Value>,
    name_of: &dyn Fn(&Arg) -> String,
) -> Result<(), WrongCall> {
    // The arguments of a group, or the argument itself.
    let members = |id: &str| -> Vec<String> {
        let group = command.get_groups().find(|group| group.get_id() == id);
        group.map_or(vec![id.to_owned()], |group| group.get_args().map(ToString::to_string).collect())
    };
    let has = |id: &str| members(id).iter().any(|id| values.contains_key(id));
    let name = |id: &str| {
        let members = members(id);
        let args = command.get_arguments().filter(|arg| members.iter().any(|id| arg.get_id() == id.as_str()));
        either(args.map(name_of).collect::<Vec<String>>().iter().map(String::as_str))
    };
    let required = command.get_arguments().filter(|arg| arg.is_required_set()).map(|arg| arg.get_id().as_str());
    let groups = command.get_groups().filter(|group| group.is_required_set()).map(|group| group.get_id().as_str());
    if let Some(id) = required.chain(groups).find(|id| !has(id)) {
        return Err(WrongCall::Input(format!("{}: no value is given; expected at least one", name(id))));
    }
    for arg in command.get_arguments().filter(|arg| has(arg.get_id().as_str())) {
        let id = arg.get_id().as_str();
        if let Some(other) = requirement(verb, id).filter(|other| !has(other)) {
            return Err(WrongCall::Input(format!("{} is accepted only with {}", name(id), name(other))));
        }
        if let Some(other) = command.get_arg_conflicts_with(arg).into_iter().find(|other| has(other.get_id().as_str()))
        {
            return Err(WrongCall::Input(format!("{} is not accepted with {}", name(id), name_of(other))));
        }
    }
    Ok(())
}

/// Returns the command line with these values.
fn line(command: &Command, words: &str, values: &Map<String, Value>) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Object(document) => document["name"].as_str().unwrap_or_default().to_owned(),
        other => other.to_string(),
    };
    let mut line: Vec<String> = std::iter::once("plimsoll").chain(words.split(' ')).map(str::to_owned).collect();
    for (arg, value) in command.get_arguments().filter_map(|arg| Some((arg, values.get(arg.get_id().as_str())?))) {
        let each = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        line.extend(each.iter().map(|value| match (arg.get_long(), value) {
            (Some(option), Value::Bool(_)) => format!("--{option}"),
            (Some(option), value) => format!("--{option}={}", text(value)),
            (None, value) => shell::path(Path::new(&text(value))),
        }));
    }
    shell::line(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Argument {
        Argument::Text(text.to_owned())
    }

    fn named(arguments: &[(&str, Argument)]) -> Arguments {
        arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    /// A call has the arguments of the equal command line, with all defaults, and records this command line.
    #[test]
    fn a_call_is_its_command_line() {
        let (trace, folder, list) =
            (("trace", text("t.csv")), ("folder", text("r")), |name| Argument::List(vec![text(name)]));
        let replay = [trace.clone(), ("machines", text("1x1c1g")), ("policies", list("drf")), ("output", text("r"))];
        let options = [
            ("placement", text("first-fit")),
            ("devices", text("gpu")),
            ("audit", Argument::Truth(true)),
            ("tasks", Argument::Truth(false)),
            ("load", Argument::Number(0.5)),
            ("thin", Argument::Number(0.25)),
            ("seed", Argument::Whole(3)),
            ("from_", text("swf")),
            ("save_every", text("5s")),
        ];
        let solved =
            [("whole_tasks", Argument::Truth(true)), ("ties", text("lowest-id")), ("variant", text("max-min-level"))];
        let cases: [(&str, &[(&str, Argument)], &[(&str, Argument)]); 14] = [
            ("run", &[("plans", list("p.toml")), ("set", list("seeds=2"))], &[("jobs", Argument::Whole(2))]),
            ("replay", &replay, &[]),
            ("replay", &replay, &options),
            ("solve", &[("instance", text("i.toml"))], &solved),
            ("check", &[("policies", list("drf"))], &[("domain", text("zeros"))]),
            ("decide", &[("state", text("s.toml")), ("policies", list("drf"))], &[]),
            ("court", &[("policies", list("drf"))], &[("search", Argument::Truth(true)), ("size", Argument::Whole(3))]),
            ("compare", &[("before", text("a")), ("after", text("b"))], &[("all", Argument::Truth(true))]),
            ("plot", std::slice::from_ref(&folder), &[("width", Argument::Whole(300))]),
            ("report", std::slice::from_ref(&folder), &[]),
            ("schema", &[("tables", list("users"))], &[]),
            ("policies", &[("name", text("drf"))], &[]),
            (
                "why",
                &[("source", text("r")), ("jobs", list("j"))],
                &[("without", text("rule")), ("shake", Argument::Number(2.5))],
            ),
            ("trace_stats", &[trace], &[("machines", text("1x1c1g"))]),
        ];
        for (verb, given, options) in cases {
            let call =
                Call::new(verb, named(given), named(options)).unwrap_or_else(|wrong| panic!("{verb}: {wrong:?}"));
            let words = shell::words(&call.line).expect("words").into_iter().map(OsString::from);
            let parsed = Call::parse(words).unwrap_or_else(|wrong| panic!("{verb}: {wrong}"));
            assert_eq!(format!("{:?}", call.verb), format!("{:?}", parsed.verb), "{verb}");
        }
    }

    #[test]
    fn messages_have_keywords_instead_of_options() {
        let call = Call::new(
            "replay",
            named(&[("trace", text("t")), ("machines", text("1x1c")), ("policies", text("drf"))]),
            Vec::new(),
        );
        let spelling = call.expect("a call").spelling;
        assert_eq!(
            spelling.apply("--on-blocked: --policy and --from, not --no-option or a--load"),
            "on_blocked: policies and from_, not --no-option or a--load"
        );
    }
}
