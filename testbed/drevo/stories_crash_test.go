package drevo_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/internal/await"
)

// crashStories are those of crashes, timers and full disks.
func crashStories() []telling {
	return []telling{
		{"5.5", "kill -9 while prepared, then commitPrepared or rollbackPrepared", killedWhilePrepared},
		{"10", "the process dies or the connection drops at prepare and commitPrepared", lostAtPrepareAndCommit},
		{"1", "heuristic rollback by the timer, and at once after a restart", heuristicRollback},
		{"1", "the store is locked; kill -9 leaves no stale lock", lockedStore},
		{"1", "a torn last record is dropped, damage before valid records refuses to open", tornLastRecord},
		{"1", "a tear exactly before the newline: the record is kept, the next writes destroy it or the store", tornBeforeNewline},
		{"7", "disk full: texts, what stays, what a restart repairs", diskFull},
		{"7", "disk full one byte short: a prepare refused with an I/O error is prepared after the restart", diskFullOneByteShort},
		{"4", "autocommit: what others saw is what a restart brings back", seenIsRestored},
	}
}

func killedWhilePrepared(t *story) {
	for _, action := range []string{"commitPrepared", "rollbackPrepared"} {
		r := t.startIn(action, "--graphs", "other")
		d := r.open()
		d.run("CREATE (:Before)", nil)
		d.prepared("in-doubt", "CREATE (:A {title: 'a'})-[:R {w: 1}]->(:A {title: 'b'})", "MATCH (n:Before) SET n.v = 7")
		d.on("other").prepared("in-doubt", "CREATE (:A)")
		at := d.run("CALL drevo.tx.listPrepared()", nil)
		r.kill()
		r = t.startIn(action)
		d = r.open()
		t.eq("recovered with its time and size", d.run("CALL drevo.tx.listPrepared()", nil), at)
		t.eq("the other graph too", d.on("other").gids(), []string{"in-doubt"})
		t.eq("invisible", d.count("A"), int64(0))
		_, err := d.try("CREATE (:X)", nil)
		t.fails("fence is up", err, fenced, "=storage error: "+fenceText("in-doubt"), true)
		t.must(d.resolve(action, "in-doubt"), action)
		r.kill()
		d = t.startIn(action).open()
		want := rows{{int64(1)}}
		if action == "rollbackPrepared" {
			want = rows{}
		}
		t.eq(action+" is durable", d.run("MATCH (a:A {title: 'a'})-[r:R]->(b:A), (n:Before {v: 7}) RETURN r.w", nil), want)
		t.fails("resolved", d.resolve(action, "in-doubt"), semantic, "no transaction is prepared as", false)
		d.run("CREATE (:X)", nil)
	}
}

func lostAtPrepareAndCommit(t *story) {
	for _, c := range []struct {
		fault  string
		listed bool
	}{{"prepare:before:exit", false}, {"prepare:after:exit", true}, {"prepare:before:drop", false}, {"prepare:after:drop", true}} {
		r := t.startIn(c.fault, "--fault", c.fault)
		x := r.open().begin()
		x.run("CREATE (:A)", nil)
		err := x.prepare("g")
		var down *neo4j.ConnectivityError
		t.eq(c.fault+": a connectivity error", errors.As(err, &down), true)
		if strings.HasSuffix(c.fault, "exit") {
			t.eq("exit code", r.wait(), 137)
			r = t.startIn(c.fault)
		}
		got := r.open().gids()
		t.eq(c.fault+": prepared", len(got) == 1, c.listed)
	}
	for _, c := range []struct {
		fault   string
		applied int64
	}{{"commitPrepared:before:exit", 0}, {"commitPrepared:after:exit", 1}} {
		r := t.startIn(c.fault, "--fault", c.fault)
		d := r.open()
		d.prepared("g", "CREATE (:Marker {title: 'm'})")
		t.eq(c.fault+" fails", d.resolve("commitPrepared", "g") != nil, true)
		r.wait()
		d = t.startIn(c.fault).open()
		t.eq(c.fault+": marker", d.count("Marker"), c.applied)
		t.eq(c.fault+": still prepared", len(d.gids()) == 1, c.applied == 0)
	}
}

func heuristicRollback(t *story) {
	r := t.start("--prepared-timeout", "1", "--tick", "0.1")
	d := r.open()
	d.prepared("old", "CREATE (:A)")
	t.eq("young", d.gids(), []string{"old"})
	await.Until(t, "rolled back", func() bool { return len(d.gids()) == 0 })
	t.fails("late commit", d.resolve("commitPrepared", "old"), semantic, "heuristically", false)
	r.kill()
	r = t.start()
	d = r.open()
	t.fails("late commit after kill -9", d.resolve("commitPrepared", "old"), semantic, "heuristically", false)
	d.prepared("older", "CREATE (:A)")
	r.kill()
	killed := time.Now()
	await.Until(t, "it is over age", func() bool { return time.Since(killed) > 250*time.Millisecond })
	r = t.start("--prepared-timeout", "0.2", "--tick", "10")
	d = r.open()
	await.Until(t, "rolled back at once", func() bool { return len(d.gids()) == 0 })
	t.fails("over age at start", d.resolve("commitPrepared", "older"), semantic, "heuristically", false)
	t.must(d.resolve("rollbackPrepared", "older"), "rollback agrees")
}

func lockedStore(t *story) {
	r := t.start()
	if out := t.second(r); !strings.Contains(out, "database locked") {
		t.differs("second process: %s", out)
	}
	r.kill()
	t.start().open().run("CREATE (:A)", nil)
}

func tornLastRecord(t *story) {
	r := t.start()
	d := r.open()
	d.run("CREATE (:A)", nil)
	d.prepared("g", "CREATE (:B)")
	r.kill()
	good, err := os.ReadFile(t.wal())
	t.must(err, "read the log")
	t.must(os.WriteFile(t.wal(), append(append([]byte{}, good...), `{"CommitPrep`...), 0o600), "tear")
	r = t.start()
	d = r.open()
	t.eq("prepared", d.gids(), []string{"g"})
	r.kill()
	now, err := os.ReadFile(t.wal())
	t.must(err, "read the log")
	t.eq("the tear is gone", string(now) == string(good), true)
	bad := append([]byte("{\"Upsert\n"), good...)
	t.must(os.WriteFile(t.wal(), bad, 0o600), "damage")
	if out := t.refuses(); !strings.Contains(out, "corrupt write-ahead-log record at byte 0") {
		t.differs("damaged store: %s", out)
	}
}

func tornBeforeNewline(t *story) {
	r := t.start()
	r.open().run("CREATE (:A)", nil)
	r.kill()
	b, err := os.ReadFile(t.wal())
	t.must(err, "read the log")
	t.must(os.WriteFile(t.wal(), b[:len(b)-1], 0o600), "cut the newline")
	r = t.start()
	d := r.open()
	t.eq("kept, though never acknowledged", d.count("A"), int64(1))
	d.run("CREATE (:Acked)", nil)
	r.kill()
	r = t.start()
	d = r.open()
	t.eq("both records are dropped at the next open", []int64{d.count("A"), d.count("Acked")}, []int64{0, 0})
	r.kill()
	t.must(os.WriteFile(t.wal(), b[:len(b)-1], 0o600), "cut the newline")
	r = t.start()
	d = r.open()
	d.run("CREATE (:Acked)", nil)
	d.run("CREATE (:Acked)", nil)
	r.kill()
	if out := t.refuses(); !strings.Contains(out, "corrupt write-ahead-log record at byte 0") {
		t.differs("after two acknowledged writes: %s", out)
	}
	t.must(os.WriteFile(t.wal(), b[:len(b)-1], 0o600), "cut the newline")
	f, err := os.OpenFile(t.wal(), os.O_APPEND|os.O_WRONLY, 0)
	t.must(err, "open the log")
	_, err = f.WriteString("\n")
	t.must(err, "append a newline")
	f.Close()
	r = t.start()
	r.open().run("CREATE (:Acked)", nil)
	r.kill()
	d = t.start().open()
	t.eq("a newline appended while the server is down repairs it", []int64{d.count("A"), d.count("Acked")}, []int64{1, 1})
}

func diskFull(t *story) {
	disk := t.smallDisk()
	big := m{"s": strings.Repeat("x", 40_000)}
	full := "io error: No space left on device (os error 28)"
	broken := "durable WAL is broken: a prior group commit failed to persist"
	r := t.start()
	d := r.open()
	d.run("CREATE (:A)", nil)
	disk.Fill(t)
	_, err := d.try("CREATE (:Auto {s: $s})", big)
	t.fails("autocommit", err, execution, "=storage error: "+full, false)
	t.eq("the refused autocommit write is visible until the restart", d.count("Auto"), int64(1))
	_, err = d.try("CREATE (:Auto)", nil)
	t.fails("next autocommit", err, execution, "=storage error: io error: "+broken, false)
	x := d.begin()
	x.run("CREATE (:A)", nil)
	t.fails("next COMMIT", x.commit(), execution, "=write-ahead log write failed: io error: "+broken, false)
	x = d.begin()
	x.run("CREATE (:A)", nil)
	t.fails("next prepare", x.prepare("g"), execution, "=write-ahead log write failed: io error: "+broken, false)
	disk.Free(t)
	_, err = d.try("CREATE (:Auto)", nil)
	t.fails("with room again", err, execution, broken, false)
	x = d.begin()
	x.run("MATCH (n) RETURN count(n)", nil)
	t.must(x.commit(), "an empty COMMIT needs no log")
	r.kill()
	r = t.start()
	d = r.open()
	t.eq("after the restart the refused write is gone", []int64{d.count("A"), d.count("Auto")}, []int64{1, 0})
	disk.Fill(t)
	x = d.begin()
	x.run("CREATE (:A {s: $s})", big)
	t.fails("COMMIT", x.commit(), execution, "=write-ahead log write failed: "+full, false)
	t.eq("not applied", d.count("A"), int64(1))
	r.kill()
	disk.Free(t)
	r = t.start()
	d = r.open()
	disk.Fill(t)
	x = d.begin()
	x.run("CREATE (:A {s: $s})", big)
	t.fails("prepare", x.prepare("g"), execution, "=write-ahead log write failed: "+full, false)
	t.eq("nothing prepared", d.gids(), []string{})
	r.kill()
	disk.Free(t)
	r = t.start()
	d = r.open()
	t.eq("nor after the restart", d.gids(), []string{})
	// The last page of the log has room for a short record: the gid makes it long.
	gid := "g" + strings.Repeat("x", 6000)
	d.prepared(gid, "CREATE (:A)")
	disk.Fill(t)
	t.fails("commitPrepared", d.resolve("commitPrepared", gid), execution, "=write-ahead log write failed: "+full, false)
	t.eq("still prepared", d.gids(), []string{gid})
	disk.Free(t)
	t.fails("retry without a restart", d.resolve("commitPrepared", gid), execution, "=write-ahead log write failed: io error: "+broken, false)
	r.kill()
	d = t.start().open()
	t.eq("still prepared after the restart", d.gids(), []string{gid})
	t.must(d.resolve("commitPrepared", gid), "commitPrepared after the restart")
	t.eq("applied", d.count("A"), int64(2))
}

func diskFullOneByteShort(t *story) {
	disk := t.smallDisk()
	r := t.start()
	d := r.open()
	size := func() int {
		fi, err := os.Stat(t.wal())
		t.must(err, "stat")
		return int(fi.Size())
	}
	d.prepared("g")
	record := size() - 1 // the length of an empty prepare without its gid
	t.must(d.resolve("rollbackPrepared", "g"), "resolve")
	gid := "g"
	for (size()+record+len(gid))%4096 != 1 {
		gid += "x"
	}
	disk.Fill(t)
	x := d.begin()
	t.fails("prepare", x.prepare(gid), execution, "No space left on device (os error 28)", false)
	t.eq("not prepared", d.gids(), []string{})
	r.kill()
	disk.Free(t)
	t.eq("after the restart", t.start().open().gids(), []string{gid})
}

func seenIsRestored(t *story) {
	const rounds, writers = 60, 4
	r := t.start()
	d := r.open()
	seen := map[string]int64{}
	for i := range rounds {
		title := fmt.Sprint("n", i)
		d.run("CREATE (:R {title: $t, v: 0})", m{"t": title})
		done := make(chan error, writers)
		for w := range writers {
			go func() {
				_, err := d.try("MATCH (n:R {title: $t}) SET n.v = $v", m{"t": title, "v": w + 1})
				done <- err
			}()
		}
		for range writers {
			t.must(<-done, "autocommit SET")
		}
		seen[title] = d.run("MATCH (n:R {title: $t}) RETURN n.v", m{"t": title})[0][0].(int64)
	}
	r.kill()
	d = t.start().open()
	changed := 0
	for title, v := range seen {
		now := d.run("MATCH (n:R {title: $t}) RETURN n.v", m{"t": title})[0][0].(int64)
		if now < 1 || now > writers {
			t.differs("%s is %d after the restart: every write was acknowledged, none of them stands", title, now)
		}
		if now != v {
			changed++
		}
	}
	t.note("%d of %d values written by %d racing autocommit writers differ after the restart", changed, rounds, writers)
}
