//! The Bolt 4.4 session: handshake, messages, states, transactions.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use drevo_core::native::{CommitError, NativeGraph, NativeTxId, PrepareError};

use crate::exec::{self, fail, Failure, Res, EXECUTION, FENCED, SEMANTIC};
use crate::graphs::{Graphs, DEFAULT_GRAPH};
use crate::pack::{self, Val};
use crate::parse::{self, Clause, Expr};
use crate::Fault;

const OUTDATED: &str = "Neo.TransientError.Transaction.Outdated";
const CONSTRAINT: &str = "Neo.ClientError.Schema.ConstraintValidationFailed";
const BAD_FORMAT: &str = "Neo.ClientError.Request.InvalidFormat";
const BAD_STATE: &str = "Neo.ClientError.Request.Invalid";

/// What all connections share.
pub struct Shared {
    pub graphs: Arc<Graphs>,
    /// Keep drevo's flaw: the "prepared" mark of a connection outlives RESET.
    pub sticky_prepared: bool,
    pub faults: Vec<Fault>,
    pub connections: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Connected,
    Ready,
    Streaming,
    TxReady,
    TxStreaming,
    Failed,
}

struct Session {
    shared: Arc<Shared>,
    id: u64,
    state: State,
    /// The open transaction and the graph it runs in.
    tx: Option<(Arc<NativeGraph>, NativeTxId)>,
    /// A prepare succeeded here and its closing message has not come yet.
    prepared: bool,
    rows: VecDeque<Vec<Val>>,
}

type Meta = BTreeMap<String, Val>;

enum Request {
    Hello,
    Goodbye,
    Reset,
    Run(String, Meta, Meta),
    Begin(Meta),
    Commit,
    Rollback,
    Fetch { n: i64, send: bool },
}

enum Reply {
    Success(Meta),
    /// FAILURE; the flag says whether the session enters the Failed state.
    Failure(Failure, bool),
    Ignored,
    Close,
}

/// Serves one connection until it ends; what it left open is rolled back.
pub fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut r = BufReader::new(stream.try_clone()?);
    let mut w = BufWriter::new(stream);
    if !handshake(&mut r, &mut w)? {
        return Ok(());
    }
    let id = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let mut s = Session { shared, id, state: State::Connected, tx: None, prepared: false, rows: VecDeque::new() };
    let done = s.talk(&mut r, &mut w);
    s.roll_back();
    done
}

/// Picks 4.4 or 4.3, the first the client offers exactly.
fn handshake(r: &mut impl Read, w: &mut impl Write) -> io::Result<bool> {
    let mut hello = [0u8; 20];
    r.read_exact(&mut hello)?;
    if hello[..4] != [0x60, 0x60, 0xB0, 0x17] {
        return Ok(false);
    }
    let pick = hello[4..].chunks(4).find(|s| s[3] == 4 && (s[2] == 4 || s[2] == 3));
    w.write_all(&pick.map_or([0; 4], |s| [0, 0, s[2], s[3]]))?;
    w.flush()?;
    Ok(pick.is_some())
}

fn request(bytes: &[u8]) -> Result<Request, String> {
    let Val::Struct(tag, mut fields) = pack::decode(bytes)? else { return Err("message is not a structure".into()) };
    let shape = (tag, fields.as_mut_slice());
    Ok(match shape {
        (0x01, [Val::Map(_)]) => Request::Hello,
        (0x02, []) => Request::Goodbye,
        (0x0F, []) => Request::Reset,
        (0x10, [Val::Str(q), Val::Map(params), Val::Map(extra)]) => {
            Request::Run(std::mem::take(q), std::mem::take(params), std::mem::take(extra))
        }
        (0x11, [Val::Map(extra)]) => Request::Begin(std::mem::take(extra)),
        (0x12, []) => Request::Commit,
        (0x13, []) => Request::Rollback,
        (0x2F | 0x3F, [Val::Map(extra)]) => match extra.get("n") {
            None => Request::Fetch { n: -1, send: tag == 0x3F },
            Some(Val::Int(n)) => Request::Fetch { n: *n, send: tag == 0x3F },
            Some(other) => return Err(format!("n is a {}", other.type_name())),
        },
        (tag, fields) => return Err(format!("unknown request 0x{tag:02X} with {} field(s)", fields.len())),
    })
}

impl Session {
    fn talk(&mut self, r: &mut impl Read, w: &mut impl Write) -> io::Result<()> {
        while let Some(bytes) = pack::read_message(r)? {
            let reply = match request(&bytes) {
                Err(message) => Reply::Failure(Failure { code: BAD_FORMAT, message }, false),
                Ok(Request::Goodbye) => return Ok(()),
                Ok(Request::Reset) => self.reset(),
                Ok(_) if self.state == State::Failed => Reply::Ignored,
                Ok(Request::Fetch { n, send }) => self.fetch(n, send, w)?,
                Ok(other) => self.handle(other).unwrap_or_else(|f| Reply::Failure(f, true)),
            };
            let answer = match reply {
                Reply::Success(meta) => Val::Struct(0x70, vec![Val::Map(meta)]),
                Reply::Failure(f, fatal) => {
                    if fatal {
                        self.state = State::Failed;
                        self.rows.clear();
                    }
                    let meta = [("code", Val::str(f.code)), ("message", Val::Str(f.message))];
                    Val::Struct(0x7F, vec![Val::Map(meta.map(|(k, v)| (k.to_string(), v)).into())])
                }
                Reply::Ignored => Val::Struct(0x7E, Vec::new()),
                Reply::Close => return Ok(()),
            };
            pack::write_message(w, &answer)?;
            w.flush()?;
        }
        Ok(())
    }

    fn handle(&mut self, q: Request) -> Res<Reply> {
        let meta = match (q, self.state) {
            (Request::Hello, State::Connected) => {
                self.state = State::Ready;
                Meta::from([
                    ("server".into(), Val::str("Neo4j/5.26.0-drevo-rig")),
                    ("connection_id".into(), Val::Str(format!("drevo-bolt-{}", self.id))),
                ])
            }
            (Request::Hello, _) => return fail(BAD_STATE, "HELLO after the session was opened"),
            (Request::Begin(extra), State::Ready) => {
                let graph = self.graph(&extra)?;
                let tx = graph.tx_begin();
                self.tx = Some((graph, tx));
                self.state = State::TxReady;
                Meta::new()
            }
            (Request::Begin(_), _) => {
                return fail(BAD_STATE, "BEGIN outside READY state; explicit transactions cannot nest")
            }
            (Request::Commit | Request::Rollback, State::TxReady) if self.prepared => {
                // The transaction left this connection when it was prepared.
                self.prepared = false;
                self.state = State::Ready;
                Meta::new()
            }
            (Request::Commit, State::TxReady) => return self.commit(),
            (Request::Rollback, State::TxReady) => {
                self.roll_back();
                self.state = State::Ready;
                Meta::new()
            }
            (Request::Commit, _) => return fail(BAD_STATE, "COMMIT without an active transaction"),
            (Request::Rollback, _) => return fail(BAD_STATE, "ROLLBACK without an active transaction"),
            (Request::Run(q, params, extra), State::Ready | State::TxReady) => return self.run(&q, params, &extra),
            (Request::Run(..), _) => return fail(BAD_STATE, "RUN outside READY / TX_READY state"),
            (Request::Goodbye | Request::Reset | Request::Fetch { .. }, _) => unreachable!("handled by talk"),
        };
        Ok(Reply::Success(meta))
    }

    fn reset(&mut self) -> Reply {
        self.rows.clear();
        self.roll_back();
        self.state = State::Ready;
        self.prepared &= self.shared.sticky_prepared;
        Reply::Success(Meta::new())
    }

    fn roll_back(&mut self) {
        if let Some((graph, tx)) = self.tx.take() {
            graph.tx_rollback(tx);
        }
    }

    fn graph(&self, extra: &Meta) -> Res<Arc<NativeGraph>> {
        let name = match extra.get("db") {
            Some(Val::Str(s)) if !s.is_empty() => s,
            _ => DEFAULT_GRAPH,
        };
        match self.shared.graphs.get(name) {
            Some(g) => Ok(g),
            None => fail("Neo.ClientError.Database.DatabaseNotFound", format!("database `{name}` does not exist")),
        }
    }

    /// Injected faults: true means the connection has to be dropped.
    fn struck(&self, point: &str) -> bool {
        self.shared.faults.iter().any(|f| f.strikes(point))
    }

    fn commit(&mut self) -> Res<Reply> {
        let Some((graph, tx)) = self.tx.take() else { return fail(BAD_STATE, "COMMIT without an active transaction") };
        if self.struck("commit:before") {
            graph.tx_rollback(tx);
            return Ok(Reply::Close);
        }
        if let Err(e) = graph.tx_commit(tx) {
            let code = match e {
                CommitError::Conflict => OUTDATED,
                CommitError::PreparedPending(_) => FENCED,
                CommitError::Constraint(_) => CONSTRAINT,
                CommitError::Io(_) => EXECUTION,
            };
            return fail(code, e.to_string());
        }
        self.state = State::Ready;
        Ok(if self.struck("commit:after") { Reply::Close } else { Reply::Success(Meta::new()) })
    }

    fn run(&mut self, query: &str, params: Meta, extra: &Meta) -> Res<Reply> {
        let params = params.into_iter().map(|(k, v)| Ok((k, parameter(v)?))).collect::<Res<Meta>>()?;
        let in_tx = self.state == State::TxReady;
        let live = if in_tx { None } else { Some(self.graph(extra)?) };
        let clauses = parse::parse(query)
            .map_err(|message| Failure { code: "Neo.ClientError.Statement.SyntaxError", message })?;
        let mut point = None;
        if let [Clause::Call { name, args, yields: None }] = clauses.as_slice() {
            point = name.strip_prefix("drevo.tx.").filter(|p| *p != "prepare");
            if in_tx && name == "drevo.tx.prepare" {
                return self.prepare(args, &params);
            }
        }
        if point.is_some_and(|p| self.struck(&format!("{p}:before"))) {
            return Ok(Reply::Close);
        }
        let outcome = match (&live, &self.tx) {
            (Some(g), _) => exec::run(g.as_ref(), Some(g), &params, &clauses)?,
            (None, Some((g, tx))) => match g.tx_engine(*tx) {
                Some(engine) => exec::run(&engine, None, &params, &clauses)?,
                None => return fail(EXECUTION, "storage error: the transaction has already been closed"),
            },
            (None, None) => return fail(EXECUTION, "RUN in transaction state without an open transaction"),
        };
        if point.is_some_and(|p| self.struck(&format!("{p}:after"))) {
            return Ok(Reply::Close);
        }
        self.rows = outcome.rows.into();
        Ok(self.streaming(in_tx, outcome.fields))
    }

    fn streaming(&mut self, in_tx: bool, fields: Vec<String>) -> Reply {
        self.state = if in_tx { State::TxStreaming } else { State::Streaming };
        let fields = Val::List(fields.into_iter().map(Val::Str).collect());
        Reply::Success(Meta::from([("fields".into(), fields)]))
    }

    /// `CALL drevo.tx.prepare(gid)`: closes the transaction in every case once
    /// the argument is known to be good.
    fn prepare(&mut self, args: &[Expr], params: &Meta) -> Res<Reply> {
        let gid = match args {
            [Expr::Lit(Val::Str(s))] => s,
            [Expr::Param(p)] if matches!(params.get(p), Some(Val::Str(_))) => match &params[p] {
                Val::Str(s) => s,
                _ => unreachable!("checked above"),
            },
            _ => {
                return fail(
                    SEMANTIC,
                    "drevo.tx.prepare takes the global transaction id as a string literal or $parameter",
                );
            }
        };
        let Some((graph, tx)) = self.tx.take() else { return fail(EXECUTION, "no open transaction to prepare") };
        if self.struck("prepare:before") {
            graph.tx_rollback(tx);
            return Ok(Reply::Close);
        }
        if let Err(e) = graph.tx_prepare(tx, gid) {
            let code = match e {
                PrepareError::UnknownTransaction | PrepareError::DuplicateGid(_) => SEMANTIC,
                PrepareError::Conflict => OUTDATED,
                PrepareError::PreparedPending(_) => FENCED,
                PrepareError::Constraint(_) => CONSTRAINT,
                PrepareError::Io(_) => EXECUTION,
            };
            return fail(code, e.to_string());
        }
        self.prepared = true;
        if self.struck("prepare:after") {
            return Ok(Reply::Close);
        }
        self.rows = VecDeque::from([vec![Val::str(gid)]]);
        Ok(self.streaming(true, vec!["gid".into()]))
    }

    fn fetch(&mut self, n: i64, send: bool, w: &mut impl Write) -> io::Result<Reply> {
        let back = match self.state {
            State::Streaming => State::Ready,
            State::TxStreaming => State::TxReady,
            _ => {
                let message = format!("{} outside a STREAMING state", if send { "PULL" } else { "DISCARD" });
                return Ok(Reply::Failure(Failure { code: BAD_STATE, message }, true));
            }
        };
        let n = usize::try_from(n).unwrap_or(usize::MAX).min(self.rows.len());
        for row in self.rows.drain(..n) {
            if send {
                pack::write_message(w, &Val::Struct(0x71, vec![Val::List(row)]))?;
            }
        }
        let mut meta = Meta::from([("has_more".into(), Val::Bool(!self.rows.is_empty()))]);
        if self.rows.is_empty() {
            self.state = back;
            meta.insert("type".into(), Val::str("rw"));
        }
        Ok(Reply::Success(meta))
    }
}

/// Parameters as the query layer takes them: no bytes, temporal values as text.
fn parameter(v: Val) -> Res<Val> {
    Ok(match v {
        Val::Bytes(_) => return fail(BAD_FORMAT, "Bytes parameters are not yet supported by the Cypher engine"),
        Val::Struct(tag, fields) => match crate::time::structure_text(tag, &fields) {
            Some(text) => Val::Str(text),
            None => return fail(BAD_FORMAT, format!("structure 0x{tag:02X} is not supported as a parameter")),
        },
        Val::List(l) => Val::List(l.into_iter().map(parameter).collect::<Res<_>>()?),
        Val::Map(m) => Val::Map(m.into_iter().map(|(k, v)| Ok((k, parameter(v)?))).collect::<Res<_>>()?),
        other => other,
    })
}
