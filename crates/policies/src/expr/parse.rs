//! Parses the text of an expression: `RANK; admit CONDITION; order KEY`. Each part may be absent, but not both RANK and `order`.
//!
//! `or`, `and` and `not` have the lowest precedence, then comparisons, then `+` and `-`, then `*` and `/`, then `**`. `max`, `min` and
//! `sum` of one argument iterate over the resources of the cluster, with the index `r`.
//!
//! The length, the depth and the number of operators are limited, which bounds the recursion. Errors state the expected form and the
//! position.

use super::functions::Function;
use super::lex::{CharPosition, Result, Token, tokens};
use super::names::{self, Clause, Name, Of, Var};
use plimsoll_base::error::nearest;

/// The function that combines several values into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    Max,
    Min,
    Sum,
}

/// The resource index of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// No index.
    One,
    /// The current resource of an enclosing `max`, `min` or `sum`.
    Each,
    /// The resource with this name.
    Named(String),
}

#[derive(Clone, Debug)]
pub enum Ast {
    /// A numerator and a denominator.
    Number(u64, u64),
    Value(&'static Name, Index, CharPosition),
    Sum(Box<Ast>, Box<Ast>),
    Negated(Box<Ast>),
    Product(Box<Ast>, Box<Ast>),
    Quotient(Box<Ast>, Box<Ast>, CharPosition),
    Power(Box<Ast>, u32),
    Fold(Fold, Vec<Ast>),
    Over(Fold, Box<Ast>),
    Floor(Box<Ast>),
    Function(Function, Box<Ast>),
    If(Box<Test>, Box<Ast>, Box<Ast>),
}

#[derive(Clone, Debug)]
pub enum Test {
    /// The first is less than the second.
    Less(Ast, Ast),
    Equal(Ast, Ast),
    Both(Box<Test>, Box<Test>),
    Not(Box<Test>),
}

impl Ast {
    /// Calls `visit` for each variable in the expression.
    pub fn names(&self, visit: &mut dyn FnMut(Var)) {
        match self {
            Ast::Number(..) => {}
            Ast::Value(name, ..) => visit(name.var),
            Ast::Sum(a, b) | Ast::Product(a, b) | Ast::Quotient(a, b, _) => {
                [a, b].iter().for_each(|one| one.names(visit))
            }
            Ast::Negated(a) | Ast::Power(a, _) | Ast::Floor(a) | Ast::Function(_, a) | Ast::Over(_, a) => {
                a.names(visit);
            }
            Ast::Fold(_, of) => of.iter().for_each(|one| one.names(visit)),
            Ast::If(test, yes, no) => {
                test.names(visit);
                [yes, no].iter().for_each(|one| one.names(visit));
            }
        }
    }

    /// Returns the position of the first value that needs an index of the resource from outside.
    fn each(&self) -> Option<CharPosition> {
        match self {
            Ast::Number(..) | Ast::Over(..) => None,
            Ast::Value(_, index, place) => (*index == Index::Each).then_some(*place),
            Ast::Sum(a, b) | Ast::Product(a, b) | Ast::Quotient(a, b, _) => a.each().or_else(|| b.each()),
            Ast::Negated(a) | Ast::Power(a, _) | Ast::Floor(a) | Ast::Function(_, a) => a.each(),
            Ast::Fold(_, of) => of.iter().find_map(Ast::each),
            Ast::If(test, yes, no) => test.each().or_else(|| yes.each()).or_else(|| no.each()),
        }
    }
}

impl Test {
    /// Calls `visit` for each variable in the condition.
    pub fn names(&self, visit: &mut dyn FnMut(Var)) {
        match self {
            Test::Less(a, b) | Test::Equal(a, b) => [a, b].iter().for_each(|one| one.names(visit)),
            Test::Both(a, b) => [a, b].iter().for_each(|one| one.names(visit)),
            Test::Not(a) => a.names(visit),
        }
    }

    fn each(&self) -> Option<CharPosition> {
        match self {
            Test::Less(a, b) | Test::Equal(a, b) => a.each().or_else(|| b.each()),
            Test::Both(a, b) => a.each().or_else(|| b.each()),
            Test::Not(a) => a.each(),
        }
    }
}

/// The parts of an expression.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The rank of a user; `None` for one queue of all users in the order of `order`.
    pub rank: Option<Ast>,
    pub admit: Option<Test>,
    pub order: Option<Ast>,
}

/// The maximum length of a text, and the maximum depth.
const LONGEST: usize = 4000;
const DEEPEST: usize = 64;

/// The maximum number of operators: a chain of operators is a tree as deep as it is long.
const OPERATORS: usize = 300;

/// Parses `(RANK; admit CONDITION; order KEY)`. Errors: the expected form and the position.
pub fn parse(text: &str) -> Result<Parts> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let inner = inner.ok_or("an expression in parentheses, such as expr:(max(held[r] / (capacity[r] * weight[r])))")?;
    if inner.len() > LONGEST {
        return Err(format!("an expression of at most {LONGEST} characters"));
    }
    let end = CharPosition(inner.chars().count() + 1);
    let mut parser =
        Parser { tokens: tokens(inner)?, end, at: 0, clause: Clause::Rank, depth: 0, operators: 0, each: false };
    if parser.takes_word(Clause::Rank.word()) && parser.peek().is_none() {
        return Err("a value after 'rank'".to_owned());
    }
    let begins = [Clause::Admit, Clause::Order].iter().any(|clause| parser.sees_word(clause.word()));
    let rank = if begins { None } else { Some(parser.number()?) };
    let (mut admit, mut order) = (None, None);
    let mut more = begins || parser.takes(";");
    while more {
        let place = parser.place();
        if admit.is_none() && parser.takes_word(Clause::Admit.word()) {
            parser.clause = Clause::Admit;
            admit = Some(parser.test()?);
        } else if order.is_none() && parser.takes_word(Clause::Order.word()) {
            parser.clause = Clause::Order;
            order = Some(parser.number()?);
        } else {
            return Err(format!("'admit CONDITION' or 'order VALUE', each once, after ';' at character {}", place.0));
        }
        more = parser.takes(";");
    }
    if parser.peek().is_some() {
        return Err(parser.expected("an operator or the end"));
    }
    let mut named = Vec::new();
    rank.iter().for_each(|rank| rank.names(&mut |var| named.push(var)));
    if order.is_none() && (rank.is_none() || named.contains(&Var::Key)) {
        return Err(format!(
            "'order VALUE' {}",
            if rank.is_none() { "besides 'admit'" } else { "for the value 'key'" }
        ));
    }
    Ok(Parts { rank, admit, order })
}

/// A parsed number or condition.
enum Either {
    Number(Ast),
    Test(Test),
}

struct Parser {
    tokens: Vec<(Token, CharPosition)>,
    end: CharPosition,
    at: usize,
    clause: Clause,
    depth: usize,
    operators: usize,
    /// Whether the position is inside a `max`, `min` or `sum` over the resources.
    each: bool,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn place(&self) -> CharPosition {
        self.tokens.get(self.at).map_or(self.end, |(_, place)| *place)
    }

    fn expected(&self, what: &str) -> String {
        let there = self.peek().map_or("the end".to_owned(), |token| format!("'{token}'"));
        format!("{what} instead of {there} at character {}", self.place().0)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Sign(other)) if *other == sign);
        self.at += usize::from(is);
        is
    }

    fn sees_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(other)) if other == word)
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is = self.sees_word(word);
        self.at += usize::from(is);
        is
    }

    fn needs(&mut self, sign: &str) -> Result<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.expected(&format!("'{sign}'"))) }
    }

    /// Counts one more operator. Errors: there are too many.
    fn operator(&mut self) -> Result<()> {
        self.operators += 1;
        match self.operators > OPERATORS {
            true => Err(format!("at most {OPERATORS} operators; the next one is before character {}", self.place().0)),
            false => Ok(()),
        }
    }

    fn number(&mut self) -> Result<Ast> {
        let place = self.place();
        number_of(self.either()?, place)
    }

    fn test(&mut self) -> Result<Test> {
        let place = self.place();
        test_of(self.either()?, place)
    }

    /// Parses `TEST or TEST`.
    fn either(&mut self) -> Result<Either> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("at most {DEEPEST} nested parentheses, at character {}", self.place().0));
        }
        let place = self.place();
        let mut left = self.both()?;
        while self.takes_word("or") {
            self.operator()?;
            let at = self.place();
            let right = test_of(self.both()?, at)?;
            let left_not = Box::new(Test::Not(Box::new(test_of(left, place)?)));
            let neither = Test::Both(left_not, Box::new(Test::Not(Box::new(right))));
            left = Either::Test(Test::Not(Box::new(neither)));
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Parses `TEST and TEST`.
    fn both(&mut self) -> Result<Either> {
        let place = self.place();
        let mut left = self.not()?;
        while self.takes_word("and") {
            self.operator()?;
            let at = self.place();
            let right = test_of(self.not()?, at)?;
            left = Either::Test(Test::Both(Box::new(test_of(left, place)?), Box::new(right)));
        }
        Ok(left)
    }

    /// Parses `not TEST`, or a comparison.
    fn not(&mut self) -> Result<Either> {
        let mut times = 0;
        while self.takes_word("not") {
            times += 1;
        }
        let place = self.place();
        let test = self.comparison()?;
        if times % 2 == 1 {
            return Ok(Either::Test(Test::Not(Box::new(test_of(test, place)?))));
        }
        if times > 0 { test_of(test, place).map(Either::Test) } else { Ok(test) }
    }

    fn comparison(&mut self) -> Result<Either> {
        let place = self.place();
        let left = self.terms()?;
        let Some(sign) = ["<=", ">=", "==", "!=", "<", ">"].into_iter().find(|sign| self.takes(sign)) else {
            return Ok(left);
        };
        let at = self.place();
        let (left, right) = (number_of(left, place)?, number_of(self.terms()?, at)?);
        let not = |test| Test::Not(Box::new(test));
        Ok(Either::Test(match sign {
            "<" => Test::Less(left, right),
            ">" => Test::Less(right, left),
            "<=" => not(Test::Less(right, left)),
            ">=" => not(Test::Less(left, right)),
            "==" => Test::Equal(left, right),
            _ => not(Test::Equal(left, right)),
        }))
    }

    /// Parses sums and differences.
    fn terms(&mut self) -> Result<Either> {
        let place = self.place();
        let mut left = self.factors()?;
        loop {
            let minus = match (self.takes("+"), self.takes("-")) {
                (true, false) => false,
                (false, true) => true,
                (true, true) => true,
                (false, false) => return Ok(left),
            };
            self.operator()?;
            let at = self.place();
            let right = number_of(self.factors()?, at)?;
            let right = if minus { Ast::Negated(Box::new(right)) } else { right };
            left = Either::Number(Ast::Sum(Box::new(number_of(left, place)?), Box::new(right)));
        }
    }

    /// Parses products and quotients.
    fn factors(&mut self) -> Result<Either> {
        let place = self.place();
        let mut left = self.power()?;
        loop {
            let (times, over) = (self.takes("*"), self.place());
            if !times && !self.takes("/") {
                return Ok(left);
            }
            self.operator()?;
            let at = self.place();
            let right = Box::new(number_of(self.power()?, at)?);
            let one = Box::new(number_of(left, place)?);
            left = Either::Number(if times { Ast::Product(one, right) } else { Ast::Quotient(one, right, over) });
        }
    }

    fn power(&mut self) -> Result<Either> {
        let place = self.place();
        if self.takes("-") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(format!("at most {DEEPEST} consecutive signs, at character {}", place.0));
            }
            let at = self.place();
            let inner = number_of(self.power()?, at)?;
            self.depth -= 1;
            return Ok(Either::Number(Ast::Negated(Box::new(inner))));
        }
        let base = self.atom()?;
        if !self.takes("**") {
            return Ok(base);
        }
        let base = number_of(base, place)?;
        let at = self.place();
        match self.peek() {
            Some(Token::Number(power @ 1..=8, 1)) => {
                let power = *power as u32;
                self.at += 1;
                Ok(Either::Number(Ast::Power(Box::new(base), power)))
            }
            _ => Err(format!("a whole number from 1 to 8 after '**' at character {}", at.0)),
        }
    }

    fn atom(&mut self) -> Result<Either> {
        let place = self.place();
        match self.peek().cloned() {
            Some(Token::Number(numerator, denominator)) => {
                self.at += 1;
                Ok(Either::Number(Ast::Number(numerator, denominator)))
            }
            Some(Token::Sign("(")) => {
                self.at += 1;
                let inner = self.either()?;
                self.needs(")")?;
                Ok(inner)
            }
            Some(Token::Word(word)) => {
                self.at += 1;
                if matches!(self.peek(), Some(Token::Sign("("))) {
                    self.at += 1;
                    return self.call(&word, place).map(Either::Number);
                }
                self.value(&word, place).map(Either::Number)
            }
            _ => Err(self.expected("a value")),
        }
    }

    fn call(&mut self, word: &str, place: CharPosition) -> Result<Ast> {
        if let Some((_, function)) = Function::ALL.into_iter().find(|(name, _)| *name == word) {
            let inner = self.number()?;
            self.needs(")")?;
            return Ok(Ast::Function(function, Box::new(inner)));
        }
        let fold = match word {
            "max" => Fold::Max,
            "min" => Fold::Min,
            "sum" => Fold::Sum,
            "floor" => {
                let inner = self.number()?;
                self.needs(")")?;
                return Ok(Ast::Floor(Box::new(inner)));
            }
            "if" => {
                let test = self.test()?;
                self.needs(",")?;
                let yes = self.number()?;
                self.needs(",")?;
                let no = self.number()?;
                self.needs(")")?;
                return Ok(Ast::If(Box::new(test), Box::new(yes), Box::new(no)));
            }
            _ => {
                let functions = Function::ALL.map(|(name, _)| name);
                let known = ["max", "min", "sum", "floor", "if"].into_iter().chain(functions).collect::<Vec<_>>();
                let hint = nearest(word, known.iter().copied())
                    .map(|hint| format!(" (did you mean '{hint}'?)"))
                    .unwrap_or_default();
                let (known, at) = (known.join(", "), place.0);
                return Err(format!("one of {known} instead of '{word}(' at character {at}{hint}"));
            }
        };
        // With one argument, the function iterates over the resources. Whether there is only one is known after it has been parsed.
        let outer = std::mem::replace(&mut self.each, true);
        let first = self.number()?;
        self.each = outer;
        if self.takes(")") {
            return Ok(Ast::Over(fold, Box::new(first)));
        }
        if let Some(place) = first.each().filter(|_| !outer) {
            return Err(no_resource(place));
        }
        let mut of = vec![first];
        while self.takes(",") {
            of.push(self.number()?);
        }
        self.needs(")")?;
        Ok(Ast::Fold(fold, of))
    }

    fn value(&mut self, word: &str, place: CharPosition) -> Result<Ast> {
        let at = place.0;
        let Some(name) = names::find(word, self.clause) else {
            let hint = nearest(word, names::known(self.clause));
            let hint = hint.map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
            let known = names::known(self.clause).collect::<Vec<_>>().join(", ");
            let clause = self.clause.word();
            return Err(format!("a value instead of '{word}' at character {at}{hint}; in {clause} there are {known}"));
        };
        if !self.takes("[") {
            return match name.of {
                Of::Resource => Err(format!("a resource after '{word}' at character {at}: {word}[cpu], or {word}[r]")),
                Of::One | Of::Either => Ok(Ast::Value(name, Index::One, place)),
            };
        }
        let index = match self.peek().cloned() {
            Some(Token::Word(index)) if index == "r" => Index::Each,
            Some(Token::Word(index)) => Index::Named(index),
            _ => return Err(self.expected("the name of a resource, or r")),
        };
        self.at += 1;
        self.needs("]")?;
        match (name.of, &index) {
            (Of::One, _) => Err(format!("no resource after '{word}' at character {at}: it is one number")),
            (_, Index::Each) if !self.each => Err(no_resource(place)),
            _ => Ok(Ast::Value(name, index, place)),
        }
    }
}

fn no_resource(place: CharPosition) -> String {
    let at = place.0;
    format!("a resource by name in the value at character {at}; r is for max(...), min(...) and sum(...) of one value")
}

fn number_of(either: Either, place: CharPosition) -> Result<Ast> {
    match either {
        Either::Number(number) => Ok(number),
        Either::Test(_) => Err(format!("a number, not a condition, at character {}", place.0)),
    }
}

fn test_of(either: Either, place: CharPosition) -> Result<Test> {
    match either {
        Either::Test(test) => Ok(test),
        Either::Number(_) => Err(format!("a condition such as running < 10, not a number, at character {}", place.0)),
    }
}
