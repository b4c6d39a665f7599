package sqljournal

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/rhizodat/rhizodat-go/journal"
)

// leases keeps dat_lease.
type leases struct {
	j       *Journal
	probing bool
}

var _ journal.Leases = leases{}

// leaseStatements are the texts of dat_lease.
type leaseStatements struct{ acquire, renew, stand, release, get, list string }

func (q *statements) leases() {
	const row = `name, holder, token, fence, expires_at,
		CASE WHEN holder IS NULL OR expires_at <= {now} THEN 1 ELSE 0 END`
	// A row that is held by another is not locked: whoever asks in vain must not
	// get in the way of its renewal. One that another transaction has locked is
	// left out, so nobody waits here for a commit that shares its fence. The
	// condition stands twice because a row may be inserted meanwhile.
	q.lease.acquire = q.text(`WITH free AS MATERIALIZED (
			SELECT name FROM {lease} WHERE name = CAST($1 AS text)
			AND (holder IS NULL OR expires_at <= {now} OR holder = CAST($2 AS text)){seize})
		INSERT INTO {lease} AS l (name, holder, token, expires_at, fence)
		SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), {now} + CAST($4 AS bigint), 1
		WHERE EXISTS (SELECT 1 FROM free) OR NOT EXISTS (SELECT 1 FROM {lease} WHERE name = CAST($1 AS text))
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = excluded.token,
			expires_at = excluded.expires_at,
			fence = l.fence + CASE WHEN l.token = excluded.token THEN 0 ELSE 1 END
		WHERE l.holder IS NULL OR l.expires_at <= {now} OR l.holder = excluded.holder
		RETURNING ` + row)
	wanted := `wanted AS (` + q.Records(`$1`, `name text`, `token text`, `fence bigint`, `ttl bigint`) + `)`
	const standing = `FROM {lease} l JOIN wanted w ON w.name = l.name AND w.token = l.token AND w.fence = l.fence
			WHERE l.holder IS NOT NULL AND l.expires_at > {now}`
	q.lease.renew = q.text(`WITH ` + wanted + `, due AS MATERIALIZED (SELECT l.name AS key, w.ttl ` + standing + `{touch})
		UPDATE {lease} AS l SET expires_at = {now} + due.ttl FROM due WHERE l.name = due.key
		RETURNING name, fence`)
	q.lease.stand = q.text(`WITH ` + wanted + ` SELECT l.name, l.fence ` + standing)
	q.lease.release = q.text(`UPDATE {lease} SET holder = NULL
		WHERE name = CAST($1 AS text) AND token = CAST($2 AS text) AND fence = CAST($3 AS bigint) AND holder IS NOT NULL`)
	q.lease.get = q.text(`SELECT ` + row + ` FROM {lease} WHERE name = CAST($1 AS text)`)
	q.lease.list = q.text(`SELECT ` + row + ` FROM {lease} ORDER BY name`)
}

// Acquire implements journal.Leases.
func (l leases) Acquire(ctx context.Context, r journal.LeaseRequest) (stands journal.Lease, answer journal.Answer, err error) {
	if err = l.j.prove(ctx, l.probing); err != nil {
		return stands, answer, journal.Wrap("acquire lease", err)
	}
	err = l.j.with(ctx, func(conn Conn, q *statements) error {
		row, a, err := attempt(ctx, conn, Ask(q.lease.acquire, r.Name, r.Holder, r.Token, r.TTL.Milliseconds()))
		if err != nil {
			return err
		}
		if a == journal.AnswerWon {
			if stands, err = decodeLease(row); err == nil {
				answer = a
			}
			return err
		}
		answer, stands = a, journal.Lease{Name: r.Name}
		if found, err := getLease(ctx, conn, q, r.Name); err == nil {
			stands = found
		}
		return nil // it was refused, whatever the look at it came to
	})
	return stands, answer, journal.Wrap("acquire lease", err)
}

// Renew implements journal.Leases.
func (l leases) Renew(ctx context.Context, list []journal.LeaseRenewal) ([]journal.Answer, error) {
	type item struct {
		Name  string        `json:"name"`
		Token string        `json:"token"`
		Fence journal.Fence `json:"fence"`
		TTL   int64         `json:"ttl"`
	}
	items := make([]item, len(list))
	for i, r := range list {
		items[i] = item{r.Name, r.Token, r.Fence, r.TTL.Milliseconds()}
	}
	wanted, err := json.Marshal(items)
	if err != nil {
		return make([]journal.Answer, len(list)), journal.Wrap("renew leases", err)
	}
	answers, err := l.j.renew(ctx, l.probing, len(list), func(row []any) (int, error) {
		fence, err := asInt[journal.Fence](row[1])
		if err != nil {
			return 0, err
		}
		return asked(slices.IndexFunc(list, func(r journal.LeaseRenewal) bool {
			return r.Name == asText(row[0]) && r.Fence == fence
		}))
	}, func(q *statements) Stmt { return Ask(q.lease.renew, string(wanted)) },
		func(q *statements) Stmt { return Ask(q.lease.stand, string(wanted)) })
	return answers, journal.Wrap("renew leases", err)
}

// Release implements journal.Leases.
func (l leases) Release(ctx context.Context, lease journal.Lease) (journal.Answer, error) {
	a, err := l.j.attempt(ctx, l.probing, func(q *statements) Stmt {
		return Do(q.lease.release, lease.Name, lease.Token, int64(lease.Fence))
	})
	return a, journal.Wrap("release lease", err)
}

// Get implements journal.Leases.
func (l leases) Get(ctx context.Context, name string) (found journal.Lease, err error) {
	err = l.j.with(ctx, func(conn Conn, q *statements) (err error) {
		found, err = getLease(ctx, conn, q, name)
		return err
	})
	return found, journal.Wrap("read lease", err)
}

func getLease(ctx context.Context, conn Conn, q *statements, name string) (journal.Lease, error) {
	res, err := single(ctx, conn, Read, Ask(q.lease.get, name))
	if err != nil {
		return journal.Lease{}, err
	}
	if len(res.Rows) == 0 {
		return journal.Lease{}, journal.ErrNotFound
	}
	return decodeLease(res.Rows[0])
}

// List implements journal.Leases.
func (l leases) List(ctx context.Context) (list []journal.Lease, err error) {
	err = l.j.with(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Read, Ask(q.lease.list))
		if err != nil {
			return err
		}
		for _, row := range res.Rows {
			found, err := decodeLease(row)
			if err != nil {
				return err
			}
			list = append(list, found)
		}
		return nil
	})
	return list, journal.Wrap("list leases", err)
}

func decodeLease(row []any) (journal.Lease, error) {
	l := journal.Lease{Name: asText(row[0]), Holder: asText(row[1]), Token: asText(row[2])}
	fence, err := asInt[journal.Fence](row[3])
	if err != nil {
		return l, err
	}
	until, err := asInt[int64](row[4])
	if err != nil {
		return l, err
	}
	lapsed, err := asInt[int64](row[5])
	l.Fence, l.Until, l.Lapsed = fence, time.UnixMilli(until), lapsed != 0
	return l, err
}
