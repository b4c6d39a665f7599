package drevo_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// wireStories are those of the protocol and of the language.
func wireStories() []telling {
	return []telling{
		{"2.1", "handshake picks 4.4 or 4.3, refuses the rest", handshake},
		{"2.2", "HELLO, metadata a client misses, neo4j:// fails", hello},
		{"2.2", "an unknown request fails without changing the state", unknownRequest},
		{"2.3", "states: COMMIT while rows wait, RUN while rows wait, IGNORED, RESET", states},
		{"2.3", "a second Run with undrained rows inside a transaction fails", undrainedRows},
		{"2.4", "values survive, bytes are refused, dates become text", values},
		{"1", "graphs: own titles, own fence; unknown names; no USE or SHOW over Bolt", graphs},
		{"9", "titles: unique over all labels, freed, hidden when not given", titles},
		{"9", "the Cypher of the recipes", recipes},
	}
}

func handshake(t *story) {
	r := t.start()
	_, got := r.dial(0x000001FF, 0x00080805, 0x00020404, 0x00000003)
	t.eq("the slots of driver 5.28", got, []byte{0, 0, 4, 4})
	_, got = r.dial(5, 0x00000304, 0x00000404)
	t.eq("4.3 first", got, []byte{0, 0, 3, 4})
	w, got := r.dial(5, 0x00000204, 0x00000003)
	t.eq("nothing in common", got, []byte{0, 0, 0, 0})
	_, err := w.c.Read(make([]byte, 1))
	t.eq("then closed", errors.Is(err, io.EOF), true)
	c, err := net.Dial("tcp", r.addr())
	t.must(err, "dial")
	c.Write(make([]byte, 20))
	c.SetDeadline(time.Now().Add(5 * time.Second))
	n, _ := c.Read(make([]byte, 4))
	t.eq("bad magic gets no answer", n, 0)
}

func hello(t *story) {
	r := t.start()
	d := r.open()
	t.must(d.drv.VerifyConnectivity(d.ctx), "bolt:// VerifyConnectivity")
	s := d.session()
	res, err := s.Run(d.ctx, "CREATE (n:A {v: 1}) RETURN n.v AS v", nil)
	t.must(err, "create")
	sum, err := res.Consume(d.ctx)
	t.must(err, "consume")
	t.eq("agent", strings.HasPrefix(sum.Server().Agent(), "Neo4j/"), true)
	t.eq("no counters", sum.Counters().ContainsUpdates(), false)
	t.eq("no database", sum.Database() == nil, true)
	t.eq("type", sum.StatementType(), neo4j.StatementTypeReadWrite)
	t.eq("no bookmark", len(s.LastBookmarks()), 0)
	n := r.openAs("neo4j")
	err = n.drv.VerifyConnectivity(n.ctx)
	t.eq("neo4j:// fails with InvalidFormat", err != nil && strings.Contains(err.Error(), badFormat), true)
}

func unknownRequest(t *story) {
	w, _ := t.start().dial(0x00000404)
	tag, _ := w.ask(0x01, m{"user_agent": "probe"})
	t.eq("HELLO", tag, success)
	for _, req := range []struct {
		tag    byte
		fields []any
	}{{0x66, []any{m{}, m{}, m{}}}, {0x6A, nil}, {0x10, []any{"RETURN 1", m{}}}} {
		tag, text := w.ask(req.tag, req.fields...)
		t.eq("FAILURE", tag, failure)
		t.eq("code", strings.Contains(text, badFormat), true)
	}
	tag, _ = w.ask(0x10, "RETURN 1 AS x", m{}, m{})
	t.eq("RUN works at once", tag, success)
}

func states(t *story) {
	w, _ := t.start().dial(0x00000404)
	step := func(what string, want byte, part string, tag byte, fields ...any) {
		got, text := w.ask(tag, fields...)
		if got != want || !strings.Contains(text, part) {
			t.differs("%s: got 0x%X %q, want 0x%X %q", what, got, text, want, part)
		}
	}
	step("RUN before HELLO", failure, badRequest, 0x10, "RETURN 1", m{}, m{})
	step("RESET", success, "", 0x0F)
	step("BEGIN", success, "", 0x11, m{})
	step("BEGIN in BEGIN", failure, "cannot nest", 0x11, m{})
	step("ignored", ignored, "", 0x12)
	step("RESET", success, "", 0x0F)
	step("COMMIT outside", failure, "COMMIT without an active transaction", 0x12)
	step("RESET", success, "", 0x0F)
	step("BEGIN", success, "", 0x11, m{})
	step("RUN", success, "fields", 0x10, "CREATE (n:Kept) RETURN 1", m{}, m{})
	step("COMMIT while streaming", failure, badRequest, 0x12)
	step("RESET rolls back", success, "", 0x0F)
	step("RUN", success, "fields", 0x10, "MATCH (n:Kept) RETURN count(n)", m{}, m{})
	w.send(0x3F, m{"n": -1})
	_, text := w.recv()
	t.eq("rolled back by RESET", text[len(text)-1], byte(0))
	w.recv()
	step("BEGIN", success, "", 0x11, m{})
	step("RUN", success, "fields", 0x10, "UNWIND [1,2,3] AS x RETURN x", m{}, m{})
	step("RUN while streaming", failure, "RUN outside READY / TX_READY state", 0x10, "RETURN 1", m{}, m{})
	step("RESET", success, "", 0x0F)
	step("PULL outside", failure, badRequest, 0x3F, m{"n": -1})
}

func undrainedRows(t *story) {
	d := t.start().open()
	d.fetch = 2
	x := d.begin()
	_, err := x.Run(d.ctx, "UNWIND [1,2,3,4,5] AS x RETURN x", nil)
	t.must(err, "first run")
	_, err = x.try("RETURN 1", nil)
	t.fails("second run", err, badRequest, "RUN outside READY / TX_READY state", false)
	t.eq("all rows in batches of 2", d.run("UNWIND [1,2,3,4,5] AS x RETURN x", nil), rows{{int64(1)}, {int64(2)}, {int64(3)}, {int64(4)}, {int64(5)}})
}

func values(t *story) {
	r := t.start()
	d := r.open()
	in := m{
		"i": int64(math.MaxInt64), "j": int64(math.MinInt64), "f": 1.5, "s": "ü\"'\\", "l": []any{int64(1), "a", true},
		"m": m{"k": []any{int64(-17)}}, "b": false, "t": "the title",
	}
	d.run("CREATE (:V $p) ", m{"p": m{"title": "t", "i": in["i"], "j": in["j"], "f": in["f"], "s": in["s"], "l": in["l"], "m": in["m"], "b": in["b"]}})
	check := func(d *db, when string) {
		got := d.run("MATCH (v:V) RETURN v.i, v.j, v.f, v.s, v.l, v.m, v.b, v.none", nil)
		t.eq(when, got, rows{{in["i"], in["j"], in["f"], in["s"], in["l"], in["m"], in["b"], nil}})
	}
	check(d, "read back")
	n := d.run("MATCH (v:V) RETURN v", nil)[0][0].(neo4j.Node)
	t.eq("labels", n.Labels, []string{"V"})
	t.eq("props", len(n.Props), 8)
	_, err := d.try("RETURN $b", m{"b": []byte{1}})
	t.fails("bytes", err, badFormat, "Bytes parameters are not yet supported by the Cypher engine", false)
	at := time.Date(2024, 2, 29, 13, 5, 6, 500_000_000, time.FixedZone("Offset", 3600))
	t.eq("datetime", d.run("RETURN $d", m{"d": at}), rows{{"2024-02-29T13:05:06.5+01:00"}})
	t.eq("date", d.run("RETURN $d", m{"d": neo4j.DateOf(at)}), rows{{"2024-02-29"}})
	r.kill()
	check(t.start().open(), "after a restart")
}

func graphs(t *story) {
	d := t.start("--graphs", "orders,audit").open()
	o := d.on("orders")
	o.prepared("g1", "CREATE (:T {title: 'x'})")
	d.run("CREATE (:T {title: 'x'})", nil)
	d.on("drevo").run("CREATE (:T {title: 'y'})", nil)
	d.on("audit").run("CREATE (:T {title: 'x'})", nil)
	_, err := o.try("CREATE (:T)", nil)
	t.fails("the fenced graph", err, fenced, fenceText("g1"), true)
	t.fails("resolving in another graph", d.resolve("commitPrepared", "g1"), semantic, `no transaction is prepared as "g1"`, false)
	t.must(o.resolve("commitPrepared", "g1"), "resolve in the right graph")
	t.eq("counts", []int64{d.count("T"), o.count("T"), d.on("audit").count("T")}, []int64{2, 1, 1})
	_, err = d.on("neo4j").try("RETURN 1", nil)
	t.fails("unknown graph", err, "Neo.ClientError.Database.DatabaseNotFound", "=database `neo4j` does not exist", false)
	for _, q := range []string{"SHOW DATABASES", "USE orders", "CREATE DATABASE x", "MATCH (n", "RETURN", "FOO", "MATCH (n)"} {
		_, err = d.try(q, nil)
		t.fails(q, err, syntax, "syntax error", false)
	}
}

func titles(t *story) {
	d := t.start().open()
	d.run("CREATE (:A {title: 'x', v: 1})", nil)
	for _, q := range []string{"CREATE (:B {title: 'x'})", "MERGE (b:B {title: 'x'})", "CREATE (n:B {title: 'y'}) SET n.title = 'x'"} {
		_, err := d.try(q, nil)
		t.fails(q, err, execution, "=storage error: duplicate title: x", false)
	}
	t.eq("nothing of the refused creates but the one whose rename failed", d.count("B"), int64(1))
	x := d.begin()
	_, err := x.try("CREATE (:C {title: 'x'})", nil)
	t.fails("in a transaction, at RUN", err, execution, "=storage error: duplicate title: x", false)
	d.run("CREATE (:N {v: 1})", nil)
	d.run("CREATE (:N {v: 2})", nil)
	t.eq("hidden title", d.run("MATCH (n:N) RETURN n.title, keys(n) ORDER BY n.v", nil), rows{{nil, []any{"v"}}, {nil, []any{"v"}}})
	d.run("MATCH (a:A) SET a.title = 'z'", nil)
	d.run("CREATE (:C {title: 'x'})", nil)
	d.run("MATCH (c:C) DETACH DELETE c", nil)
	d.run("CREATE (:D {title: 'x'})", nil)
	d.run("MATCH (n:D) REMOVE n.title", nil)
	t.eq("removed title is null and free", d.run("MATCH (n:D) RETURN n.title", nil), rows{{nil}})
	d.run("CREATE (:E {title: 'x'})", nil)
	_, err = d.try("CREATE (:E {title: 5})", nil)
	t.fails("title must be text", err, semantic, "type mismatch: expected String", false)
	_, err = d.try("CREATE (n {v: 1})", nil)
	t.fails("a node needs a label", err, semantic, "invalid CREATE pattern: ", false)
}

func recipes(t *story) {
	d := t.start().open()
	d.run("CREATE (:DatApplied {title: $t, dat_txn: $txn, dat_tx_time: $hlc})", m{"t": "DatApplied:1", "txn": "1", "hlc": int64(7)})
	t.eq("marker", d.run("MATCH (m:DatApplied {title: $t}) RETURN m.dat_tx_time AS hlc", m{"t": "DatApplied:1"}), rows{{int64(7)}})
	cas := "MATCH (j:DatJournal {title: $t}) WHERE j.state = $from SET j.state = $to, j.updated_ms = $ms RETURN count(j) AS n"
	d.run("CREATE (:DatJournal {title: $t, state: 'ACTIVE', branches: $json, created_ms: $ms, updated_ms: $ms})", m{"t": "j1", "json": "[]", "ms": int64(1)})
	p := m{"t": "j1", "from": "ACTIVE", "to": "COMMITTED", "ms": int64(2)}
	t.eq("CAS", d.run(cas, p), rows{{int64(1)}})
	t.eq("CAS again", d.run(cas, p), rows{{int64(0)}})
	t.eq("merge", d.run("MERGE (n:L {title: 'a'}) ON CREATE SET n.v = 1 ON MATCH SET n.v = n.v + 1 RETURN n.v", nil), rows{{int64(1)}})
	t.eq("merge again", d.run("MERGE (n:L {title: 'a'}) ON CREATE SET n.v = 1 ON MATCH SET n.v = n.v + 1 RETURN n.v", nil), rows{{int64(2)}})
	d.run("MATCH (a:L) CREATE (a)-[r:KNOWS {since: 3}]->(b:P {title: 'b', v: 9}), (a)<-[:OWNS]-(c:P {title: 'c', v: null})", nil)
	t.eq("pattern", d.run("MATCH (a:L)-[r:KNOWS|LIKES]->(b) WHERE b.v >= 9 AND NOT b.title IN ['z', 'c'] RETURN a.title, type(r), r.since, b.title AS t", nil), rows{{"a", "KNOWS", int64(3), "b"}})
	t.eq("both directions", d.run("MATCH (a:L)--(x) RETURN x.title AS t ORDER BY t DESC SKIP 1 LIMIT 1", nil), rows{{"b"}})
	t.eq("is null", d.run("MATCH (p:P) WHERE p.v IS NULL OR p.v <> 9 RETURN p.title", nil), rows{{"c"}})
	t.eq("group", d.run("MATCH (a)-[r]-(b) RETURN labels(a)[0] AS l, count(*) AS n, collect(b.title) AS t ORDER BY n DESC, l", nil)[0][:2], []any{"L", int64(2)})
	_, err := d.try("MATCH (a:L) DELETE a", nil)
	t.fails("delete with relationships", err, semantic, "invalid mutation: ", false)
	d.run("MATCH (a:L) DETACH DELETE a", nil)
	t.eq("relationships went with it", d.run("MATCH ()-[r]->() RETURN count(r)", nil), rows{{int64(0)}})
	d.run("MATCH (p:P {title: 'b'}) SET p += {w: 1, v: null}", nil)
	t.eq("null removes", d.run("MATCH (p:P {title: 'b'}) RETURN properties(p)", nil), rows{{m{"title": "b", "w": int64(1)}}})
	_, err = d.try("RETURN $nope", nil)
	t.fails("missing parameter", err, "Neo.ClientError.Statement.ParameterMissing", "=missing query parameter `nope`", false)
	_, err = d.try("RETURN x", nil)
	t.fails("unbound", err, semantic, "=unbound variable `x`", false)
	for i := range 21 {
		d.run("CREATE (:Many {v: $v})", m{"v": i})
	}
	t.eq("many", fmt.Sprint(d.run("MATCH (x:Many) RETURN count(DISTINCT x.v), min(x.v), max(x.v), sum(x.v)", nil)), "[[21 0 20 210]]")
}
