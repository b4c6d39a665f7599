//! CREATE, SET, REMOVE and DELETE: each write is one of the engine's.

use super::*;

impl Exec<'_> {
    pub(super) fn create(&self, path: &Path, row: &mut Row) -> Res<()> {
        let mut at = self.create_node(&path.start, row)?;
        for (rel, pat) in &path.steps {
            let far = self.create_node(pat, row)?;
            let (from_id, to_id) = match rel.dir {
                Dir::Right => (at, far),
                Dir::Left => (far, at),
                Dir::Any => return semantic("invalid CREATE pattern: a relationship needs a direction"),
            };
            let [kind] = rel.types.as_slice() else {
                return semantic("invalid CREATE pattern: a relationship needs exactly one type");
            };
            let properties = stored(self.pattern_props(&rel.props, row)?, "invalid CREATE pattern")?;
            let e = self.graph.create_edge(NewEdge { from_id, to_id, kind: kind.clone(), weight: 1.0, properties })?;
            bind(row, &rel.var, Val::Rel(e.id));
            at = far;
        }
        Ok(())
    }

    pub(super) fn create_node(&self, pat: &NodePat, row: &mut Row) -> Res<u64> {
        match pat.var.as_ref().and_then(|v| row.get(v)) {
            Some(Val::Node(id)) => return Ok(*id),
            Some(other) => return mismatch("Node", other),
            None => {}
        }
        let Some(kind) = pat.labels.first().cloned() else {
            return semantic("invalid CREATE pattern: a node needs a label");
        };
        let mut props = self.pattern_props(&pat.props, row)?;
        let mut text = |key: &str| match props.remove(key) {
            None | Some(Val::Null) => Ok(None),
            Some(Val::Str(s)) => Ok(Some(s)),
            Some(other) => mismatch("String", &other),
        };
        let title = text("title")?.unwrap_or_else(|| placeholder(&kind));
        let body = text("body")?.unwrap_or_default();
        let mut properties = stored(props, "invalid CREATE pattern")?;
        if pat.labels.len() > 1 {
            properties.insert(SECONDARY_LABELS_KEY.into(), pat.labels[1..].into());
        }
        let n = self.graph.create_node(NewNode { kind, title, body, body_html: String::new(), properties })?;
        bind(row, &pat.var, Val::Node(n.id));
        Ok(n.id)
    }

    /// Every item is one engine write, as in drevo.
    pub(super) fn set(&self, items: &[SetItem], row: &Row) -> Res<()> {
        for item in items {
            match item {
                SetItem::Prop(var, key, e) => {
                    let change = Props::from([(key.clone(), self.eval(e, row, None)?)]);
                    self.update(self.lookup(row, var)?, change, true)?;
                }
                SetItem::All { var, value, merge } => {
                    let change = match self.eval(value, row, None)? {
                        Val::Map(m) => m,
                        v @ (Val::Node(_) | Val::Rel(_)) => self.all_props(&v)?,
                        other => return mismatch("Map", &other),
                    };
                    self.update(self.lookup(row, var)?, change, *merge)?;
                }
                SetItem::Labels(var, add) => self.relabel(self.lookup(row, var)?, |l| {
                    add.iter().for_each(|a| {
                        if !l.contains(a) {
                            l.push(a.clone())
                        }
                    });
                    Ok(())
                })?,
            }
        }
        Ok(())
    }

    pub(super) fn remove(&self, items: &[RemoveItem], row: &Row) -> Res<()> {
        for item in items {
            match item {
                RemoveItem::Prop(var, key) => match self.lookup(row, var)? {
                    Val::Node(id) if key == "title" => {
                        let title = Some(placeholder(&self.node(*id)?.kind));
                        self.graph.update_node(*id, NodePatch { title, ..NodePatch::default() })?;
                    }
                    target => self.update(target, Props::from([(key.clone(), Val::Null)]), true)?,
                },
                RemoveItem::Labels(var, gone) => self.relabel(self.lookup(row, var)?, |l| {
                    if gone.contains(&l[0]) {
                        return semantic(format!("invalid mutation: the primary label `{}` cannot be removed", l[0]));
                    }
                    l.retain(|x| !gone.contains(x));
                    Ok(())
                })?,
            }
        }
        Ok(())
    }

    /// Merges `change` into the properties of a node or relationship, or
    /// replaces them. Null removes a property (for `title` it stores "").
    pub(super) fn update(&self, target: &Val, change: Props, merge: bool) -> Res<()> {
        let (id, is_node) = match target {
            Val::Null => return Ok(()),
            Val::Node(id) => (*id, true),
            Val::Rel(id) => (*id, false),
            other => return mismatch("Node or Relationship", other),
        };
        let mut patch = NodePatch::default();
        let mut props = if is_node {
            let n = self.node(id)?;
            if !merge {
                patch.title = Some(placeholder(&n.kind));
                patch.body = Some(String::new());
            }
            let mut p = n.properties.clone();
            p.retain(|k, _| merge || k == SECONDARY_LABELS_KEY);
            p
        } else if merge {
            self.edge(id)?.properties
        } else {
            Properties::default()
        };
        let (mut touched, mut rest) = (!merge, Props::new());
        for (k, v) in change {
            if is_node && (k == "title" || k == "body") {
                let text = match v {
                    Val::Str(s) => s,
                    Val::Null => String::new(),
                    v => {
                        return semantic(format!(
                            "invalid mutation: alias `{k}` must be a String, got {}",
                            v.type_name()
                        ))
                    }
                };
                *(if k == "title" { &mut patch.title } else { &mut patch.body }) = Some(text);
            } else if v == Val::Null {
                touched = true;
                props.remove(&k);
            } else {
                touched = true;
                rest.insert(k, v);
            }
        }
        props.extend(stored(rest, "invalid mutation")?.0);
        if is_node {
            patch.properties = touched.then_some(props);
            self.graph.update_node(id, patch)?;
        } else {
            self.graph.update_edge(id, EdgePatch { properties: Some(props), ..EdgePatch::default() })?;
        }
        Ok(())
    }

    pub(super) fn relabel(&self, target: &Val, edit: impl FnOnce(&mut Vec<String>) -> Res<()>) -> Res<()> {
        let Val::Node(id) = target else { return mismatch("Node", target) };
        let n = self.node(*id)?;
        let mut list = labels(&n);
        edit(&mut list)?;
        if list != labels(&n) {
            let mut props = n.properties.clone();
            props.remove(SECONDARY_LABELS_KEY);
            if list.len() > 1 {
                props.insert(SECONDARY_LABELS_KEY.into(), list[1..].into());
            }
            self.graph.update_node(*id, NodePatch { properties: Some(props), ..NodePatch::default() })?;
        }
        Ok(())
    }

    pub(super) fn delete(&self, detach: bool, targets: &[Expr], rows: &[Row]) -> Res<()> {
        let (mut nodes, mut rels) = (Vec::new(), Vec::new());
        for row in rows {
            for t in targets {
                match self.eval(t, row, None)? {
                    Val::Node(id) if !nodes.contains(&id) => nodes.push(id),
                    Val::Rel(id) if !rels.contains(&id) => rels.push(id),
                    Val::Null | Val::Node(_) | Val::Rel(_) => {}
                    v => {
                        return semantic(format!(
                            "invalid mutation: DELETE expects a Node or Relationship, got {}",
                            v.type_name()
                        ))
                    }
                }
            }
        }
        for id in rels {
            if self.graph.get_edge(id)?.is_some() {
                self.graph.delete_edge(id)?;
            }
        }
        for id in nodes {
            let Some(n) = self.graph.get_node(id)? else { continue };
            let degree = self.graph.edges_of(id, Direction::Both)?.len();
            if degree > 0 && !detach {
                return semantic(format!(
                    "invalid mutation: node {id} still has {degree} relationship(s); use DETACH DELETE"
                ));
            }
            self.graph.delete_node(id)?;
            self.deleted.borrow_mut().insert(id, n);
        }
        Ok(())
    }
}
