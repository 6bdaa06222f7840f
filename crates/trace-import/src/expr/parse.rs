//! Parses an expression into a tree.
//!
//! Precedence, from low to high: `if`, `or`, `and`, `not`, comparisons, `+` and `-`, `*` and `/`, the sign. The length and the depth are
//! limited, which bounds the recursion.

use plimsoll_base::error::did_you_mean;

use super::functions::{FUNCTIONS, Function};
use super::lex::{Located, Token, tokens};
use crate::number::Fraction;

/// An operator of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Times,
    /// `/`
    Over,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `and`
    And,
    /// `or`
    Or,
}

/// An expression over names of type `N`: text after parsing, positions after binding.
#[derive(Clone, Debug)]
pub enum ExpressionTree<N> {
    /// A column or a named value.
    Name(N),
    /// A constant number.
    Number(Fraction),
    /// A constant text.
    Text(String),
    /// The constants `true` and `false`.
    Truth(bool),
    /// No value.
    Missing,
    /// An operator of two values.
    Binary(Operator, Box<ExpressionTree<N>>, Box<ExpressionTree<N>>),
    /// `not`
    Not(Box<ExpressionTree<N>>),
    /// The sign `-`.
    Negated(Box<ExpressionTree<N>>),
    /// `if CONDITION then A else B`
    If(Box<[ExpressionTree<N>; 3]>),
    /// A function.
    Call(&'static Function, Vec<ExpressionTree<N>>),
}

/// A name in an expression, with the number of its first character.
#[derive(Clone, Debug)]
pub struct WrittenName {
    /// The name of a column or a value.
    pub name: String,
    /// The number of its first character, from 1.
    pub place: usize,
}

impl<N> ExpressionTree<N> {
    /// Converts all names. Errors: the first error of `convert`.
    pub fn bind<M, E>(&self, convert: &mut dyn FnMut(&N) -> Result<M, E>) -> Result<ExpressionTree<M>, E> {
        Ok(match self {
            ExpressionTree::Name(name) => ExpressionTree::Name(convert(name)?),
            ExpressionTree::Number(number) => ExpressionTree::Number(*number),
            ExpressionTree::Text(text) => ExpressionTree::Text(text.clone()),
            ExpressionTree::Truth(truth) => ExpressionTree::Truth(*truth),
            ExpressionTree::Missing => ExpressionTree::Missing,
            ExpressionTree::Binary(operator, a, b) => {
                ExpressionTree::Binary(*operator, Box::new(a.bind(convert)?), Box::new(b.bind(convert)?))
            }
            ExpressionTree::Not(a) => ExpressionTree::Not(Box::new(a.bind(convert)?)),
            ExpressionTree::Negated(a) => ExpressionTree::Negated(Box::new(a.bind(convert)?)),
            ExpressionTree::If(parts) => {
                let [a, b, c] = &**parts;
                ExpressionTree::If(Box::new([a.bind(convert)?, b.bind(convert)?, c.bind(convert)?]))
            }
            ExpressionTree::Call(function, arguments) => {
                let arguments = arguments.iter().map(|argument| argument.bind(convert));
                ExpressionTree::Call(function, arguments.collect::<Result<_, E>>()?)
            }
        })
    }
}

/// The maximum length of a text and the maximum depth of its tree.
const LONGEST: usize = 4000;
const DEEPEST: usize = 64;

/// The maximum number of operators: a chain of operators is a tree as deep as it is long.
const OPERATORS: usize = 300;

/// Parses an expression. Errors: the number of a character, and the problem.
pub fn parse(text: &str) -> Located<ExpressionTree<WrittenName>> {
    if text.len() > LONGEST {
        return Err((LONGEST, format!("an expression has at most {LONGEST} characters")));
    }
    let end = text.chars().count() + 1;
    let mut parser = ExpressionParser { tokens: tokens(text)?, end, at: 0, depth: 0, operators: 0 };
    let tree = parser.any()?;
    match parser.tokens.get(parser.at) {
        None => Ok(tree),
        Some((token, place)) => Err((*place, format!("expected an operator or the end, not {}", shown(token)))),
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Name(name, _) => format!("'{name}'"),
        Token::Number(number) => number.to_string(),
        Token::Text(text) => format!("'{text}'"),
        Token::Sign(sign) => format!("'{sign}'"),
    }
}

struct ExpressionParser {
    tokens: Vec<(Token, usize)>,
    end: usize,
    at: usize,
    depth: usize,
    operators: usize,
}

type Parsed = Located<ExpressionTree<WrittenName>>;

impl ExpressionParser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(_, place)| *place)
    }

    fn skips_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(name, false)) if name == word);
        self.at += usize::from(found);
        found
    }

    fn skips(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Located<()> {
        let place = self.place();
        if self.skips(sign) { Ok(()) } else { Err((place, format!("expected '{sign}'"))) }
    }

    fn expect_word(&mut self, word: &str) -> Located<()> {
        let place = self.place();
        if self.skips_word(word) { Ok(()) } else { Err((place, format!("expected '{word}'"))) }
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut ExpressionParser) -> Located<T>) -> Located<T> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err((self.place(), format!("an expression has at most {DEEPEST} nested parts")));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn binary(&mut self, operator: Operator, a: ExpressionTree<WrittenName>, b: ExpressionTree<WrittenName>) -> Parsed {
        self.operators += 1;
        if self.operators > OPERATORS {
            return Err((self.place(), format!("an expression has at most {OPERATORS} operators")));
        }
        Ok(ExpressionTree::Binary(operator, Box::new(a), Box::new(b)))
    }

    fn any(&mut self) -> Parsed {
        self.nested(|parser| {
            if !parser.skips_word("if") {
                return parser.either();
            }
            let condition = parser.any()?;
            parser.expect_word("then")?;
            let yes = parser.any()?;
            parser.expect_word("else")?;
            let no = parser.any()?;
            Ok(ExpressionTree::If(Box::new([condition, yes, no])))
        })
    }

    fn either(&mut self) -> Parsed {
        let mut tree = self.both()?;
        while self.skips_word("or") {
            let next = self.both()?;
            tree = self.binary(Operator::Or, tree, next)?;
        }
        Ok(tree)
    }

    fn both(&mut self) -> Parsed {
        let mut tree = self.negation()?;
        while self.skips_word("and") {
            let next = self.negation()?;
            tree = self.binary(Operator::And, tree, next)?;
        }
        Ok(tree)
    }

    fn negation(&mut self) -> Parsed {
        if self.skips_word("not") {
            return self.nested(|parser| Ok(ExpressionTree::Not(Box::new(parser.negation()?))));
        }
        let first = self.sum()?;
        let operators = [
            ("==", Operator::Equal),
            ("!=", Operator::Unequal),
            ("<", Operator::Less),
            ("<=", Operator::AtMost),
            (">", Operator::Greater),
            (">=", Operator::AtLeast),
        ];
        match operators.into_iter().find(|(sign, _)| self.skips(sign)) {
            None => Ok(first),
            Some((_, operator)) => {
                let second = self.sum()?;
                self.binary(operator, first, second)
            }
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut tree = self.product()?;
        loop {
            let operator = if self.skips("+") {
                Operator::Plus
            } else if self.skips("-") {
                Operator::Minus
            } else {
                return Ok(tree);
            };
            let next = self.product()?;
            tree = self.binary(operator, tree, next)?;
        }
    }

    fn product(&mut self) -> Parsed {
        let mut tree = self.signed()?;
        loop {
            let operator = if self.skips("*") {
                Operator::Times
            } else if self.skips("/") {
                Operator::Over
            } else {
                return Ok(tree);
            };
            let next = self.signed()?;
            tree = self.binary(operator, tree, next)?;
        }
    }

    fn signed(&mut self) -> Parsed {
        if self.skips("-") {
            return self.nested(|parser| Ok(ExpressionTree::Negated(Box::new(parser.signed()?))));
        }
        self.value()
    }

    fn value(&mut self) -> Parsed {
        let place = self.place();
        let Some(token) = self.peek().cloned() else {
            return Err((place, "expected a column, a number or a text in quotes".to_owned()));
        };
        self.at += 1;
        match token {
            Token::Number(number) => Ok(ExpressionTree::Number(number)),
            Token::Text(text) => Ok(ExpressionTree::Text(text)),
            Token::Sign("(") => {
                let tree = self.any()?;
                self.expect(")")?;
                Ok(tree)
            }
            Token::Name(name, quoted) => {
                if !quoted {
                    match name.as_str() {
                        "missing" if !matches!(self.peek(), Some(Token::Sign("("))) => {
                            return Ok(ExpressionTree::Missing);
                        }
                        "true" => return Ok(ExpressionTree::Truth(true)),
                        "false" => return Ok(ExpressionTree::Truth(false)),
                        "then" | "else" | "and" | "or" => {
                            return Err((place, format!("expected a value before '{name}'")));
                        }
                        _ => {}
                    }
                    if self.skips("(") {
                        return self.call(&name, place);
                    }
                }
                Ok(ExpressionTree::Name(WrittenName { name, place }))
            }
            Token::Sign(sign) => Err((place, format!("expected a value, not '{sign}'"))),
        }
    }

    fn call(&mut self, name: &str, place: usize) -> Parsed {
        let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
            let names = FUNCTIONS.iter().map(|function| function.name);
            let hint = did_you_mean(name, names.clone());
            let known = names.collect::<Vec<_>>().join(", ");
            return Err((place, format!("'{name}' is no function{hint}; expected {known}")));
        };
        let mut arguments = Vec::new();
        if !self.skips(")") {
            loop {
                arguments.push(self.any()?);
                if self.skips(")") {
                    break;
                }
                self.expect(",")?;
            }
        }
        if !function.arguments.contains(&arguments.len()) {
            let problem = format!("{name} has {} arguments; expected {}", arguments.len(), function.usage);
            return Err((place, problem));
        }
        let constant = function.pattern.and_then(|at| arguments.get(at));
        match constant {
            Some(ExpressionTree::Text(pattern)) => {
                super::functions::check_pattern(pattern).map_err(|problem| (place, problem))?
            }
            Some(_) => return Err((place, format!("the pattern of {name} must be a text in quotes"))),
            None => {}
        }
        Ok(ExpressionTree::Call(function, arguments))
    }
}
