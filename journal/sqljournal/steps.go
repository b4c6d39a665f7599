package sqljournal

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rhizodat/rhizodat-go/journal"
)

// steps keeps dat_step.
type steps struct {
	j       *Journal
	probing bool
}

var (
	_ journal.Steps      = steps{}
	_ journal.StepLister = steps{}
)

// stepStatements are the texts of dat_step.
type stepStatements struct {
	claim, renew, stand   string
	record, recordDecided string
	release, get          string
	list, remove          string
}

// key is the row that parameters $1 to $3 name.
const key = `execution = CAST($1 AS text) AND label = CAST($2 AS text) AND input = CAST($3 AS text)`

func (q *statements) steps() {
	const columns = `execution, label, input, holder, token, expires_at,
		CASE WHEN expires_at <= {now} THEN 1 ELSE 0 END,
		CASE WHEN value IS NULL THEN 0 ELSE 1 END, created_ms, updated_ms`
	// Without a claim to replace $7 is NULL, and a row that is there wins.
	q.step.claim = q.text(`INSERT INTO {step} AS s
		(execution, label, input, holder, token, expires_at, created_ms, updated_ms)
		SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text), CAST($5 AS text),
			{now} + CAST($6 AS bigint), {now}, {now} WHERE true
		ON CONFLICT (execution, label, input) DO UPDATE SET holder = excluded.holder, token = excluded.token,
			expires_at = excluded.expires_at, updated_ms = excluded.updated_ms
		WHERE s.value IS NULL AND s.token = CAST($7 AS text) AND s.expires_at <= {now}
		RETURNING ` + columns + `, value`)
	wanted := `wanted AS (` + q.Records(`$1`, `execution text`, `label text`, `input text`, `token text`, `ttl bigint`) + `)`
	const standing = `FROM {step} s JOIN wanted w
			ON w.execution = s.execution AND w.label = s.label AND w.input = s.input AND w.token = s.token
			WHERE s.value IS NULL AND s.expires_at > {now}`
	q.step.renew = q.text(`WITH ` + wanted + `, due AS MATERIALIZED (
			SELECT s.execution AS e, s.label AS l, s.input AS i, w.ttl ` + standing + `{touch})
		UPDATE {step} AS s SET expires_at = {now} + due.ttl FROM due
		WHERE s.execution = due.e AND s.label = due.l AND s.input = due.i
		RETURNING execution, label, input, token`)
	q.step.stand = q.text(`WITH ` + wanted + ` SELECT s.execution, s.label, s.input, s.token ` + standing)
	q.step.record = q.text(`UPDATE {step} SET value = CAST($5 AS text), updated_ms = {now}
		WHERE ` + key + ` AND token = CAST($4 AS text) AND value IS NULL`)
	q.step.recordDecided = q.text(`UPDATE {step} SET value = CAST($5 AS text), updated_ms = {now}
		WHERE ` + key + ` AND token = CAST($4 AS text) AND value IS NULL
		AND EXISTS (SELECT 1 FROM {journal} WHERE dat_txn = CAST($6 AS {uuid}) AND state = ` + literal(journal.StateCommitted) + `)`)
	q.step.release = q.text(`DELETE FROM {step} WHERE ` + key + ` AND token = CAST($4 AS text) AND value IS NULL`)
	q.step.get = q.text(`SELECT ` + columns + `, value FROM {step} WHERE ` + key)
	q.step.list = q.text(`SELECT ` + columns + `, NULL FROM {step}
		WHERE (execution, label, input) > (CAST($1 AS text), CAST($2 AS text), CAST($3 AS text))
		ORDER BY execution, label, input LIMIT CAST($4 AS bigint)`)
	const idle = `updated_ms < CAST($1 AS bigint) AND (value IS NOT NULL OR expires_at <= {now})`
	q.step.remove = q.text(`DELETE FROM {step} WHERE (execution, label, input) IN (
			SELECT execution, label, input FROM {step} WHERE ` + idle + ` ORDER BY updated_ms LIMIT CAST($2 AS bigint))
		AND ` + idle)
}

// Claim implements journal.Steps.
func (s steps) Claim(ctx context.Context, r journal.StepRequest) (stands journal.Step, answer journal.Answer, err error) {
	var replaces any
	if r.Replaces != "" {
		replaces = r.Replaces
	}
	if err = s.j.prove(ctx, s.probing); err != nil {
		return stands, answer, journal.Wrap("claim step", err)
	}
	err = s.j.with(ctx, func(conn Conn, q *statements) error {
		row, a, err := attempt(ctx, conn, Ask(q.step.claim,
			r.Key.Execution, r.Key.Label, r.Key.Input, r.Holder, r.Token, r.TTL.Milliseconds(), replaces))
		if err != nil {
			return err
		}
		if a == journal.AnswerWon {
			if stands, err = decodeStep(row); err == nil {
				answer = a
			}
			return err
		}
		answer, stands = a, journal.Step{Key: r.Key}
		if found, err := getStep(ctx, conn, q, r.Key); err == nil {
			stands = found
		}
		return nil // it was refused, whatever the look at it came to
	})
	return stands, answer, journal.Wrap("claim step", err)
}

// Renew implements journal.Steps.
func (s steps) Renew(ctx context.Context, list []journal.StepRenewal) ([]journal.Answer, error) {
	type item struct {
		Execution string `json:"execution"`
		Label     string `json:"label"`
		Input     string `json:"input"`
		Token     string `json:"token"`
		TTL       int64  `json:"ttl"`
	}
	items := make([]item, len(list))
	for i, r := range list {
		items[i] = item{r.Key.Execution, r.Key.Label, r.Key.Input, r.Token, r.TTL.Milliseconds()}
	}
	wanted, err := json.Marshal(items)
	if err != nil {
		return make([]journal.Answer, len(list)), journal.Wrap("renew steps", err)
	}
	answers, err := s.j.renew(ctx, s.probing, len(list), func(row []any) (int, error) {
		key := journal.StepKey{Execution: asText(row[0]), Label: asText(row[1]), Input: asText(row[2])}
		return asked(slices.IndexFunc(list, func(r journal.StepRenewal) bool {
			return r.Key == key && r.Token == asText(row[3])
		}))
	}, func(q *statements) Stmt { return Ask(q.step.renew, string(wanted)) },
		func(q *statements) Stmt { return Ask(q.step.stand, string(wanted)) })
	return answers, journal.Wrap("renew steps", err)
}

// Record implements journal.Steps.
func (s steps) Record(ctx context.Context, r journal.StepRecord) (journal.Answer, error) {
	a, err := s.j.attempt(ctx, s.probing, func(q *statements) Stmt { return q.recordStep(r, q.step.record) })
	return a, journal.Wrap("record step", err)
}

func (q *statements) recordStep(r journal.StepRecord, text string, more ...any) Stmt {
	return Do(text, append([]any{
		r.Key.Execution, r.Key.Label, r.Key.Input, r.Token, base64.StdEncoding.EncodeToString(r.Value),
	}, more...)...)
}

// Release implements journal.Steps.
func (s steps) Release(ctx context.Context, k journal.StepKey, token string) (journal.Answer, error) {
	a, err := s.j.attempt(ctx, s.probing, func(q *statements) Stmt {
		return Do(q.step.release, k.Execution, k.Label, k.Input, token)
	})
	return a, journal.Wrap("release step", err)
}

// Get implements journal.Steps.
func (s steps) Get(ctx context.Context, k journal.StepKey) (found journal.Step, err error) {
	err = s.j.with(ctx, func(conn Conn, q *statements) (err error) {
		found, err = getStep(ctx, conn, q, k)
		return err
	})
	return found, journal.Wrap("read step", err)
}

func getStep(ctx context.Context, conn Conn, q *statements, k journal.StepKey) (journal.Step, error) {
	res, err := single(ctx, conn, Read, Ask(q.step.get, k.Execution, k.Label, k.Input))
	if err != nil {
		return journal.Step{}, err
	}
	if len(res.Rows) == 0 {
		return journal.Step{}, journal.ErrNotFound
	}
	return decodeStep(res.Rows[0])
}

// List implements journal.StepLister.
func (s steps) List(ctx context.Context, f func(journal.Step) error) error {
	return journal.Wrap("list steps", s.j.with(ctx, func(conn Conn, q *statements) error {
		var after journal.StepKey
		for {
			res, err := single(ctx, conn, Read, Ask(q.step.list, after.Execution, after.Label, after.Input, int64(pageSize)))
			if err != nil {
				return err
			}
			for _, row := range res.Rows {
				found, err := decodeStep(row)
				if err == nil {
					err = f(found)
				}
				if err != nil {
					return err
				}
				after = found.Key
			}
			if len(res.Rows) < pageSize {
				return nil
			}
		}
	}))
}

// Remove implements journal.StepLister.
func (s steps) Remove(ctx context.Context, before time.Time, limit int) (removed int, err error) {
	err = s.j.with(ctx, func(conn Conn, q *statements) error {
		res, err := single(ctx, conn, Forced, Do(q.step.remove, before.UnixMilli(), int64(limit)))
		removed = int(res.Affected)
		return err
	})
	return removed, journal.Wrap("remove steps", err)
}

func decodeStep(row []any) (journal.Step, error) {
	s := journal.Step{
		Key:    journal.StepKey{Execution: asText(row[0]), Label: asText(row[1]), Input: asText(row[2])},
		Holder: asText(row[3]), Token: asText(row[4]),
	}
	var n [5]int64
	for i := range n {
		var err error
		if n[i], err = asInt[int64](row[5+i]); err != nil {
			return s, err
		}
	}
	s.Until, s.Lapsed, s.Recorded = time.UnixMilli(n[0]), n[1] != 0, n[2] != 0
	s.Created, s.Updated = time.UnixMilli(n[3]), time.UnixMilli(n[4])
	if text, ok := row[10].(string); ok {
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return s, fmt.Errorf("value of step %s: %w", s.Key, err)
		}
		s.Value = value
	}
	return s, nil
}
