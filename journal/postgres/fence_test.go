package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rhizodat/rhizodat-go/internal/await"
	"github.com/rhizodat/rhizodat-go/internal/pgtest"
	"github.com/rhizodat/rhizodat-go/journal"
)

// gate makes every change of a table wait, inside its transaction and after its
// conditions were judged, until open is called.
func gate(t *testing.T, cluster *pgtest.Cluster, dsn, table string) (open func()) {
	t.Helper()
	cluster.Exec(t, dsn, `CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NULL; END $$;
		CREATE TRIGGER gate AFTER UPDATE ON `+table+` FOR EACH ROW EXECUTE FUNCTION gate()`)
	keeper, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keeper.Close(t.Context()) })
	if _, err := keeper.Exec(t.Context(), `SELECT pg_advisory_lock(42)`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := keeper.Exec(t.Context(), `SELECT pg_advisory_unlock(42)`); err != nil {
			t.Error(err)
		}
	}
}

// waiting waits until n backends wait for a lock of the given kind.
func waiting(t *testing.T, cluster *pgtest.Cluster, dsn, kind string) {
	t.Helper()
	await.Until(t, "a backend waits for "+kind, func() bool {
		return cluster.Int(t, dsn, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = '`+kind+`'`) == 1
	})
}

func leasesOf(t *testing.T, j journal.Journal) journal.Leases {
	t.Helper()
	l, err := j.(journal.Conditional).Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func acquire(t *testing.T, l journal.Leases, holder string, ttl time.Duration) (journal.Lease, journal.Answer) {
	t.Helper()
	got, answer, err := l.Acquire(t.Context(), journal.LeaseRequest{Name: "p", Holder: holder, Token: newTxn(t).String(), TTL: ttl})
	if err != nil {
		t.Fatalf("Acquire by %s: %v", holder, err)
	}
	return got, answer
}

// underLease writes a record that is to be decided under a grant.
func underLease(t *testing.T, s journal.Session, l journal.Lease) journal.Decision {
	t.Helper()
	rec := journal.Record{Txn: newTxn(t), Lease: l.Name, Fence: l.Fence}
	if err := s.Create(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	return journal.Decision{Txn: rec.Txn, TxTime: rec.TxTime, WithPrepare: true, Lease: l.Name, Fence: l.Fence}
}

// Write skew: S7 has judged its fence and has not committed yet. Whoever asks
// for the lapsed lease now is refused, at once. Were it granted, the earlier
// fence would commit after the later one was given away.
func TestAnAcquirerDoesNotOvertakeS7(t *testing.T) {
	cluster := pgtest.Server(t)
	j, dsn := installed(t, cluster)
	s, l := session(t, j), leasesOf(t, j)
	first, _ := acquire(t, l, "first", 0)
	decision := underLease(t, s, first)
	open := gate(t, cluster, dsn, "dat_journal")
	decided := make(chan error, 1)
	go func() { decided <- s.Decide(t.Context(), decision) }()
	waiting(t, cluster, dsn, "advisory")
	stands, answer := acquire(t, l, "second", time.Minute)
	if answer != journal.AnswerLost || stands.Holder != "first" {
		t.Errorf("while S7 holds the fence, Acquire answered %v and shows %+v", answer, stands)
	}
	open()
	if err := <-decided; err != nil {
		t.Errorf("Decide: %v", err)
	}
	if second, answer := acquire(t, l, "second", time.Minute); answer != journal.AnswerWon || second.Fence != first.Fence+1 {
		t.Errorf("after S7: %v, %+v", answer, second)
	}
}

// The other order: the next fence is being granted. S7 waits for it and loses.
func TestS7WaitsForAnAcquirer(t *testing.T) {
	cluster := pgtest.Server(t)
	j, dsn := installed(t, cluster)
	s, l := session(t, j), leasesOf(t, j)
	first, _ := acquire(t, l, "first", 0)
	decision := underLease(t, s, first)
	open := gate(t, cluster, dsn, "dat_lease")
	granted := make(chan journal.Lease, 1)
	go func() {
		got, _ := acquire(t, l, "second", time.Minute)
		granted <- got
	}()
	waiting(t, cluster, dsn, "advisory")
	decided := make(chan error, 1)
	go func() { decided <- s.Decide(t.Context(), decision) }()
	waiting(t, cluster, dsn, "transactionid")
	open()
	second := <-granted
	if fenced, ok := errors.AsType[*journal.Fenced](<-decided); !ok || fenced.Current != second.Fence || second.Fence != 2 {
		t.Errorf("Decide: %+v, the grant is %+v", fenced, second)
	}
	expectState(t, s, decision.Txn, journal.StateActive)
}

// A renewal passes a commit under the same fence, and leaves out a row that is
// locked: it delays none of the others.
func TestRenewalsAreNotDelayed(t *testing.T) {
	cluster := pgtest.Server(t)
	j, dsn := installed(t, cluster)
	s, l := session(t, j), leasesOf(t, j)
	held, _ := acquire(t, l, "first", time.Minute)
	other, _, err := l.Acquire(t.Context(), journal.LeaseRequest{Name: "other", Holder: "first", Token: newTxn(t).String(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	renew := func() []journal.Answer {
		t.Helper()
		answers, err := l.Renew(t.Context(), []journal.LeaseRenewal{
			{Name: held.Name, Token: held.Token, Fence: held.Fence, TTL: time.Minute},
			{Name: other.Name, Token: other.Token, Fence: other.Fence, TTL: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		return answers
	}
	decision := underLease(t, s, held)
	open := gate(t, cluster, dsn, "dat_journal")
	decided := make(chan error, 1)
	go func() { decided <- s.Decide(t.Context(), decision) }()
	waiting(t, cluster, dsn, "advisory")
	if got := renew(); got[0] != journal.AnswerWon || got[1] != journal.AnswerWon {
		t.Errorf("beside an S7: %v, want both won", got)
	}
	open()
	if err := <-decided; err != nil {
		t.Error(err)
	}
	locker, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close(t.Context())
	if _, err := locker.Exec(t.Context(), `BEGIN; SELECT 1 FROM dat_lease WHERE name = 'p' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if got := renew(); got[0] != journal.AnswerUnknown || got[1] != journal.AnswerWon {
		t.Errorf("beside a lock on the first: %v, want unknown and won", got)
	}
	if _, err := locker.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if got := renew(); got[0] != journal.AnswerWon || got[1] != journal.AnswerWon {
		t.Errorf("after it: %v, want both won", got)
	}
}

// TTL 30 s: refused at +29 s, granted at +30 s.
func TestExpiryIsJudgedByTheJournal(t *testing.T) {
	cluster := pgtest.Server(t)
	j, dsn := installed(t, cluster)
	l := leasesOf(t, j)
	acquire(t, l, "a", 30*time.Second)
	cluster.Exec(t, dsn, `UPDATE dat_lease SET expires_at = expires_at - 29000 WHERE name = 'p'`)
	if _, answer := acquire(t, l, "b", 30*time.Second); answer != journal.AnswerLost {
		t.Errorf("at +29 s a stranger got %v", answer)
	}
	cluster.Exec(t, dsn, `UPDATE dat_lease SET expires_at = expires_at - 1000 WHERE name = 'p'`)
	before := cluster.Int(t, dsn, `SELECT CAST(date_part('epoch', clock_timestamp()) * 1000 AS bigint)`)
	got, answer := acquire(t, l, "b", 30*time.Second)
	after := cluster.Int(t, dsn, `SELECT CAST(date_part('epoch', clock_timestamp()) * 1000 AS bigint)`)
	if answer != journal.AnswerWon || got.Fence != 2 {
		t.Errorf("at +30 s a stranger got %v, %+v", answer, got)
	}
	if until := got.Until.UnixMilli() - 30_000; until < before || until > after {
		t.Errorf("the new expiry counts from %d, want the journal's clock, %d to %d", until, before, after)
	}
}

// A journal in which something answers for the database is refused.
func TestUnfitJournalIsRefused(t *testing.T) {
	cluster := pgtest.Server(t)
	for name, spoil := range map[string]string{
		"a trigger swallows changes": `CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
			CREATE TRIGGER swallow BEFORE UPDATE ON dat_step FOR EACH ROW EXECUTE FUNCTION swallow()`,
		"a trigger keeps the fence": `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.fence := 1; RETURN NEW; END $$;
			CREATE TRIGGER keep BEFORE UPDATE ON dat_lease FOR EACH ROW EXECUTE FUNCTION keep()`,
		"a trigger keeps every claim alive": `CREATE FUNCTION live() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.expires_at := NEW.expires_at + 60000; RETURN NEW; END $$;
			CREATE TRIGGER live BEFORE INSERT ON dat_step FOR EACH ROW EXECUTE FUNCTION live()`,
	} {
		t.Run(name, func(t *testing.T) {
			j, dsn := installed(t, cluster)
			cluster.Exec(t, dsn, spoil)
			for range 2 {
				_, _, err := leasesOf(t, j).Acquire(t.Context(), journal.LeaseRequest{Name: "p", Holder: "a", Token: "t", TTL: time.Minute})
				if unfit, ok := errors.AsType[*journal.Unfit](err); !ok || unfit.Check == "" {
					t.Errorf("Acquire: %v, want *Unfit", err)
				}
			}
			active(t, session(t, j)) // what needs none of it goes on
		})
	}
}

// A grant and a value that were acknowledged survive a crash of the server: a
// lost grant would make a fence repeat.
func TestCrashKeepsFences(t *testing.T) {
	cluster := lazy(t)
	j, dsn := installed(t, cluster)
	l := leasesOf(t, j)
	s, err := j.(journal.Conditional).Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := journal.StepKey{Execution: "e", Label: "l", Input: "0"}
	claim := func(token, replaces string) journal.Answer {
		t.Helper()
		_, a, err := s.Claim(t.Context(), journal.StepRequest{Key: key, Holder: "a", Token: token, TTL: 0, Replaces: replaces})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	crash := func() {
		t.Helper()
		cluster.Kill(t)
		cluster.Start(t)
		await.Until(t, "the journal answers", func() bool {
			_, err := l.List(t.Context())
			return err == nil
		})
	}
	acquire(t, l, "a", 0)
	if claim("1", "") != journal.AnswerWon {
		t.Fatal("the claim lost")
	}
	crash()
	if got, answer := acquire(t, l, "b", 0); answer != journal.AnswerWon || got.Fence != 2 {
		t.Errorf("after the crash b got %v, %+v, want fence 2", answer, got)
	}
	if claim("2", "") != journal.AnswerLost || claim("3", "1") != journal.AnswerWon {
		t.Error("the claim was lost in the crash")
	}
	if a, err := s.Record(t.Context(), journal.StepRecord{Key: key, Token: "3", Value: []byte("v")}); err != nil || a != journal.AnswerWon {
		t.Fatal(a, err)
	}
	crash()
	if got, err := s.Get(t.Context(), key); err != nil || string(got.Value) != "v" {
		t.Errorf("after the crash the step is %+v, %v", got, err)
	}
	if n := cluster.Int(t, dsn, `SELECT fence FROM dat_lease WHERE name = 'p'`); n != 2 {
		t.Errorf("after the crash the fence is %d", n)
	}
}
