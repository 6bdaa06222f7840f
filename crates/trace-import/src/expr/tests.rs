//! Tests of expressions.

use std::collections::BTreeMap;

use super::*;

struct LogRow(BTreeMap<&'static str, &'static str>);

impl<'a> NameValues<'a, WrittenName> for LogRow {
    fn value(&self, name: &WrittenName) -> Valued<Value<'a>> {
        let text = self.0.get(name.name.as_str()).copied().unwrap_or_default();
        Ok(if text.is_empty() { Value::Missing } else { Value::text(text) })
    }
}

fn row() -> LogRow {
    LogRow(
        [
            ("a", "6"),
            ("b", "0.07"),
            ("id", "9223372036854775807"),
            ("state", "Pass"),
            ("none", ""),
            ("start", "2017-10-07 01:00:00"),
            ("end", "2017-10-07 01:00:30.5"),
            ("two words", "5"),
            ("a`b", "8"),
            ("name", "J3_1_2"),
            ("tres", "billing=4,cpu=4,gres/gpu:a100=8,gres/gpu=8,mem=16G"),
        ]
        .into(),
    )
}

fn compute(text: &str) -> String {
    let tree = parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    match evaluate(&tree, &row(), &Clock::default()) {
        Ok(Value::Missing) => "-".to_owned(),
        Ok(value) => value.into_text().expect("a value").into_owned(),
        Err(problem) => format!("error: {problem}"),
    }
}

#[test]
fn expressions_have_the_usual_precedence() {
    for (text, value) in [
        ("a + 2 * 3 - 1", "11"),
        ("(a + 2) * 3", "24"),
        ("-a / 4", "-1.5"),
        ("b * 100", "7"),
        ("id", "9223372036854775807"),
        ("id == 9223372036854775807", "true"),
        ("id == 9223372036854775806", "false"),
        ("id - 9223372036854775806", "1"),
        ("a == '6.0'", "true"),
        ("state = 'Pass' and not a < 6", "true"),
        ("state != 'Pass' or a >= 6", "true"),
        ("if a > 5 then 'large' else 'small'", "large"),
        ("if none > 5 then 1 else 2", "-"),
        ("1 + (if a == 6 then 1 else 2)", "2"),
        ("none + 1", "-"),
        ("none == 'x'", "-"),
        ("none == 'x' and false", "false"),
        ("none == 'x' or true", "true"),
        ("end - start", "30.5"),
        ("start < '2017-10-08'", "true"),
        ("`two words` * 2", "10"),
        ("`a``b` + 1", "9"),
        ("'it''s'", "it's"),
        ("concat('x', '''')", "x'"),
        ("missing", "-"),
    ] {
        assert_eq!(compute(text), value, "{text}");
    }
}

#[test]
fn functions_compute_texts_and_numbers() {
    for (text, value) in [
        ("coalesce(none, a)", "6"),
        ("known(none)", "false"),
        ("min(a, 3, 8)", "3"),
        ("max(a, none)", "-"),
        ("round(2.5) + floor(2.5) + ceiling(2.5)", "8"),
        ("number('x')", "-"),
        ("time('x')", "-"),
        ("time('02/01/1970', '%d/%m/%Y')", "86400"),
        ("time('1970-01-01 01:00', '%Y-%m-%d %H:%M', 'Europe/Berlin')", "0"),
        ("find(name, '^[A-Z]([0-9]+)')", "3"),
        ("replace(find(name, '^[A-Z][0-9]+_([0-9_]+)$'), '_', ';')", "1;2"),
        ("find(name, 'x')", "-"),
        ("matches(name, '^J')", "true"),
        ("part(name, '_', 2)", "1"),
        ("part(name, '_', -1)", "2"),
        ("part(name, '_', 9)", "-"),
        ("pair(tres, 'gres/gpu')", "8"),
        ("pair(tres, 'x')", "-"),
        ("bytes(pair(tres, 'mem'))", "17179869184"),
        ("bytes('2000MB')", "2097152000"),
        ("quantity('100m') * 10", "1"),
        ("quantity('1Ki') + quantity('1k')", "2024"),
        ("quantity('64e9')", "64000000000"),
        ("quantity('2E')", "2000000000000000000"),
        ("quantity('1x')", "-"),
        ("concat('r', a, state)", "r6Pass"),
        ("concat('r', none)", "-"),
        ("contains(state, 'as') and starts_with(state, 'P') and ends_with(state, 's')", "true"),
        ("length(lower(state))", "4"),
    ] {
        assert_eq!(compute(text), value, "{text}");
    }
}

#[test]
fn values_of_another_kind_are_problems() {
    assert_eq!(compute("state + 1"), "error: 'Pass' is neither a number nor a time in the form ISO 8601");
    assert_eq!(compute("a / 0"), "error: 6 is divided by 0");
    assert_eq!(compute("not state"), "error: 'Pass' is not true or false");
    assert_eq!(compute("if a then 1 else 2"), "error: '6' is not true or false");
    assert_eq!(compute("part(name, '_', 0)"), "error: the number of a part must be a whole number other than 0");
}

#[test]
fn errors_have_a_position() {
    for (text, place, problem) in [
        ("a +", 4, "expected a column"),
        ("a b", 3, "expected an operator or the end, not 'b'"),
        ("(a", 3, "expected ')'"),
        ("a ? b", 3, "'?' is no operator"),
        ("'x", 1, "the quote ' is not closed"),
        ("1x", 1, "'1x' is not a number"),
        ("maximum(a)", 1, "'maximum' is no function; expected"),
        ("mx(a)", 1, "did you mean 'max'?"),
        ("known()", 1, "known has 0 arguments; expected known(value)"),
        ("find(a, '(')", 1, "the pattern '(' is not valid"),
        ("find(a, b)", 1, "must be a text in quotes"),
        ("if a then b", 12, "expected 'else'"),
    ] {
        let (at, found) = parse(text).expect_err(text);
        assert!(at == place && found.contains(problem), "{text}: {at} {found}");
    }
    assert!(parse(&"(".repeat(3000)).is_err() && parse(&"not ".repeat(900)).is_err());
    assert!(parse(&format!("1{}", "+1".repeat(900))).is_err() && parse(&"a".repeat(5000)).is_err());
}
