//! The part of drevo's HTTP interface that makes and removes graphs:
//! `GET /databases`, `POST /databases {"name": …}`, `DELETE /databases/{name}`.
//! One request a connection; no keep-alive, no chunked bodies.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::{json, Value};

use crate::graphs::{Graphs, Refusal, DEFAULT_GRAPH};

/// No request of this interface is longer.
const LONGEST: u64 = 64 * 1024;

/// Serves until the process ends.
pub fn serve(listener: TcpListener, graphs: Arc<Graphs>) {
    for stream in listener.incoming().flatten() {
        let graphs = Arc::clone(&graphs);
        thread::spawn(move || {
            if let Err(e) = answer(stream, &graphs) {
                eprintln!("http: {e}");
            }
        });
    }
}

fn answer(mut stream: TcpStream, graphs: &Graphs) -> io::Result<()> {
    let mut r = BufReader::new(stream.try_clone()?.take(LONGEST));
    let mut line = String::new();
    r.read_line(&mut line)?;
    let first = line.clone();
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let mut length = 0usize;
    loop {
        line.clear();
        if r.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
    }
    let mut body = Vec::new();
    r.take(length as u64).read_to_end(&mut body)?;
    let (status, body) = route(method, path, &body, graphs);
    let text = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )?;
    stream.flush()
}

fn route(method: &str, path: &str, body: &[u8], graphs: &Graphs) -> (&'static str, Value) {
    let list = || json!({"databases": graphs.names(), "default": DEFAULT_GRAPH});
    let done = |ok, result: Result<(), Refusal>| match result {
        Ok(()) => (ok, list()),
        Err(Refusal::BadName) => ("400 Bad Request", json!({"error": "bad name"})),
        Err(Refusal::Exists) => ("409 Conflict", json!({"error": "it exists"})),
        Err(Refusal::Default) => ("409 Conflict", json!({"error": "the default graph stays"})),
        Err(Refusal::Missing) => ("404 Not Found", json!({"error": "no such graph"})),
        Err(Refusal::Failed(e)) => ("500 Internal Server Error", json!({"error": e})),
    };
    match (method, path) {
        ("GET", "/databases") => ("200 OK", list()),
        ("POST", "/databases") => {
            let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
            done("201 Created", graphs.create(body["name"].as_str().unwrap_or("")))
        }
        ("DELETE", _) if path.starts_with("/databases/") => done("200 OK", graphs.remove(&path["/databases/".len()..])),
        _ => ("404 Not Found", json!({"error": "no such route"})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_routes() {
        let dir = std::env::temp_dir().join(format!("drevo-rig-http-{}", std::process::id()));
        let graphs = Arc::new(Graphs::open(&dir, &[], Vec::new()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        {
            let graphs = Arc::clone(&graphs);
            thread::spawn(move || serve(listener, graphs));
        }
        let ask = |method: &str, path: &str, body: &str| {
            let mut c = TcpStream::connect(addr).unwrap();
            write!(c, "{method} {path} HTTP/1.1\r\nHost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
            let mut text = String::new();
            c.read_to_string(&mut text).unwrap();
            text["HTTP/1.1 ".len()..][..3].to_string()
        };
        assert_eq!(ask("POST", "/databases", r#"{"name":"a"}"#), "201");
        assert_eq!(ask("POST", "/databases", r#"{"name":"a"}"#), "409");
        assert_eq!(ask("POST", "/databases", "nonsense"), "400");
        assert_eq!(ask("GET", "/databases", ""), "200");
        assert_eq!(graphs.names(), ["a", DEFAULT_GRAPH]);
        assert_eq!(ask("DELETE", "/databases/a", ""), "200");
        assert_eq!(ask("DELETE", "/databases/a", ""), "404");
        assert_eq!(ask("DELETE", "/databases/drevo", ""), "409");
        assert_eq!(ask("GET", "/nodes", ""), "404");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
