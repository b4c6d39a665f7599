//! The syntax tree of the Cypher subset.

use crate::pack::Val;

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Lit(Val),
    Param(String),
    Var(String),
    Prop(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
    Map(Vec<(String, Expr)>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    Bin(&'static str, Box<Expr>, Box<Expr>),
    IsNull(Box<Expr>),
    HasLabel(Box<Expr>, Vec<String>),
    Call { name: String, distinct: bool, args: Vec<Expr> },
    CountStar,
}

pub const AGGREGATES: [&str; 6] = ["count", "collect", "sum", "min", "max", "avg"];

impl Expr {
    pub fn is_aggregate(&self) -> bool {
        match self {
            Expr::CountStar => true,
            Expr::Call { name, args, .. } => AGGREGATES.contains(&name.as_str()) || args.iter().any(Expr::is_aggregate),
            Expr::Prop(e, _) | Expr::Not(e) | Expr::Neg(e) | Expr::IsNull(e) | Expr::HasLabel(e, _) => e.is_aggregate(),
            Expr::Index(a, b) | Expr::Bin(_, a, b) => a.is_aggregate() || b.is_aggregate(),
            Expr::List(l) => l.iter().any(Expr::is_aggregate),
            Expr::Map(m) => m.iter().any(|(_, e)| e.is_aggregate()),
            Expr::Lit(_) | Expr::Param(_) | Expr::Var(_) => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodePat {
    pub var: Option<String>,
    pub labels: Vec<String>,
    pub props: Option<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dir {
    Right,
    Left,
    Any,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RelPat {
    pub var: Option<String>,
    pub types: Vec<String>,
    pub props: Option<Expr>,
    pub dir: Dir,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub start: NodePat,
    pub steps: Vec<(RelPat, NodePat)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    Prop(String, String, Expr),
    All { var: String, value: Expr, merge: bool },
    Labels(String, Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum RemoveItem {
    Prop(String, String),
    Labels(String, Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    pub distinct: bool,
    pub star: bool,
    pub items: Vec<(Expr, String)>,
    pub order: Vec<(Expr, bool, String)>,
    pub skip: Option<Expr>,
    pub limit: Option<Expr>,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    Match { optional: bool, paths: Vec<Path>, filter: Option<Expr> },
    Create(Vec<Path>),
    Merge { path: Path, on_create: Vec<SetItem>, on_match: Vec<SetItem> },
    Set(Vec<SetItem>),
    Remove(Vec<RemoveItem>),
    Delete { detach: bool, targets: Vec<Expr> },
    Unwind(Expr, String),
    With(Projection),
    Return(Projection),
    Call { name: String, args: Vec<Expr>, yields: Option<Vec<(String, String)>> },
}
