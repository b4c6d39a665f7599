//! Values as the engine stores them: JSON properties, and the title that it owns.

use super::*;

const PLACEHOLDER: &str = "__cypher__:";

/// The hidden unique title of a node that was given none.
pub(super) fn placeholder(label: &str) -> String {
    let hex: String = new_uuid_v7().iter().map(|b| format!("{b:02x}")).collect();
    format!("{PLACEHOLDER}{label}:{hex}")
}

pub(super) fn labels(n: &Node) -> Vec<String> {
    let mut all = vec![n.kind.clone()];
    all.extend(secondary_labels(n));
    all
}

pub(super) fn node_prop(n: &Node, key: &str) -> Val {
    match key {
        "title" if n.title.starts_with(PLACEHOLDER) => Val::Null,
        "title" => Val::str(&n.title),
        "body" if n.body.is_empty() => Val::Null,
        "body" => Val::str(&n.body),
        SECONDARY_LABELS_KEY => Val::Null,
        key => from_json(n.properties.get(key)),
    }
}

pub(super) fn from_json(j: Option<&Json>) -> Val {
    match j {
        None | Some(Json::Null) => Val::Null,
        Some(Json::Bool(b)) => Val::Bool(*b),
        Some(Json::Number(n)) => n.as_i64().map_or_else(|| Val::Float(n.as_f64().unwrap_or(f64::NAN)), Val::Int),
        Some(Json::String(s)) => Val::str(s),
        Some(Json::Array(l)) => Val::List(l.iter().map(|e| from_json(Some(e))).collect()),
        Some(Json::Object(m)) => Val::Map(m.iter().map(|(k, e)| (k.clone(), from_json(Some(e)))).collect()),
    }
}

pub(super) fn to_json(v: &Val) -> Option<Json> {
    Some(match v {
        Val::Null => Json::Null,
        Val::Bool(b) => (*b).into(),
        Val::Int(i) => (*i).into(),
        Val::Float(f) => (*f).into(),
        Val::Str(s) => s.clone().into(),
        Val::List(l) => Json::Array(l.iter().map(to_json).collect::<Option<_>>()?),
        Val::Map(m) => Json::Object(m.iter().map(|(k, e)| Some((k.clone(), to_json(e)?))).collect::<Option<_>>()?),
        Val::Bytes(_) | Val::Struct(..) | Val::Node(_) | Val::Rel(_) => return None,
    })
}

pub(super) fn stored(props: Props, context: &str) -> Res<Properties> {
    let mut out = HashMap::new();
    for (k, v) in props {
        match to_json(&v) {
            _ if k == SECONDARY_LABELS_KEY => {}
            Some(j) => drop(out.insert(k, j)),
            None => {
                return semantic(format!("{context}: cannot store value of type {} as property `{k}`", v.type_name()))
            }
        }
    }
    Ok(Properties(out))
}
