//! MATCH: what a pattern finds.

use super::*;

impl Exec<'_> {
    pub(super) fn node(&self, id: u64) -> Res<Arc<Node>> {
        match self.graph.get_node(id)?.or_else(|| self.deleted.borrow().get(&id).cloned()) {
            Some(n) => Ok(n),
            None => Err(CoreError::NodeNotFound(id).into()),
        }
    }

    pub(super) fn edge(&self, id: u64) -> Res<Edge> {
        self.graph.get_edge(id)?.ok_or_else(|| CoreError::EdgeNotFound(id).into())
    }

    pub(super) fn pattern_props(&self, e: &Option<Expr>, row: &Row) -> Res<Props> {
        match e.as_ref().map(|e| self.eval(e, row, None)).transpose()? {
            None => Ok(Props::new()),
            Some(Val::Map(m)) => Ok(m),
            Some(other) => mismatch("Map", &other),
        }
    }

    pub(super) fn node_fits(&self, pat: &NodePat, props: &Props, n: &Node, row: &Row) -> bool {
        let bound = pat.var.as_ref().and_then(|v| row.get(v));
        bound.is_none_or(|v| *v == Val::Node(n.id))
            && (pat.labels.is_empty() || labels(n).iter().any(|l| pat.labels.contains(l)))
            && props.iter().all(|(k, v)| equal(&node_prop(n, k), v) == Some(true))
    }

    pub(super) fn candidates(&self, pat: &NodePat, props: &Props, row: &Row) -> Res<Vec<Arc<Node>>> {
        let pool = match (pat.var.as_ref().and_then(|v| row.get(v)), self.live, props.get("title")) {
            (Some(Val::Node(id)), ..) => self.graph.get_node(*id)?.into_iter().collect(),
            (Some(Val::Null), ..) => Vec::new(),
            (Some(other), ..) => return mismatch("Node", other),
            (None, Some(live), Some(Val::Str(t))) => live.get_node_by_title(t).map(Arc::new).into_iter().collect(),
            _ => self.graph.all_nodes()?,
        };
        Ok(pool.into_iter().filter(|n| self.node_fits(pat, props, n, row)).collect())
    }

    /// All rows that extend `row` by a match of every path.
    pub(super) fn find(&self, paths: &[Path], row: &Row) -> Res<Vec<Row>> {
        let mut states: Vec<(Row, Vec<u64>)> = vec![(row.clone(), Vec::new())];
        for path in paths {
            let mut next = Vec::new();
            for (row, used) in states {
                let props = self.pattern_props(&path.start.props, &row)?;
                for n in self.candidates(&path.start, &props, &row)? {
                    let mut row = row.clone();
                    bind(&mut row, &path.start.var, Val::Node(n.id));
                    let mut walk = vec![(row, used.clone(), n.id)];
                    for (rel, node) in &path.steps {
                        walk = self.step(rel, node, walk)?;
                    }
                    next.extend(walk.into_iter().map(|(row, used, _)| (row, used)));
                }
            }
            states = next;
        }
        Ok(states.into_iter().map(|(row, _)| row).collect())
    }

    pub(super) fn step(
        &self,
        rel: &RelPat,
        node: &NodePat,
        walk: Vec<(Row, Vec<u64>, u64)>,
    ) -> Res<Vec<(Row, Vec<u64>, u64)>> {
        let direction = match rel.dir {
            Dir::Right => Direction::Outgoing,
            Dir::Left => Direction::Incoming,
            Dir::Any => Direction::Both,
        };
        let mut out = Vec::new();
        for (row, used, at) in walk {
            let rel_props = self.pattern_props(&rel.props, &row)?;
            let node_props = self.pattern_props(&node.props, &row)?;
            let bound = rel.var.as_ref().and_then(|v| row.get(v));
            for e in self.graph.edges_of(at, direction)? {
                let fits = !used.contains(&e.id)
                    && bound.is_none_or(|v| *v == Val::Rel(e.id))
                    && (rel.types.is_empty() || rel.types.contains(&e.kind))
                    && rel_props.iter().all(|(k, v)| equal(&from_json(e.properties.get(k)), v) == Some(true));
                let far = if e.from_id == at { e.to_id } else { e.from_id };
                let Some(n) = (if fits { self.graph.get_node(far)? } else { None }) else { continue };
                if self.node_fits(node, &node_props, &n, &row) {
                    let (mut row, mut used) = (row.clone(), used.clone());
                    bind(&mut row, &rel.var, Val::Rel(e.id));
                    bind(&mut row, &node.var, Val::Node(far));
                    used.push(e.id);
                    out.push((row, used, far));
                }
            }
        }
        Ok(out)
    }
}
