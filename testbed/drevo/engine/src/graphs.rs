//! The graphs of one server, in drevo's layout on disk: `native.wal` for the
//! default one, `databases/<name>/native.wal` for the others.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use drevo_core::native::{Constraint, NativeGraph};

/// The graph of a session that names none.
pub const DEFAULT_GRAPH: &str = "drevo";

pub struct Graphs {
    data: PathBuf,
    constraints: Vec<Constraint>,
    open: RwLock<BTreeMap<String, Arc<NativeGraph>>>,
}

/// Why a graph cannot be made or removed.
#[derive(Debug)]
pub enum Refusal {
    BadName,
    Exists,
    Missing,
    Default,
    Failed(String),
}

impl Graphs {
    /// Opens the default graph, those already on disk and those asked for.
    pub fn open(data: &Path, wanted: &[String], constraints: Vec<Constraint>) -> Result<Graphs, String> {
        let named = data.join("databases");
        std::fs::create_dir_all(&named).map_err(|e| format!("{}: {e}", named.display()))?;
        let graphs = Graphs { data: data.to_path_buf(), constraints, open: RwLock::default() };
        graphs.load(DEFAULT_GRAPH)?;
        let found = std::fs::read_dir(&named).map_err(|e| format!("{}: {e}", named.display()))?;
        let found = found.flatten().filter_map(|e| e.file_name().into_string().ok()).filter(|n| good_name(n));
        for name in wanted.iter().cloned().chain(found) {
            if graphs.get(&name).is_none() {
                graphs.load(&name)?;
            }
        }
        Ok(graphs)
    }

    fn dir(&self, name: &str) -> PathBuf {
        match name {
            DEFAULT_GRAPH => self.data.clone(),
            other => self.data.join("databases").join(other),
        }
    }

    fn load(&self, name: &str) -> Result<(), String> {
        let dir = self.dir(name);
        std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let wal = dir.join("native.wal");
        let graph = NativeGraph::open_durable(&wal).map_err(|e| format!("{}: {e}", wal.display()))?;
        for c in &self.constraints {
            graph.add_constraint(c.clone()).map_err(|e| format!("graph {name}: {e}"))?;
        }
        self.open.write().expect("lock").insert(name.to_string(), Arc::new(graph));
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<Arc<NativeGraph>> {
        self.open.read().expect("lock").get(name).cloned()
    }

    pub fn names(&self) -> Vec<String> {
        self.open.read().expect("lock").keys().cloned().collect()
    }

    /// All graphs that are open now.
    pub fn all(&self) -> Vec<(String, Arc<NativeGraph>)> {
        self.open.read().expect("lock").iter().map(|(n, g)| (n.clone(), Arc::clone(g))).collect()
    }

    /// Makes an empty graph.
    pub fn create(&self, name: &str) -> Result<(), Refusal> {
        if !good_name(name) {
            return Err(Refusal::BadName);
        }
        if self.get(name).is_some() {
            return Err(Refusal::Exists);
        }
        self.load(name).map_err(Refusal::Failed)
    }

    /// Forgets a graph and removes its files; sessions that are in it keep a
    /// graph that nobody else sees.
    pub fn remove(&self, name: &str) -> Result<(), Refusal> {
        if name == DEFAULT_GRAPH {
            return Err(Refusal::Default);
        }
        if self.open.write().expect("lock").remove(name).is_none() {
            return Err(Refusal::Missing);
        }
        match std::fs::remove_dir_all(self.dir(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Refusal::Failed(e.to_string())),
            _ => Ok(()),
        }
    }
}

/// drevo's rule for the name of a graph.
pub fn good_name(s: &str) -> bool {
    (1..=63).contains(&s.len())
        && !s.starts_with('-')
        && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_made_found_again_and_removed() {
        let dir = std::env::temp_dir().join(format!("drevo-rig-graphs-{}", std::process::id()));
        let graphs = Graphs::open(&dir, &["a".into()], Vec::new()).unwrap();
        graphs.create("b").unwrap();
        assert!(matches!(graphs.create("b"), Err(Refusal::Exists)));
        assert!(matches!(graphs.create("-b"), Err(Refusal::BadName)));
        assert!(matches!(graphs.remove(DEFAULT_GRAPH), Err(Refusal::Default)));
        graphs.remove("a").unwrap();
        assert!(matches!(graphs.remove("a"), Err(Refusal::Missing)));
        drop(graphs);
        let graphs = Graphs::open(&dir, &[], Vec::new()).unwrap();
        assert_eq!(graphs.names(), ["b", DEFAULT_GRAPH]);
        drop(graphs);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn names() {
        for good in ["a", "A_1-x", "_", &"x".repeat(63)] {
            assert!(good_name(good), "{good}");
        }
        for bad in ["", "-a", "a b", "a/b", "..", "ü", &"x".repeat(64)] {
            assert!(!good_name(bad), "{bad}");
        }
    }
}
