//! Formats outcomes as JSON.

use serde_json::{Map, Number, Value};

use super::outcome::{Amount, Holding, Outcome};
use crate::fair::{Exact, Instance, Limit, User};

/// Formats one outcome. See docs/solve.md for the keys.
pub fn json(instance: &Instance, outcome: &Outcome) -> Value {
    let resources = instance.resources();
    let mut object = Map::new();
    object.insert("policy".to_owned(), outcome.policy.clone().into());
    let users = instance.users().iter().zip(&outcome.users);
    let weighted = instance.users().iter().any(|user| user.one_weight() != Some(&Exact::ONE));
    let machines: Vec<String> = instance.machines().iter().map(|machine| machine.name.clone()).collect();
    let one = |(user, holding): (&User, &Holding)| one(&user.name, (resources, &machines), holding, weighted);
    let users: Vec<Value> = users.map(one).collect();
    object.insert("users".to_owned(), users.into());
    if let Some(prices) = &outcome.allocation.prices {
        let prices = prices.iter().map(|price| Some(Amount::Float(*price))).collect::<Vec<_>>();
        put_vector(&mut object, "prices", resources, &prices);
    }
    put_vector(&mut object, "utilisation", resources, &outcome.utilisation);
    if let Some(certificate) = &outcome.allocation.certificate {
        let parts = [("residual", certificate.residual), ("gap", certificate.gap)];
        let parts = parts.into_iter().map(|(name, value)| (name.to_owned(), float(value)));
        object.insert("certificate".to_owned(), Value::Object(parts.collect()));
    }
    Value::Object(object)
}

fn one(name: &str, (resources, machines): (&[String], &[String]), holding: &Holding, weighted: bool) -> Value {
    let mut object = Map::new();
    let some = |amounts: &[Amount]| amounts.iter().cloned().map(Some).collect::<Vec<_>>();
    object.insert("name".to_owned(), name.into());
    put(&mut object, "tasks", &holding.tasks);
    if !holding.on.is_empty() {
        put_vector(&mut object, "machines", machines, &some(&holding.on));
    }
    put_vector(&mut object, "allocation", resources, &some(&holding.allocation));
    put_vector(&mut object, "shares", resources, &holding.shares);
    put(&mut object, "dominant_share", &holding.dominant_share);
    let dominant = holding.dominant.map(|r| resources[r].clone());
    object.insert("dominant_resource".to_owned(), dominant.into());
    if weighted {
        put(&mut object, "level", &holding.level);
    }
    let stopped_by = match holding.limit {
        Limit::Demand => "demand".to_owned(),
        Limit::Resource(r) => format!("resource:{}", resources[r]),
        Limit::Slots => "slots".to_owned(),
        Limit::Machines => "machines".to_owned(),
        Limit::WholeTask => "whole-task".to_owned(),
    };
    object.insert("stopped_by".to_owned(), stopped_by.into());
    Value::Object(object)
}

/// Inserts a number under its key, and its exact value as text under `.._exact` if there is one.
fn put(object: &mut Map<String, Value>, key: &str, amount: &Amount) {
    object.insert(key.to_owned(), number(amount));
    if let Some(exact) = amount.exact() {
        object.insert(format!("{key}_exact"), exact.to_string().into());
    }
}

/// Inserts one number per resource or machine, like [`put`]; an absent number is null.
pub(super) fn put_vector(object: &mut Map<String, Value>, key: &str, names: &[String], amounts: &[Option<Amount>]) {
    let named = |value: &dyn Fn(&Amount) -> Value| -> Value {
        let values = amounts.iter().map(|amount| amount.as_ref().map_or(Value::Null, value));
        Value::Object(names.iter().cloned().zip(values).collect())
    };
    object.insert(key.to_owned(), named(&number));
    if amounts.iter().flatten().any(|amount| amount.exact().is_some()) {
        let text = |amount: &Amount| amount.exact().map(ToString::to_string).into();
        object.insert(format!("{key}_exact"), named(&text));
    }
}

/// Formats an integer exactly, another number as the nearest float.
fn number(amount: &Amount) -> Value {
    match amount.exact().and_then(Exact::parts) {
        Some((whole, 1)) => whole.into(),
        _ => float(amount.float()),
    }
}

fn float(value: f64) -> Value {
    const EXACT: f64 = (1u64 << 53) as f64;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return (value as i64).into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
