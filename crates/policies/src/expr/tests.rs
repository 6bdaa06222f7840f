//! Compares expressions with their definition in fractions, and checks the messages for invalid expressions.

use super::parse::{Fold, Index};
use super::*;
use plimsoll_base::units::{Dim, MAX_DIMS, Unit};
use plimsoll_fair::Exact as Fraction;
use plimsoll_sim::books::{Partition, WEIGHT_ONE, Weights};
use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A cluster with two resources, and users with weights, allocations and pending demand.
struct Scene {
    dims: Vec<Dim>,
    capacity: Resources,
    weights: Weights,
    books: Books,
}

impl Scene {
    fn new(capacity: [u64; 2], users: &[(u64, [u64; 2], u32)]) -> Scene {
        let dims = ["cpu", "memory"].map(|name| Dim { name: name.into(), unit: Unit::Milli }).to_vec();
        let names: Vec<String> = (0..users.len()).map(|at| at.to_string()).collect();
        let weights = names.iter().zip(users).map(|(name, (weight, ..))| (name.as_str(), *weight));
        let weights = Weights::from_scalars(weights);
        let mut all = Resources::ZERO;
        all.0[..2].copy_from_slice(&capacity);
        let mut books = Books::new(2, all, all, true, weights.clone());
        for (at, (_, held, waiting)) in users.iter().enumerate() {
            books.open(&names[at]);
            let user = UserId(at as u32);
            books.queue(user, waiting + 1, held);
            books.launch(user, held, held);
        }
        Scene { dims, capacity: all, weights, books }
    }

    fn setup(&self) -> Setup<'_> {
        Setup { dims: &self.dims, capacity: self.capacity, machines: 3, weights: &self.weights, labels: None }
    }

    fn policy(&self, text: &str) -> Result<Expression> {
        let parts = parse::parse(text).map_err(|expected| Error::policy("expr", text, expected))?;
        Expression::new(text, parts.rank.as_ref(), parts.admit.as_ref(), &self.setup())
    }
}

fn queue(user: usize) -> Queue {
    let (release, partition) = (Time(7_500_000), Partition::DEFAULT);
    Queue { user: UserId(user as u32), partition, release, place: 3, priority: 2, key: None }
}

/// Evaluates an expression by its definition, in fractions, value by value; `None` for a division by zero.
struct Obvious<'a> {
    scene: &'a Scene,
    user: usize,
}

impl Obvious<'_> {
    fn value(&self, ast: &Ast, each: usize) -> Option<Fraction> {
        Some(match ast {
            Ast::Number(numerator, denominator) => Fraction::ratio(*numerator as i64, *denominator as i64),
            Ast::Value(name, index, _) => {
                let d = match index {
                    Index::One => None,
                    Index::Each => Some(each),
                    Index::Named(resource) => self.scene.dims.iter().position(|dim| dim.name == *resource),
                };
                self.leaf(name.var, d)
            }
            Ast::Sum(a, b) => &self.value(a, each)? + &self.value(b, each)?,
            Ast::Negated(a) => &Fraction::ZERO - &self.value(a, each)?,
            Ast::Product(a, b) => &self.value(a, each)? * &self.value(b, each)?,
            Ast::Quotient(a, b, _) => {
                let divisor = self.value(b, each)?;
                if divisor == Fraction::ZERO {
                    return None;
                }
                &self.value(a, each)? / &divisor
            }
            Ast::Power(a, power) => {
                let value = self.value(a, each)?;
                (1..*power).fold(value.clone(), |product, _| &product * &value)
            }
            Ast::Fold(fold, of) => {
                folded(*fold, of.iter().map(|one| self.value(one, each)).collect::<Option<Vec<_>>>()?)
            }
            Ast::Over(fold, of) => {
                let there = (0..2).filter(|d| self.scene.capacity.0[*d] > 0);
                folded(*fold, there.map(|d| self.value(of, d)).collect::<Option<Vec<_>>>()?)
            }
            Ast::Floor(a) => self.value(a, each)?.floor(),
            Ast::Function(..) => unreachable!("not in these cases"),
            Ast::If(test, yes, no) => self.value(if self.holds(test, each)? { yes } else { no }, each)?,
        })
    }

    fn leaf(&self, var: Var, d: Option<usize>) -> Fraction {
        let (books, user) = (&self.scene.books, UserId(self.user as u32));
        let parts = |value: u64, of: u64| Fraction::ratio(value as i64, of as i64);
        let weight = self.scene.weights.each(books.weight_class(user))[d.unwrap_or(0)];
        let amount = |amounts: &[u64]| parts(amounts[d.expect("a resource")], 1000);
        match var {
            Var::Held => amount(books.allocated(user)),
            Var::Capacity => amount(&self.scene.capacity.0),
            Var::Weight => parts(weight, WEIGHT_ONE),
            Var::Waiting => parts(books.waiting(user), 1),
            Var::Release => parts(7_500_000, 1_000_000),
            other => unreachable!("not in these cases: {other:?}"),
        }
    }

    fn holds(&self, test: &Test, each: usize) -> Option<bool> {
        Some(match test {
            Test::Less(a, b) => self.value(a, each)? < self.value(b, each)?,
            Test::Equal(a, b) => self.value(a, each)? == self.value(b, each)?,
            Test::Both(a, b) => self.holds(a, each)? && self.holds(b, each)?,
            Test::Not(a) => !self.holds(a, each)?,
        })
    }
}

fn folded(fold: Fold, of: Vec<Fraction>) -> Fraction {
    match fold {
        Fold::Max => of.into_iter().max().expect("a value"),
        Fold::Min => of.into_iter().min().expect("a value"),
        Fold::Sum => of.into_iter().fold(Fraction::ZERO, |sum, one| &sum + &one),
    }
}

/// Returns a random number as text; `divides` allows divisors that change.
fn number(rng: &mut ChaCha8Rng, depth: u32, each: bool, divides: bool) -> String {
    let r = if each && rng.random_bool(0.7) { "r" } else { ["cpu", "memory"][rng.random_range(0..2)] };
    if depth == 0 {
        return match rng.random_range(0..6) {
            0 => rng.random_range(0..5).to_string(),
            1 => ["0.5", "1.25", "3"][rng.random_range(0..3)].to_owned(),
            2 => "waiting".to_owned(),
            3 => "release".to_owned(),
            _ => format!("held[{r}]"),
        };
    }
    let mut part = || number(rng, depth - 1, each, divides);
    let (a, b) = (part(), part());
    match rng.random_range(0..12) {
        0 => format!("({a} + {b})"),
        1 => format!("({a} - {b})"),
        2 => format!("{a} * ({b})"),
        3 => format!("({a}) / (capacity[{r}] * weight[{r}])"),
        4 if divides => format!("({a}) / (1 + waiting)"),
        4 => format!("({a}) / weight"),
        5 => format!("max({a}, {b})"),
        6 => format!("min({a}, {b})"),
        7 => format!("sum({})", number(rng, depth - 1, true, divides)),
        8 => format!("max({})", number(rng, depth - 1, true, divides)),
        9 => format!("floor({a})"),
        10 => format!("({a}) ** 2"),
        _ => format!("if({a} < {b} or not ({a} >= 2 and {b} != 1), {b}, {a})"),
    }
}

fn scene(rng: &mut ChaCha8Rng) -> Scene {
    let mut upto = |most: u64| rng.random_range(1..=most);
    let capacity = [upto(20) * 1000, upto(1 << 14)];
    let users: Vec<(u64, [u64; 2], u32)> = (0..6)
        .map(|_| {
            (upto(3) * 500_000, [upto(capacity[0].div_ceil(6)), upto(capacity[1].div_ceil(6))], upto(4) as u32 - 1)
        })
        .collect();
    Scene::new(capacity, &users)
}

#[test]
fn exact_expressions_order_users_as_fractions_do() {
    let mut rng = ChaCha8Rng::seed_from_u64(22);
    let (mut exact, mut wide, mut ties) = (0, 0, 0);
    for case in 0..2000 {
        let scene = scene(&mut rng);
        let text = format!("({})", number(&mut rng, case % 4, false, false));
        let ast = parse::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}")).rank.expect("a rank");
        let policy = scene.policy(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        if matches!(policy.rank, Some(Formula::Rounded(_))) {
            continue;
        }
        exact += 1;
        wide += u32::from(matches!(policy.rank, Some(Formula::Wide(..))));
        let wanted: Vec<Fraction> =
            (0..6).map(|user| Obvious { scene: &scene, user }.value(&ast, 0).expect("a constant divides")).collect();
        let ranks: Vec<Rank> = (0..6).map(|user| policy.rank(&queue(user), &scene.books)).collect();
        for (a, b) in (0..6).flat_map(|a| (0..a).map(move |b| (a, b))) {
            assert_eq!(ranks[a].cmp(&ranks[b]), wanted[a].cmp(&wanted[b]), "{text}: {} and {}", wanted[a], wanted[b]);
            ties += usize::from(wanted[a] == wanted[b]);
        }
    }
    assert!(exact > 1500 && wide > 50 && ties > 500, "{exact} exact, {wide} wide, {ties} ties");
}

#[test]
fn rounded_expressions_order_users_that_are_far_enough_apart_as_fractions_do() {
    let mut rng = ChaCha8Rng::seed_from_u64(23);
    let (mut rounded, mut compared) = (0, 0);
    let apart = Fraction::ratio(1, 1 << 30);
    for case in 0..1500 {
        let scene = scene(&mut rng);
        // Skips conditions and whole parts, because a tiny difference of their operands may change the result by much.
        let text = format!("({})", number(&mut rng, 1 + case % 3, false, true));
        let ast = parse::parse(&text).expect("a number").rank.expect("a rank");
        if text.contains("if(") || text.contains("floor(") {
            continue;
        }
        let policy = scene.policy(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let Some(Formula::Rounded(_)) = policy.rank else { continue };
        rounded += 1;
        let values: Vec<Option<Fraction>> = (0..6).map(|user| Obvious { scene: &scene, user }.value(&ast, 0)).collect();
        let ranks: Vec<Rank> = (0..6).map(|user| policy.rank(&queue(user), &scene.books)).collect();
        for (a, b) in (0..6).flat_map(|a| (0..6).map(move |b| (a, b))) {
            if let (Some(one), Some(other)) = (&values[a], &values[b])
                && &(one + &apart) < other
            {
                assert!(ranks[a] < ranks[b], "{text}: {one} and {other}");
                compared += 1;
            }
        }
    }
    assert!(rounded > 150 && compared > 1000, "{rounded} rounded, {compared} compared");
}

#[test]
fn division_by_nothing_is_as_it_is_said() {
    let scene = Scene::new(
        [10_000, 10_000],
        &[(WEIGHT_ONE, [1000, 0], 3), (WEIGHT_ONE, [0, 0], 0), (WEIGHT_ONE, [2000, 1000], 1)],
    );
    let rank = |text: &str, user: usize| scene.policy(text).expect("a policy").rank(&queue(user), &scene.books);
    let order = |text: &str| {
        let mut users = [0, 1, 2];
        users.sort_by_key(|user| rank(text, *user));
        users
    };
    assert_eq!(order("(held[cpu] / waiting)"), [1, 0, 2], "0/0 is 0, 1/3, 2/1");
    assert_eq!(order("(held[cpu] / held[memory])"), [1, 2, 0], "0/0, 2/1, 1/0");
    assert_eq!(order("(-held[cpu] / held[memory])"), [0, 2, 1], "-1/0 is least");
    let too_much = "(held[cpu] / (waiting + 1) * 1000000 ** 8 * 1000)";
    assert_eq!(rank(too_much, 0), rank(too_much, 2), "all values above 2^124 are equal");
}

#[test]
fn a_condition_lets_tasks_start() {
    let scene = Scene::new([10_000, 10_000], &[(WEIGHT_ONE, [2000, 1000], 2), (2 * WEIGHT_ONE, [2000, 4000], 2)]);
    let admitted = |text: &str, user: usize| {
        let policy = scene.policy(text).unwrap_or_else(|error| panic!("{error}"));
        let ask = Ask { footprint: &[3000, 1000], demand: &[3000, 1000], tasks: 2 };
        policy.admit(&queue(user), &ask, &scene.books) == Verdict::Yes
    };
    for (condition, wanted) in [
        ("held[cpu] + tasks * demand[cpu] <= 8", [true, true]),
        ("held[cpu] + tasks * demand[cpu] < 8", [false, false]),
        ("held[memory] <= 3 * weight", [true, true]),
        ("held[memory] < 2 * weight", [true, false]),
        ("total_held[memory] == 5 and total_running == 2 and backlogged == active", [true, true]),
        ("running / waiting < 0.5", [false, false]),
        ("running / waiting <= 0.5", [true, true]),
        ("not (held[memory] > 2)", [true, false]),
    ] {
        let text = format!("(release; admit {condition})");
        assert_eq!([0, 1].map(|user| admitted(&text, user)), wanted, "{text}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let scene = Scene::new([10_000, 10_000], &[]);
    let mut vector = Scene::new([10_000, 10_000], &[]);
    let path = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(path.path(), "user,cpu\na,2\n").expect("writable");
    let file = plimsoll_base::pinned::Pinned::new(path.path()).expect("a file");
    vector.weights = Weights::read(&file, &vector.dims).expect("weights");
    let bad = [
        ("", "in parentheses"),
        ("max(held[r])", "in parentheses"),
        ("()", "a value instead of the end at character 1"),
        ("(held[r])", "a resource by name in the value at character 1"),
        ("(max(held[r], 1))", "a resource by name in the value at character 5"),
        ("(held)", "held[cpu]"),
        ("(running[cpu])", "it is one number"),
        ("(hold[cpu])", "instead of 'hold' at character 1 (did you mean 'held'?)"),
        ("(held[cpi])", "did you mean 'cpu'"),
        ("(max(held[r]) + )", "a value instead of the end at character 16"),
        ("(max(held[r]) running)", "an operator or the end instead of 'running' at character 14"),
        ("(mix(held[r]))", "did you mean 'max'"),
        ("(1 / 0)", "a divisor other than 0 at character 3"),
        ("(running / waiting / 0)", "a divisor other than 0 at character 19"),
        ("(1 < 2)", "a number, not a condition, at character 1"),
        ("(1; admit 2)", "a condition such as running < 10, not a number, at character 10"),
        ("(1; admit now < 2)", "instead of 'now'"),
        ("(1; admit 1 < 2; admit 2 < 3)", "each once, after ';' at character 17"),
        ("(1; order held[cpu])", "in order there are capacity, now, priority, submit"),
        ("(1; sort 1)", "after ';' at character 4"),
        ("(2 ** 9)", "from 1 to 8"),
        ("(1.2.3)", "instead of '1.2.3'"),
        ("(1234567890123456789)", "at most 18 digits"),
        ("(held[cpu] & 1)", "no '&' at character 11"),
        ("(if(1 < 2, 1))", "','"),
        ("(running / (1 + waiting) / (2 - 2))", "a divisor other than 0 at character 25"),
        ("(1; order logs(2))", "log, log2, log10, sqrt instead of 'logs(' at character 10 (did you mean 'log'?)"),
        ("(key)", "'order VALUE' for the value 'key'"),
        ("(admit running < 2)", "'order VALUE' besides 'admit'"),
        ("(order age; order age)", "each once, after ';' at character 12"),
    ];
    for (text, wanted) in bad {
        let error = text_of(&scene, text);
        assert!(error.contains(wanted), "{text}: {error}");
    }
    assert!(text_of(&vector, "(held[cpu] / weight)").contains("weight[r] instead of 'weight' at character 13"));
    assert!(vector.policy("(max(held[r] / weight[r]))").is_ok());
    let deep = format!("({}1{})", "(".repeat(100), ")".repeat(100));
    assert!(text_of(&scene, &deep).contains("at most 64 nested parentheses"));
    assert!(text_of(&scene, &format!("({}1)", "-".repeat(100))).contains("at most 64"));
    let broad = format!("({}held[r]{})", "sum(".repeat(12), ")".repeat(12));
    assert!(text_of(&scene, &broad).contains("at most 2000 parts"));
    assert!(text_of(&scene, &format!("({})", "1+".repeat(3000) + "1")).contains("at most 4000 characters"));
    for chain in ["+1", "-1", "*1", "/3"] {
        assert!(text_of(&scene, &format!("(running{})", chain.repeat(1200))).contains("at most 300 operators"));
    }
    assert!(text_of(&scene, &format!("(1; admit 1<2{})", " and 1<2".repeat(400))).contains("at most 300 operators"));
}

fn text_of(scene: &Scene, text: &str) -> String {
    let spelled = crate::WITHOUT_SCHEDULERS.parse(&format!("expr:{text}"));
    let made = spelled.and_then(|_| scene.policy(text));
    made.err().unwrap_or_else(|| panic!("{text} is accepted")).to_string()
}

#[test]
fn a_resource_that_the_cluster_has_none_of_does_not_count() {
    let scene = Scene::new([10_000, 0], &[(WEIGHT_ONE, [2000, 0], 1), (WEIGHT_ONE, [1000, 0], 1)]);
    let policy = scene.policy("(max(held[r] / capacity[r]))").expect("a policy");
    assert!(policy.rank(&queue(1), &scene.books) < policy.rank(&queue(0), &scene.books));
    assert!(text_of(&scene, "(held[memory] / capacity[memory])").contains("a divisor other than 0"));
    assert_eq!(MAX_DIMS, 8);
}
