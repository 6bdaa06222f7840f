//! Tests of reading sweeps and of the resulting cells.

use super::*;

fn read(text: &str) -> Result<Sweep> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("plan.toml");
    std::fs::write(&path, text).expect("a temporary file is writable");
    let (sources, mut table) = Sources::read(plimsoll_base::document::Document::File(path).read()?)?;
    table.take_entry(SWEEP).map_or(Ok(Sweep::default()), |sweep| Sweep::read(&sweep, &sources))
}

fn cells(text: &str) -> Vec<String> {
    let shown = |cell: SweepCell| cell.values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    read(text).expect(text).cells().into_iter().map(|cell| shown(cell).join(" ")).collect()
}

#[test]
fn lists_ranges_zips_and_variants_multiply() {
    assert_eq!(cells(""), [""]);
    let text = "[sweep]\n\"w.load\" = [0.5, 0.7]\nc.machines = [\"a\", \"b\"]\n";
    assert_eq!(
        cells(text),
        [
            "w.load=0.5 c.machines=\"a\"",
            "w.load=0.5 c.machines=\"b\"",
            "w.load=0.7 c.machines=\"a\"",
            "w.load=0.7 c.machines=\"b\""
        ],
        "in the order of the plan"
    );
    assert_eq!(cells("[sweep]\nx = { from = 0.1, to = 0.3, step = 0.1 }\n"), ["x=0.1", "x=0.2", "x=0.3"]);
    assert_eq!(cells("[sweep]\nx.y = { from = 2, to = 7, step = 2 }\n"), ["x.y=2", "x.y=4", "x.y=6"]);
    let text = "[[sweep.zip]]\na = [1, 2]\nb = [3, 4]\n[sweep.variant.tall]\nh = 9\n[sweep.variant.small]\nh = 1\n";
    assert_eq!(
        cells(text),
        [
            "a=1 b=3 variant=\"tall\"",
            "a=1 b=3 variant=\"small\"",
            "a=2 b=4 variant=\"tall\"",
            "a=2 b=4 variant=\"small\""
        ]
    );
    let text = "[sweep]\na = [1, 2]\nb = [3, 4]\n[[sweep.exclude]]\na = 1.0\nb = 4\n";
    assert_eq!(cells(text), ["a=1 b=3", "a=2 b=3", "a=2 b=4"]);
}

#[test]
fn wrong_sweeps_are_shown_where_they_stand() {
    let wrong = [
        ("[sweep]\nload = 0.5\n", "line 2, column 8", "not a list"),
        ("[sweep]\nload = []\n", "line 2, column 1", "without values"),
        ("[sweep]\nload = [1, 2, 1]\n", "line 2, column 15", "twice"),
        ("[sweep]\nseeds = [1, 2]\n", "line 2, column 1", "cannot be swept"),
        ("[sweep]\n\"a.b\" = [1]\na.b = [2]\n", "column", "swept twice"),
        ("[[sweep.zip]]\na = [1, 2]\nb = [3]\n", "line 3, column 5", "the same length"),
        ("[sweep]\na = { from = 1, to = 0, step = 1 }\n", "line 2, column 5", "the range has no values"),
        ("[sweep]\na = { from = 1, to = 2, stop = 1 }\n", "line 2", "'stop' is unknown"),
        ("[sweep]\na = [1]\n[[sweep.exclude]]\nb = 1\n", "line 3", "not an axis"),
        ("[sweep]\nzip = 3\n", "line 2, column 7", "[[sweep.zip]]"),
    ];
    for (text, place, says) in wrong {
        let message = read(text).expect_err(text).to_string();
        assert!(message.contains(place) && message.contains(says), "{text}: {message}");
    }
}

#[test]
fn set_narrows_an_axis() {
    let set = |value: &str| crate::changes::parse_change(&format!("key={value}"), "").expect("a value").1;
    let mut sweep = read("[sweep]\n\"a.b\" = [1, 2]\n[[sweep.zip]]\nc = [1]\nd = [2]\n").expect("a sweep");
    assert!(sweep.replace("a.b", &set("7")).expect("an axis"));
    assert_eq!(sweep.cells().len(), 1);
    assert!(sweep.replace("a.b", &set("[1, 2, 3]")).expect("an axis"));
    assert_eq!(sweep.cells().len(), 3);
    assert!(!sweep.replace("e", &set("7")).expect("no axis"));
    assert!(sweep.replace("c", &set("7")).is_err());
}

#[test]
fn columns_have_one_type() {
    let sweep = read("[sweep]\na = [1, 2]\nb = [1, 2.5]\nc = [1, \"x\"]\nd = [[1, 2], [3]]\n").expect("a sweep");
    let kinds = sweep.kinds();
    assert_eq!(constant(kinds[&"a".to_owned()], &Value::Integer(1)), Constant::Int(1));
    assert_eq!(constant(kinds[&"b".to_owned()], &Value::Integer(1)), Constant::Float(1.0));
    assert_eq!(constant(kinds[&"c".to_owned()], &Value::Integer(1)), Constant::Text("1".to_owned()));
    assert_eq!(constant(kinds[&"c".to_owned()], &Value::String("x".to_owned())), Constant::Text("x".to_owned()));
    assert_eq!(constant(kinds[&"d".to_owned()], &Value::Array(vec![3.into()])), Constant::Text("[3]".to_owned()));
    assert_eq!(
        (column("workload.class[0].weight"), column("a")),
        ("workload_class_0_weight".to_owned(), "a".to_owned())
    );
}
