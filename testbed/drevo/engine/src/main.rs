//! `drevo-rig`: a Bolt 4.4 server over the real drevo-core engine, for tests.

mod bolt;
mod exec;
mod graphs;
mod http;
mod pack;
mod parse;
mod time;

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use drevo_core::model::now_ms;
use drevo_core::native::Constraint;

use graphs::{good_name, Graphs};

const HELP: &str = "\
drevo-rig: a Bolt 4.4 server over the real drevo-core 0.1.1 engine, for tests

usage: drevo-rig --data DIR [options]

  --data DIR               where the write-ahead logs live (created if absent)
  --listen ADDR            default 127.0.0.1:0; port 0 picks a free one
  --http ADDR              serve drevo's routes that make and remove graphs, /databases;
                           without it none; port 0 picks a free one
  --graphs A,B             create these graphs beside the default one, `drevo`
  --prepared-timeout SECS  roll back heuristically after this age; 0 = never (default)
  --tick SECS              how often the age is checked (default 10; fractions allowed)
  --unique LABEL.PROPERTY  declare an engine constraint in every graph; it is checked at
                           COMMIT and prepare only and forgotten at the end, as in drevo
  --no-sticky-prepared     without drevo's flaw of a prepared mark that outlives RESET
  --fault POINT:ACTION     POINT is prepare, commit, commitPrepared, rollbackPrepared or
                           heuristicRollback, then :before or :after; ACTION is drop
                           (close the connection) or exit (end the process). Strikes
                           once; may be given several times
  --exit-with-stdin        end when standard input is closed
  --help                   this text

Prints one line of JSON once it listens: {\"addr\":…,\"http\":…,\"graphs\":[…],\"pid\":…}
Exit codes: 1 the store or the port cannot be opened, 2 bad usage.
";

/// One injected fault, e.g. `prepare:after:exit`.
pub struct Fault {
    point: String,
    exit: bool,
    spent: AtomicBool,
}

impl Fault {
    fn parse(text: &str) -> Result<Fault, String> {
        const POINTS: [&str; 5] = ["prepare", "commit", "commitPrepared", "rollbackPrepared", "heuristicRollback"];
        match text.split(':').collect::<Vec<_>>().as_slice() {
            [p, when @ ("before" | "after"), action @ ("drop" | "exit")] if POINTS.contains(p) => {
                Ok(Fault { point: format!("{p}:{when}"), exit: *action == "exit", spent: AtomicBool::new(false) })
            }
            _ => Err(format!("--fault {text}: expected POINT:before|after:drop|exit")),
        }
    }

    /// True when the connection has to be dropped here; may end the process.
    pub fn strikes(&self, point: &str) -> bool {
        if self.point != point || self.spent.swap(true, Ordering::SeqCst) {
            return false;
        }
        if self.exit {
            std::process::exit(137);
        }
        true
    }
}

struct Options {
    listen: String,
    http: Option<String>,
    data: PathBuf,
    graphs: Vec<String>,
    unique: Vec<Constraint>,
    timeout_ms: i64,
    tick: Duration,
    sticky_prepared: bool,
    exit_with_stdin: bool,
    faults: Vec<Fault>,
}

fn options() -> Result<Options, String> {
    let mut o = Options {
        listen: "127.0.0.1:0".into(),
        http: None,
        data: PathBuf::new(),
        graphs: Vec::new(),
        unique: Vec::new(),
        timeout_ms: 0,
        tick: Duration::from_secs(10),
        sticky_prepared: true,
        exit_with_stdin: false,
        faults: Vec::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        let seconds = |s: String| match s.parse::<f64>() {
            Ok(n) if (0.0..1e9).contains(&n) => Ok(n),
            _ => Err(format!("`{s}` is not a number of seconds")),
        };
        match arg.as_str() {
            "--listen" => o.listen = value()?,
            "--http" => o.http = Some(value()?),
            "--data" => o.data = value()?.into(),
            "--graphs" => o.graphs.extend(value()?.split(',').filter(|s| !s.is_empty()).map(String::from)),
            "--unique" => o.unique.push(unique(&value()?)?),
            "--prepared-timeout" => o.timeout_ms = (seconds(value()?)? * 1000.0) as i64,
            "--tick" => o.tick = Duration::from_secs_f64(seconds(value()?)?.max(0.01)),
            "--fault" => o.faults.push(Fault::parse(&value()?)?),
            "--no-sticky-prepared" => o.sticky_prepared = false,
            "--exit-with-stdin" => o.exit_with_stdin = true,
            "--help" | "-h" => {
                print!("{HELP}");
                std::process::exit(0);
            }
            other => return Err(format!("unknown option {other}; see --help")),
        }
    }
    if o.data.as_os_str().is_empty() {
        return Err("--data is required; see --help".into());
    }
    match o.graphs.iter().find(|g| !good_name(g)) {
        Some(bad) => Err(format!("graph name `{bad}`: 1 to 63 of A-Z a-z 0-9 _ -, not starting with -")),
        None => Ok(o),
    }
}

fn unique(text: &str) -> Result<Constraint, String> {
    match text.split_once('.') {
        Some((kind, property)) => Ok(Constraint::UniqueNodeProperty { kind: kind.into(), property: property.into() }),
        None => Err(format!("--unique {text}: expected LABEL.PROPERTY")),
    }
}

/// At once and then at every tick: rolls back over-age prepared transactions
/// and drops the engine's change feed, which nothing here reads.
fn sweep(shared: &bolt::Shared, timeout_ms: i64, tick: Duration) {
    loop {
        for (name, graph) in shared.graphs.all() {
            for p in graph.list_prepared() {
                if timeout_ms > 0 && now_ms() - p.prepared_at_ms >= timeout_ms {
                    let done = graph.heuristic_rollback_prepared(&p.gid);
                    eprintln!("heuristic rollback of {:?} in {name}: {done:?}", p.gid);
                }
            }
            graph.trim_before(graph.change_head());
        }
        thread::sleep(tick);
    }
}

fn serve(o: Options) -> Result<(), String> {
    let graphs = Arc::new(Graphs::open(&o.data, &o.graphs, o.unique)?);
    let bind = |addr: &str| TcpListener::bind(addr).map_err(|e| format!("{addr}: {e}"));
    let address = |l: &TcpListener| l.local_addr().map(|a| a.to_string()).map_err(|e| e.to_string());
    let listener = bind(&o.listen)?;
    let mut ready = serde_json::json!({
        "addr": address(&listener)?, "http": null, "graphs": graphs.names(), "pid": std::process::id()
    });
    if let Some(http) = &o.http {
        let listener = bind(http)?;
        ready["http"] = address(&listener)?.into();
        let graphs = Arc::clone(&graphs);
        thread::spawn(move || http::serve(listener, graphs));
    }
    let shared = Arc::new(bolt::Shared {
        graphs,
        sticky_prepared: o.sticky_prepared,
        faults: o.faults,
        connections: AtomicU64::new(0),
    });
    {
        let shared = Arc::clone(&shared);
        thread::spawn(move || sweep(&shared, o.timeout_ms, o.tick));
    }
    if o.exit_with_stdin {
        thread::spawn(|| {
            let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
            std::process::exit(0);
        });
    }
    println!("{ready}");
    io::stdout().flush().map_err(|e| e.to_string())?;
    for stream in listener.incoming().flatten() {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            if let Err(e) = bolt::serve(stream, shared) {
                eprintln!("connection: {e}");
            }
        });
    }
    Ok(())
}

fn main() {
    let (code, message) = match options() {
        Err(e) => (2, e),
        Ok(o) => match serve(o) {
            Ok(()) => return,
            Err(e) => (1, e),
        },
    };
    eprintln!("drevo-rig: {message}");
    std::process::exit(code);
}
