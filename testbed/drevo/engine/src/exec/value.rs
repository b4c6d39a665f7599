//! Cypher's operators and aggregates on values.

use super::*;

pub(super) fn truth(v: Val) -> Res<Option<bool>> {
    match v {
        Val::Bool(b) => Ok(Some(b)),
        Val::Null => Ok(None),
        other => mismatch("Boolean", &other),
    }
}

/// Cypher equality; `None` stands for null.
pub(super) fn equal(a: &Val, b: &Val) -> Option<bool> {
    match (a, b) {
        (Val::Null, _) | (_, Val::Null) => None,
        (Val::Int(i), Val::Float(f)) | (Val::Float(f), Val::Int(i)) => Some(*i as f64 == *f),
        (Val::List(x), Val::List(y)) if x.len() == y.len() => {
            let mut all = Some(true);
            for (x, y) in x.iter().zip(y) {
                match equal(x, y) {
                    Some(true) => {}
                    Some(false) => return Some(false),
                    None => all = None,
                }
            }
            all
        }
        _ => Some(a == b),
    }
}

/// The total order of ORDER BY: null is last.
pub(super) fn order(a: &Val, b: &Val) -> Ordering {
    let rank = |v: &Val| match v {
        Val::Map(_) => 0,
        Val::Node(_) => 1,
        Val::Rel(_) => 2,
        Val::List(_) => 3,
        Val::Str(_) => 4,
        Val::Bool(_) => 5,
        Val::Int(_) | Val::Float(_) => 6,
        _ => 7,
    };
    match (a, b) {
        (Val::Int(x), Val::Int(y)) => x.cmp(y),
        (Val::Int(x), Val::Float(y)) => (*x as f64).total_cmp(y),
        (Val::Float(x), Val::Int(y)) => x.total_cmp(&(*y as f64)),
        (Val::Float(x), Val::Float(y)) => x.total_cmp(y),
        (Val::Str(x), Val::Str(y)) => x.cmp(y),
        (Val::Bool(x), Val::Bool(y)) => x.cmp(y),
        (Val::Node(x), Val::Node(y)) | (Val::Rel(x), Val::Rel(y)) => x.cmp(y),
        (Val::List(x), Val::List(y)) => {
            let pairs = x.iter().zip(y).map(|(x, y)| order(x, y));
            pairs.chain([x.len().cmp(&y.len())]).find(|o| *o != Ordering::Equal).unwrap_or(Ordering::Equal)
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

pub(super) fn binary(op: &str, a: Val, b: Val) -> Res<Val> {
    let comparable = matches!(
        (&a, &b),
        (Val::Int(_) | Val::Float(_), Val::Int(_) | Val::Float(_))
            | (Val::Str(_), Val::Str(_))
            | (Val::Bool(_), Val::Bool(_))
    );
    Ok(match op {
        "=" => equal(&a, &b).map_or(Val::Null, Val::Bool),
        "<>" => equal(&a, &b).map_or(Val::Null, |e| Val::Bool(!e)),
        "<" if comparable => Val::Bool(order(&a, &b).is_lt()),
        "<=" if comparable => Val::Bool(order(&a, &b).is_le()),
        ">" if comparable => Val::Bool(order(&a, &b).is_gt()),
        ">=" if comparable => Val::Bool(order(&a, &b).is_ge()),
        "<" | "<=" | ">" | ">=" => Val::Null,
        "IN" => match b {
            Val::Null => Val::Null,
            Val::List(l) => {
                let hits: Vec<Option<bool>> = l.iter().map(|e| equal(&a, e)).collect();
                match hits.contains(&Some(true)) {
                    true => Val::Bool(true),
                    false if hits.contains(&None) => Val::Null,
                    false => Val::Bool(false),
                }
            }
            other => return mismatch("List", &other),
        },
        "STARTS WITH" | "ENDS WITH" | "CONTAINS" => match (&a, &b) {
            (Val::Str(a), Val::Str(b)) => Val::Bool(match op {
                "STARTS WITH" => a.starts_with(b),
                "ENDS WITH" => a.ends_with(b),
                _ => a.contains(b),
            }),
            _ => Val::Null,
        },
        _ => arithmetic(op, a, b)?,
    })
}

pub(super) fn arithmetic(op: &str, a: Val, b: Val) -> Res<Val> {
    let float = |v: &Val| match v {
        Val::Int(i) => Some(*i as f64),
        Val::Float(f) => Some(*f),
        _ => None,
    };
    Ok(match (a, b) {
        (Val::Null, _) | (_, Val::Null) => Val::Null,
        (Val::Str(x), Val::Str(y)) if op == "+" => Val::Str(x + &y),
        (Val::List(x), Val::List(y)) if op == "+" => Val::List(x.into_iter().chain(y).collect()),
        (Val::Int(x), Val::Int(y)) => {
            let r = match op {
                "+" => x.checked_add(y),
                "-" => x.checked_sub(y),
                "*" => x.checked_mul(y),
                "/" => x.checked_div(y),
                _ => x.checked_rem(y),
            };
            match r {
                Some(i) => Val::Int(i),
                None => return semantic(format!("type mismatch: expected a result in 64 bits, got `{x} {op} {y}`")),
            }
        }
        (a, b) => match (float(&a), float(&b)) {
            (Some(x), Some(y)) => Val::Float(match op {
                "+" => x + y,
                "-" => x - y,
                "*" => x * y,
                "/" => x / y,
                _ => x % y,
            }),
            (None, _) => return mismatch("Number", &a),
            _ => return mismatch("Number", &b),
        },
    })
}

pub(super) fn aggregate(name: &str, vals: Vec<Val>) -> Res<Val> {
    let sum = |vals: &[Val]| vals.iter().try_fold(Val::Int(0), |s, v| arithmetic("+", s, v.clone()));
    Ok(match name {
        "count" => Val::Int(vals.len() as i64),
        "collect" => Val::List(vals),
        "sum" => sum(&vals)?,
        "avg" if vals.is_empty() => Val::Null,
        "avg" => arithmetic("/", arithmetic("+", Val::Float(0.0), sum(&vals)?)?, Val::Int(vals.len() as i64))?,
        "min" => vals.into_iter().min_by(order).unwrap_or(Val::Null),
        _ => vals.into_iter().max_by(order).unwrap_or(Val::Null),
    })
}
