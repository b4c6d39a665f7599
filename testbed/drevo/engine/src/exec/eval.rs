//! Expressions, and values on their way to the wire.

use super::*;

impl Exec<'_> {
    /// Turns graph references into the structures of Bolt 4.4.
    pub(super) fn wire(&self, v: &Val) -> Res<Val> {
        Ok(match v {
            Val::Node(id) => {
                let names = labels(&*self.node(*id)?).into_iter().map(Val::Str).collect();
                Val::Struct(0x4E, vec![Val::Int(*id as i64), Val::List(names), Val::Map(self.all_props(v)?)])
            }
            Val::Rel(id) => {
                let e = self.edge(*id)?;
                let ids = [e.id, e.from_id, e.to_id].map(|i| Val::Int(i as i64));
                Val::Struct(0x52, ids.into_iter().chain([Val::Str(e.kind), Val::Map(self.all_props(v)?)]).collect())
            }
            Val::List(l) => Val::List(l.iter().map(|e| self.wire(e)).collect::<Res<_>>()?),
            Val::Map(m) => Val::Map(m.iter().map(|(k, e)| Ok((k.clone(), self.wire(e)?))).collect::<Res<_>>()?),
            other => other.clone(),
        })
    }

    /// The properties a client may see.
    pub(super) fn all_props(&self, v: &Val) -> Res<Props> {
        let read = |p: &Properties| -> Props { p.iter().map(|(k, v)| (k.clone(), from_json(Some(v)))).collect() };
        match v {
            Val::Rel(id) => Ok(read(&self.edge(*id)?.properties)),
            Val::Node(id) => {
                let n = self.node(*id)?;
                let mut m = read(&n.properties);
                m.remove(SECONDARY_LABELS_KEY);
                for key in ["title", "body"] {
                    match node_prop(&n, key) {
                        Val::Null => {}
                        text => drop(m.insert(key.into(), text)),
                    }
                }
                Ok(m)
            }
            Val::Map(m) => Ok(m.clone()),
            other => mismatch("Node, Relationship or Map", other),
        }
    }

    /// `group` holds the rows an aggregate runs over, where one is allowed.
    pub(super) fn eval(&self, e: &Expr, row: &Row, group: Option<&[Row]>) -> Res<Val> {
        let sub = |e: &Expr| self.eval(e, row, group);
        Ok(match e {
            Expr::Lit(v) => v.clone(),
            Expr::Param(p) => match self.params.get(p) {
                Some(v) => v.clone(),
                None => {
                    return fail("Neo.ClientError.Statement.ParameterMissing", format!("missing query parameter `{p}`"))
                }
            },
            Expr::Var(v) => self.lookup(row, v)?.clone(),
            Expr::Prop(base, key) => match sub(base)? {
                Val::Null => Val::Null,
                Val::Node(id) => node_prop(&*self.node(id)?, key),
                Val::Rel(id) => from_json(self.edge(id)?.properties.get(key)),
                Val::Map(m) => m.get(key).cloned().unwrap_or(Val::Null),
                other => return mismatch("Node, Relationship or Map", &other),
            },
            Expr::Index(base, at) => match (sub(base)?, sub(at)?) {
                (Val::List(l), Val::Int(i)) => {
                    let i = if i < 0 { i + l.len() as i64 } else { i };
                    usize::try_from(i).ok().and_then(|i| l.get(i)).cloned().unwrap_or(Val::Null)
                }
                (Val::Map(m), Val::Str(k)) => m.get(&k).cloned().unwrap_or(Val::Null),
                (Val::Null, _) | (_, Val::Null) => Val::Null,
                (other, _) => return mismatch("List or Map", &other),
            },
            Expr::List(l) => Val::List(l.iter().map(sub).collect::<Res<_>>()?),
            Expr::Map(m) => Val::Map(m.iter().map(|(k, e)| Ok((k.clone(), sub(e)?))).collect::<Res<_>>()?),
            Expr::Not(e) => truth(sub(e)?)?.map_or(Val::Null, |b| Val::Bool(!b)),
            Expr::Neg(e) => arithmetic("-", Val::Int(0), sub(e)?)?,
            Expr::IsNull(e) => Val::Bool(sub(e)? == Val::Null),
            Expr::HasLabel(e, want) => match sub(e)? {
                Val::Node(id) => Val::Bool(labels(&*self.node(id)?).iter().any(|l| want.contains(l))),
                Val::Null => Val::Null,
                other => return mismatch("Node", &other),
            },
            Expr::Bin(op @ ("AND" | "OR"), a, b) => {
                let (a, b) = (truth(sub(a)?)?, truth(sub(b)?)?);
                let r = match (*op, a, b) {
                    ("AND", Some(false), _) | ("AND", _, Some(false)) => Some(false),
                    ("OR", Some(true), _) | ("OR", _, Some(true)) => Some(true),
                    (_, None, _) | (_, _, None) => None,
                    (op, ..) => Some(*op == *"AND"),
                };
                r.map_or(Val::Null, Val::Bool)
            }
            Expr::Bin(op, a, b) => binary(op, sub(a)?, sub(b)?)?,
            Expr::CountStar => match group {
                Some(g) => Val::Int(g.len() as i64),
                None => return semantic("invalid call to `count`: an aggregate is not allowed here"),
            },
            Expr::Call { name, distinct, args } if AGGREGATES.contains(&name.as_str()) => {
                match (group, args.as_slice()) {
                    (Some(rows), [arg]) => {
                        let mut vals: Vec<Val> = Vec::new();
                        for r in rows {
                            let v = self.eval(arg, r, None)?;
                            if v != Val::Null && !(*distinct && vals.contains(&v)) {
                                vals.push(v);
                            }
                        }
                        aggregate(name, vals)?
                    }
                    _ => {
                        return semantic(format!(
                            "invalid call to `{name}`: it is not allowed here or takes one argument"
                        ))
                    }
                }
            }
            Expr::Call { name, args, .. } => {
                let args = args.iter().map(sub).collect::<Res<Vec<Val>>>()?;
                self.function(name, &args)?
            }
        })
    }

    pub(super) fn function(&self, name: &str, args: &[Val]) -> Res<Val> {
        Ok(match (name, args) {
            ("coalesce", _) => args.iter().find(|v| **v != Val::Null).cloned().unwrap_or(Val::Null),
            ("timestamp", []) => Val::Int(drevo_core::model::now_ms()),
            (_, [Val::Null]) => Val::Null,
            ("id", [Val::Node(id) | Val::Rel(id)]) => Val::Int(*id as i64),
            ("labels", [Val::Node(id)]) => Val::List(labels(&*self.node(*id)?).into_iter().map(Val::Str).collect()),
            ("type", [Val::Rel(id)]) => Val::Str(self.edge(*id)?.kind),
            ("properties", [v]) => Val::Map(self.all_props(v)?),
            ("keys", [v]) => Val::List(self.all_props(v)?.into_keys().map(Val::Str).collect()),
            ("size", [Val::List(l)]) => Val::Int(l.len() as i64),
            ("size", [Val::Str(s)]) => Val::Int(s.chars().count() as i64),
            ("tostring", [Val::Str(s)]) => Val::Str(s.clone()),
            ("tostring", [Val::Int(i)]) => Val::Str(i.to_string()),
            ("tostring", [Val::Float(f)]) => Val::Str(f.to_string()),
            ("tostring", [Val::Bool(b)]) => Val::Str(b.to_string()),
            ("tointeger", [Val::Int(i)]) => Val::Int(*i),
            ("tointeger", [Val::Float(f)]) => Val::Int(*f as i64),
            ("tointeger", [Val::Str(s)]) => s.trim().parse().map_or(Val::Null, Val::Int),
            ("toupper", [Val::Str(s)]) => Val::Str(s.to_uppercase()),
            ("tolower", [Val::Str(s)]) => Val::Str(s.to_lowercase()),
            _ => return semantic(format!("invalid call to `{name}`: unknown function or wrong arguments")),
        })
    }
}
