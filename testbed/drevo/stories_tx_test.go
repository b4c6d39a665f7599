package drevo_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// txStories are those of transactions and of autocommit.
func txStories() []telling {
	return []telling{
		{"3", "a transaction is private until COMMIT; ROLLBACK and a lost connection undo it", privateUntilCommit},
		{"6", "conflict is whole graph: disjoint writers, read-only transactions", conflictOfWholeGraph},
		{"6", "a refused autocommit write is a change too; a refused COMMIT or prepare is not", refusedWritesCount},
		{"3", "a declared constraint is checked at COMMIT and prepare, not in autocommit, and is not logged", declaredConstraint},
		{"4", "autocommit is applied write by write: an error keeps the earlier ones", autocommitWriteByWrite},
		{"4", "compare-and-set: BEGIN…COMMIT has one winner, autocommit may have two", compareAndSet},
		{"6", "concurrent increments with retry lose nothing", concurrentIncrements},
	}
}

func privateUntilCommit(t *story) {
	r := t.start()
	d := r.open()
	x := d.begin()
	x.run("CREATE (:A {v: 1})", nil)
	t.eq("own write", x.run("MATCH (n:A) RETURN n.v", nil), rows{{int64(1)}})
	t.eq("others do not see it", d.count("A"), int64(0))
	t.must(x.commit(), "commit")
	t.eq("visible", d.count("A"), int64(1))
	x = d.begin()
	x.run("CREATE (:A)", nil)
	t.must(x.rollback(), "rollback")
	other := r.open()
	x = other.begin()
	x.run("CREATE (:A)", nil)
	other.drv.Close(other.ctx)
	t.eq("still one", d.count("A"), int64(1))
	x, late := d.begin(), d.begin()
	late.run("MATCH (n:A) SET n.v = 2", nil)
	t.must(late.commit(), "other commits")
	t.eq("snapshot is frozen", x.run("MATCH (n:A) RETURN n.v", nil), rows{{int64(1)}})
	t.must(x.rollback(), "rollback")
}

func conflictOfWholeGraph(t *story) {
	d := t.start().open()
	a, b, ro := d.begin(), d.begin(), d.begin()
	a.run("CREATE (:A)", nil)
	b.run("CREATE (:B)", nil)
	ro.run("MATCH (n) RETURN count(n)", nil)
	t.must(a.commit(), "first committer")
	t.fails("second committer", b.commit(), outdated, conflictText, true)
	t.fails("read-only COMMIT after a change", ro.commit(), outdated, conflictText, true)
	ro = d.begin()
	ro.run("MATCH (n) RETURN count(n)", nil)
	t.must(ro.commit(), "read-only COMMIT of an unchanged graph")
	a, b = d.begin(), d.begin()
	a.run("MATCH (n) RETURN count(n)", nil)
	b.run("CREATE (:B)", nil)
	t.must(a.commit(), "read-only first")
	t.must(b.commit(), "a read-only COMMIT is no change")
	a = d.begin()
	a.run("CREATE (:A)", nil)
	d.run("CREATE (:C)", nil)
	t.fails("after an autocommit write", a.commit(), outdated, conflictText, true)
	a = d.begin()
	a.run("CREATE (:A)", nil)
	d.run("MATCH (n:C) RETURN n", nil)
	d.run("MATCH (n:Nothing) SET n.v = 1", nil)
	t.must(a.commit(), "reads and writes of zero rows are no change")
}

func refusedWritesCount(t *story) {
	d := t.start().open()
	d.run("CREATE (:A {title: 'x'})", nil)
	a := d.begin()
	a.run("CREATE (:B)", nil)
	_, err := d.try("CREATE (:A {title: 'x'})", nil)
	t.fails("duplicate", err, execution, "duplicate title", false)
	t.fails("the open transaction", a.commit(), outdated, conflictText, true)
	loser, loser2 := d.begin(), d.begin()
	d.run("CREATE (:C)", nil)
	a = d.begin()
	a.run("CREATE (:B)", nil)
	t.fails("refused COMMIT", loser.commit(), outdated, "", true)
	t.fails("refused prepare", loser2.prepare("g"), outdated, conflictText, true)
	t.must(a.commit(), "after refused COMMIT and prepare")
}

func declaredConstraint(t *story) {
	r := t.start("--unique", "User.email")
	d := r.open()
	const code = "Neo.ClientError.Schema.ConstraintValidationFailed"
	text := "=constraint on `User` violated: duplicate value \"a\" for unique property `email`"
	two := "CREATE (:User {email: 'a'}), (:User {email: 'a'})"
	x, y := d.begin(), d.begin()
	x.run(two, nil)
	t.fails("COMMIT", x.commit(), code, text, false)
	y.run(two, nil)
	t.fails("prepare", y.prepare("g"), code, text, false)
	t.eq("nothing prepared", d.gids(), []string{})
	d.run(two, nil)
	x = d.begin()
	x.run("CREATE (:Other)", nil)
	t.fails("an unrelated COMMIT afterwards", x.commit(), code, text, false)
	r.kill()
	x = t.start().open().begin()
	x.run("CREATE (:Other)", nil)
	t.must(x.commit(), "COMMIT after a restart")
}

func autocommitWriteByWrite(t *story) {
	r := t.start()
	d := r.open()
	_, err := d.try("CREATE (:A {title: 'x'}), (:A {title: 'y'}), (:A {title: 'x'}), (:A {title: 'z'})", nil)
	t.fails("third create", err, execution, "duplicate title: x", false)
	t.eq("two stayed", d.count("A"), int64(2))
	r.kill()
	t.eq("and are durable", t.start().open().count("A"), int64(2))
}

func compareAndSet(t *story) {
	d := t.start().open()
	const rounds, racers = 40, 4
	cas := "MATCH (j:J {title: $t}) WHERE j.state = 'A' SET j.state = $me RETURN count(j) AS n"
	race := func(t1 string, one func(me int) bool) (winners int64) {
		d.run("CREATE (:J {title: $t, state: 'A'})", m{"t": t1})
		var wg sync.WaitGroup
		var wins atomic.Int64
		for me := range racers {
			wg.Go(func() {
				if one(me) {
					wins.Add(1)
				}
			})
		}
		wg.Wait()
		return wins.Load()
	}
	double := 0
	for i := range rounds {
		title := fmt.Sprint("auto", i)
		n := race(title, func(me int) bool {
			got, err := d.try(cas, m{"t": title, "me": me})
			return err == nil && got[0][0] == int64(1)
		})
		if n > 1 {
			double++
		}
		title = fmt.Sprint("tx", i)
		n = race(title, func(me int) bool {
			for {
				s := d.drv.NewSession(d.ctx, neo4j.SessionConfig{})
				x, err := s.BeginTransaction(d.ctx)
				if err != nil {
					t.differs("BEGIN: %v", err)
					return false
				}
				res, err := x.Run(d.ctx, cas, m{"t": title, "me": me})
				got, err := collect(d.ctx, res, err)
				won := err == nil && got[0][0] == int64(1)
				if won {
					err = x.Commit(d.ctx)
				} else {
					x.Rollback(d.ctx)
				}
				s.Close(d.ctx)
				if err == nil || !neo4j.IsRetryable(err) {
					return won && err == nil
				}
			}
		})
		t.eq("winners in a transaction", n, int64(1))
	}
	t.note("autocommit: %d of %d races had more than one winner", double, rounds)
}

func concurrentIncrements(t *story) {
	r := t.start()
	d := r.open()
	d.run("CREATE (:C {title: 'c', n: 0})", nil)
	var wg sync.WaitGroup
	var retries atomic.Int64
	for range 4 {
		wg.Go(func() {
			for done := 0; done < 25; {
				s := d.drv.NewSession(d.ctx, neo4j.SessionConfig{})
				x, err := s.BeginTransaction(d.ctx)
				if err == nil {
					res, e := x.Run(d.ctx, "MATCH (c:C) SET c.n = c.n + 1", nil)
					if _, err = collect(d.ctx, res, e); err == nil {
						err = x.Commit(d.ctx)
					}
				}
				s.Close(d.ctx)
				var ne *neo4j.Neo4jError
				if err == nil {
					done++
				} else if retries.Add(1); !errors.As(err, &ne) || ne.Code != outdated {
					t.differs("increment: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.eq("total", d.run("MATCH (c:C) RETURN c.n", nil), rows{{int64(100)}})
	r.kill()
	t.eq("total after kill -9", t.start().open().run("MATCH (c:C) RETURN c.n", nil), rows{{int64(100)}})
	t.note("%d conflicts for 100 increments by 4 writers", retries.Load())
}
