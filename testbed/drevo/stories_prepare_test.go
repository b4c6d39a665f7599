package drevo_test

import (
	"fmt"
	"regexp"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// prepareStories are those of prepared transactions and of their resolution.
func prepareStories() []telling {
	return []telling{
		{"5.1", "prepare: invisible, listed, COMMIT and ROLLBACK do nothing; then commitPrepared", preparedThenCommitted},
		{"5.1", "opCount counts engine writes", opCount},
		{"5.2", "prepare refuses in the order of the table and closes the transaction", prepareRefuses},
		{"5.5", "resolution: unknown, twice, heuristic; the other procedures in a transaction", resolution},
		{"5.6", "the fence: who is refused, who is not, and what follows", fence},
		{"5.3", "after prepare another RUN fails, the prepared transaction stays", runAfterPrepare},
		{"5.4", "the trap: a stray RUN after prepare loses the next transaction of the connection", trap},
	}
}

func preparedThenCommitted(t *story) {
	d := t.start().open()
	for _, end := range []string{"COMMIT", "ROLLBACK"} {
		gid := "g-" + end
		x := d.begin()
		x.run("CREATE (:"+end+" {v: 1})", nil)
		before := time.Now().UnixMilli()
		t.eq("row", x.run("CALL drevo.tx.prepare($gid)", gidOf(gid)), rows{{gid}})
		if end == "COMMIT" {
			t.must(x.commit(), end)
		} else {
			t.must(x.rollback(), end)
		}
		t.eq("invisible", d.count(end), int64(0))
		list := d.run("CALL drevo.tx.listPrepared()", nil)
		t.eq("one listed", len(list), 1)
		t.eq("gid and opCount", []any{list[0][0], list[0][2]}, []any{gid, int64(1)})
		at, _ := list[0][1].(string)
		t.eq("preparedAt form", regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(at), true)
		when, err := time.Parse(time.RFC3339, at)
		t.must(err, "preparedAt")
		t.eq("preparedAt value", when.UnixMilli() >= before && when.UnixMilli() <= time.Now().UnixMilli(), true)
		t.eq("resolve elsewhere", d.run("CALL drevo.tx.commitPrepared($gid) YIELD gid RETURN gid", gidOf(gid)), rows{{gid}})
		t.eq("visible", d.count(end), int64(1))
		t.eq("none left", d.gids(), []string{})
	}
	d.prepared("gone", "CREATE (:Gone)")
	t.must(d.resolve("rollbackPrepared", "gone"), "rollbackPrepared")
	t.eq("no trace", d.count("Gone"), int64(0))
	x := d.begin()
	id := x.run("CREATE (n:Gone) RETURN id(n)", nil)
	t.must(x.prepare("gone"), "prepare")
	t.must(x.commit(), "COMMIT")
	t.must(d.resolve("rollbackPrepared", "gone"), "rollbackPrepared")
	t.eq("its node id is used again", d.run("CREATE (n:After) RETURN id(n)", nil), id)
}

func opCount(t *story) {
	d := t.start().open()
	d.run("CREATE (a:S {title: 's', v: 1})-[:R]->(b:S {title: 't'}), (a)-[:R]->(:S)", nil)
	for i, c := range []struct {
		q string
		n int64
	}{
		{"CREATE (:T)", 1},
		{"CREATE (:T)-[:R]->(:T)", 3},
		{"MATCH (n:S {title: 's'}) SET n.v = 2, n.w = 3", 2},
		{"MATCH (n:S {title: 's'}) DETACH DELETE n", 1},
		{"MATCH (n) RETURN count(n)", 0},
	} {
		gid := fmt.Sprint("g", i)
		d.prepared(gid, c.q)
		t.eq(c.q, d.run("CALL drevo.tx.listPrepared() YIELD opCount RETURN opCount", nil), rows{{c.n}})
		t.must(d.resolve("rollbackPrepared", gid), "rollback")
	}
}

func prepareRefuses(t *story) {
	d := t.start().open()
	x := d.begin()
	_, err := x.try("CALL drevo.tx.prepare($gid)", m{"gid": 5})
	t.fails("0a not a string", err, semantic, "=drevo.tx.prepare takes the global transaction id as a string literal or $parameter", false)
	x = d.begin()
	x.run("CREATE (:A)", nil)
	t.must(x.prepare("g1"), "prepare")
	t.fails("0b second prepare", x.prepare("g2"), execution, "=no open transaction to prepare", false)
	t.must(d.resolve("rollbackPrepared", "g1"), "still prepared")
	x, y, z := d.begin(), d.begin(), d.begin()
	d.prepared("g1", "CREATE (:A)")
	x.run("CREATE (:B)", nil)
	t.fails("2 same gid", x.prepare("g1"), semantic, `=a transaction is already prepared as "g1"`, false)
	t.fails("3 fence before conflict", y.prepare("g2"), fenced, "="+fenceText("g1"), true)
	t.must(d.resolve("commitPrepared", "g1"), "resolve")
	z.run("CREATE (:B)", nil)
	t.fails("4 conflict", z.prepare("g3"), outdated, conflictText, true)
	t.eq("nothing prepared", d.gids(), []string{})
	d.run("CREATE (:Free)", nil)
	for _, q := range []string{"CALL drevo.tx.prepare('g')", "CALL drevo.tx.prepare('g') YIELD gid RETURN gid"} {
		_, err = d.try(q, nil)
		t.fails(q, err, semantic, "invalid procedure call `drevo.tx.prepare`: ", false)
		t.fails(q, err, semantic, "explicit transaction", false)
	}
	odd := "a\"b\\c\n\tü\x01"
	d.prepared(odd)
	x = d.begin()
	t.fails("gid in quotes", x.prepare(odd), semantic, `=a transaction is already prepared as "a\"b\\c\n\tü\u{1}"`, false)
	t.must(d.resolve("rollbackPrepared", odd), "resolve the odd gid")
	x = d.begin()
	x.run("CREATE (:Lit)", nil)
	t.eq("literal gid", x.run("CALL drevo.tx.prepare('lit')", nil), rows{{"lit"}})
	t.must(x.commit(), "commit")
	t.must(d.resolve("commitPrepared", "lit"), "resolve")
}

func resolution(t *story) {
	d := t.start().open()
	for _, p := range []string{"commitPrepared", "rollbackPrepared", "heuristicRollback"} {
		t.fails(p, d.resolve(p, "no\"pe"), semantic, "=invalid procedure call `drevo.tx."+p+"`: no transaction is prepared as \"no\\\"pe\"", false)
	}
	d.prepared("g", "CREATE (:A)")
	x := d.begin()
	_, err := x.try("CALL drevo.tx.commitPrepared('g')", nil)
	t.fails("in a transaction", err, unknown, "not available on the active graph engine", false)
	t.must(d.resolve("commitPrepared", "g"), "commit")
	t.fails("again", d.resolve("commitPrepared", "g"), semantic, `no transaction is prepared as "g"`, false)
	t.fails("rollback after commit", d.resolve("rollbackPrepared", "g"), semantic, `no transaction is prepared as "g"`, false)
	d.prepared("h", "CREATE (:H)")
	t.must(d.resolve("heuristicRollback", "h"), "heuristicRollback")
	d.run("CREATE (:Free)", nil)
	text := `transaction "h" was rolled back heuristically after the prepared-transaction timeout; it cannot be committed`
	t.fails("late commit", d.resolve("commitPrepared", "h"), semantic, text, false)
	t.must(d.resolve("rollbackPrepared", "h"), "rollback agrees")
	t.must(d.resolve("rollbackPrepared", "h"), "rollback agrees, again")
	t.fails("heuristic again", d.resolve("heuristicRollback", "h"), semantic, `no transaction is prepared as "h"`, false)
	t.fails("still remembered", d.resolve("commitPrepared", "h"), semantic, text, false)
	x, y := d.begin(), d.begin()
	d.run("CREATE (:Free)", nil)
	t.fails("a refused prepare", x.prepare("h"), outdated, "", true)
	t.must(y.rollback(), "rollback")
	t.fails("does not make it forget", d.resolve("commitPrepared", "h"), semantic, text, false)
	d.prepared("h", "CREATE (:H)")
	t.must(d.resolve("commitPrepared", "h"), "a new prepare starts afresh")
	t.eq("committed", d.count("H"), int64(1))
}

func fence(t *story) {
	d := t.start().open()
	d.run("CREATE (:E {title: 'e', v: 1})", nil)
	before, beforeRO := d.begin(), d.begin()
	before.run("CREATE (:X)", nil)
	beforeRO.run("MATCH (n) RETURN count(n)", nil)
	d.prepared("g1", "MATCH (e:E) SET e.v = 2")
	for _, q := range []string{"CREATE (:X)", "MATCH (e:E) SET e.v = 9", "MATCH (e:E) DELETE e", "MATCH (e:E) CREATE (e)-[:R]->(:X)", "CREATE (:Dup {title: 'e'})"} {
		_, err := d.try(q, nil)
		t.fails(q, err, fenced, "=storage error: "+fenceText("g1"), true)
	}
	d.run("MATCH (n:Nothing) SET n.v = 1", nil)
	d.run("MERGE (e:E {title: 'e'})", nil)
	t.eq("reads see the state before", d.run("MATCH (e:E) RETURN e.v", nil), rows{{int64(1)}})
	t.fails("COMMIT, begun before", before.commit(), fenced, "="+fenceText("g1"), true)
	t.fails("read-only COMMIT", beforeRO.commit(), fenced, "="+fenceText("g1"), true)
	in, reader, later := d.begin(), d.begin(), d.begin()
	in.run("CREATE (:X)", nil)
	t.eq("own write under the fence", in.run("MATCH (n:X) RETURN count(n)", nil), rows{{int64(1)}})
	t.fails("COMMIT, begun during", in.commit(), fenced, "="+fenceText("g1"), true)
	reader.run("MATCH (n) RETURN count(n)", nil)
	t.must(reader.rollback(), "ROLLBACK ends a reader")
	_, err := neo4j.ExecuteQuery(d.ctx, d.drv, "MATCH (n) RETURN count(n)", nil, neo4j.EagerResultTransformer, neo4j.ExecuteQueryWithReadersRouting())
	t.eq("ExecuteQuery of a read fails under the fence", err != nil, true)
	later.run("CREATE (:X)", nil)
	t.must(d.resolve("commitPrepared", "g1"), "resolve")
	t.fails("COMMIT after the fence, begun during", later.commit(), outdated, conflictText, true)
	t.eq("applied", d.run("MATCH (e:E) RETURN e.v", nil), rows{{int64(2)}})
	x := d.begin()
	x.run("CREATE (:X)", nil)
	d.prepared("ro", "MATCH (n) RETURN count(n)")
	_, err = d.try("CREATE (:X)", nil)
	t.fails("an empty prepared transaction fences too", err, fenced, fenceText("ro"), true)
	t.must(d.resolve("rollbackPrepared", "ro"), "resolve")
	t.fails("a rolled-back prepare is a change", x.commit(), outdated, conflictText, true)
}

func runAfterPrepare(t *story) {
	d := t.start().open()
	x := d.begin()
	x.run("CREATE (:A)", nil)
	t.must(x.prepare("g"), "prepare")
	_, err := x.try("RETURN 1", nil)
	t.fails("RUN", err, execution, "=RUN in transaction state without an open transaction", false)
	t.must(x.rollback(), "rollback")
	t.eq("prepared", d.gids(), []string{"g"})
}

func trap(t *story) {
	for _, sticky := range []bool{true, false} {
		args := []string{}
		if !sticky {
			args = []string{"--no-sticky-prepared"}
		}
		r := t.startIn(fmt.Sprint(sticky), args...)
		d := r.open(onePerPool)
		s := d.session()
		next := func() *tx {
			x, err := s.BeginTransaction(d.ctx)
			t.must(err, "BEGIN")
			return &tx{d: d, s: s, ExplicitTransaction: x}
		}
		x := next()
		t.must(x.prepare("g"), "prepare")
		_, err := x.try("RETURN 1", nil)
		t.fails("stray RUN", err, execution, "without an open transaction", false)
		x.Close(d.ctx)
		s.Close(d.ctx)
		t.must(d.resolve("rollbackPrepared", "g"), "resolve")
		s = d.session()
		x = next()
		x.run("CREATE (:Lost)", nil)
		t.must(x.commit(), "COMMIT is acknowledged")
		s.Close(d.ctx)
		want := int64(1)
		if sticky {
			want = 0
		}
		t.eq(fmt.Sprint("committed, sticky=", sticky), d.count("Lost"), want)
	}
}
