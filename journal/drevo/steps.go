package drevo

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// steps keeps the nodes of once-only steps.
type steps struct{ j *Journal }

var (
	_ journal.Steps      = steps{}
	_ journal.StepLister = steps{}
)

// claimed is a step's node with the server's clock as it was read.
type claimed struct {
	journal.Step
	nowMS int64
}

// decodeStep reads a row of stepColumns; a further column is the value.
func decodeStep(row []any) (s claimed, err error) {
	if len(row) < 10 {
		return s, fmt.Errorf("row of %d columns", len(row))
	}
	s.Key = journal.StepKey{Execution: asText(row[0]), Label: asText(row[1]), Input: asText(row[2])}
	s.Holder, s.Token = asText(row[3]), asText(row[4])
	s.Recorded, _ = row[5].(bool)
	var n [4]int64
	for i := range n {
		if n[i], err = asInt[int64](row[6+i]); err != nil {
			return s, err
		}
	}
	s.Until, s.Created, s.Updated, s.nowMS = time.UnixMilli(n[0]), time.UnixMilli(n[1]), time.UnixMilli(n[2]), n[3]
	s.Lapsed = s.nowMS >= n[0]
	if len(row) == 10 || !s.Recorded {
		return s, nil
	}
	if s.Value, err = base64.StdEncoding.DecodeString(asText(row[10])); err != nil {
		return s, fmt.Errorf("value of step %s: %w", s.Key, err)
	}
	return s, nil
}

// findStep reads a step inside a transaction, with its value.
func (j *Journal) findStep(ctx context.Context, tx *bolt.Tx, key journal.StepKey) (s claimed, found bool, err error) {
	rows, err := tx.Run(ctx, j.words.findStep, map[string]any{"title": j.words.stepTitle(key)})
	if err != nil || len(rows) == 0 {
		return s, false, err
	}
	s, err = decodeStep(rows[0])
	return s, err == nil, err
}

// Claim implements journal.Steps.
func (s steps) Claim(ctx context.Context, r journal.StepRequest) (stands journal.Step, answer journal.Answer, err error) {
	j, title := s.j, s.j.words.stepTitle(r.Key)
	answer, err = j.attempt(ctx, func(tx *bolt.Tx) (bool, error) {
		now, err := j.now(ctx, tx)
		if err != nil {
			return false, err
		}
		before, found, err := j.findStep(ctx, tx, r.Key)
		if err != nil {
			return false, err
		}
		stands = before.Step
		if found && (stands.Recorded || !stands.Lapsed || r.Replaces == "" || stands.Token != r.Replaces) {
			return false, nil
		}
		at := time.UnixMilli(now)
		stands = journal.Step{
			Key: r.Key, Holder: r.Holder, Token: r.Token, Until: time.UnixMilli(now + r.TTL.Milliseconds()),
			Lapsed: r.TTL <= 0, Created: at, Updated: at,
		}
		props := map[string]any{
			"title": title, "execution": r.Key.Execution, "label": r.Key.Label, "input": r.Key.Input,
			"holder": r.Holder, "token": r.Token, "recorded": false,
			"expires_at": stands.Until.UnixMilli(), "updated_ms": now,
		}
		if found {
			stands.Created = before.Created
			return true, one(tx.Run(ctx, j.words.changeStep, map[string]any{"title": title, "props": props}))
		}
		props["created_ms"] = now
		_, err = tx.Run(ctx, j.words.createStep, map[string]any{"props": props})
		return true, err
	})
	if err != nil {
		return journal.Step{Key: r.Key}, answer, journal.Wrap("claim step", err)
	}
	return stands, answer, nil
}

// Renew implements journal.Steps.
func (s steps) Renew(ctx context.Context, list []journal.StepRenewal) ([]journal.Answer, error) {
	j := s.j
	titles := make([]any, len(list))
	for i, r := range list {
		titles[i] = j.words.stepTitle(r.Key)
	}
	answers, err := j.renew(ctx, len(list), func(tx *bolt.Tx) (map[int]renewal, error) {
		rows, err := tx.Run(ctx, j.words.findSteps, map[string]any{"titles": titles})
		if err != nil {
			return nil, err
		}
		found := map[journal.StepKey]claimed{}
		for _, row := range rows {
			step, err := decodeStep(row)
			if err != nil {
				return nil, err
			}
			found[step.Key] = step
		}
		standing := map[int]renewal{}
		for i, r := range list {
			if step, ok := found[r.Key]; ok && step.Token == r.Token && !step.Recorded && !step.Lapsed {
				standing[i] = renewal{j.words.stepTitle(r.Key), step.nowMS + r.TTL.Milliseconds()}
			}
		}
		return standing, nil
	}, j.words.renewSteps)
	return answers, journal.Wrap("renew steps", err)
}

// Record implements journal.Steps.
func (s steps) Record(ctx context.Context, r journal.StepRecord) (journal.Answer, error) {
	answer, err := s.j.attempt(ctx, func(tx *bolt.Tx) (bool, error) { return s.j.recordStep(ctx, tx, r) })
	return answer, journal.Wrap("record step", err)
}

// recordStep writes a value on the condition that the claim is r's and nothing is
// recorded.
func (j *Journal) recordStep(ctx context.Context, tx *bolt.Tx, r journal.StepRecord) (won bool, err error) {
	stands, found, err := j.findStep(ctx, tx, r.Key)
	if err != nil || !found || stands.Recorded || stands.Token != r.Token {
		return false, err
	}
	return true, one(tx.Run(ctx, j.words.changeStep, map[string]any{
		"title": j.words.stepTitle(r.Key), "props": map[string]any{
			"recorded": true, "value": base64.StdEncoding.EncodeToString(r.Value), "updated_ms": stands.nowMS,
		},
	}))
}

// Release implements journal.Steps.
func (s steps) Release(ctx context.Context, key journal.StepKey, token string) (journal.Answer, error) {
	j := s.j
	answer, err := j.attempt(ctx, func(tx *bolt.Tx) (bool, error) {
		stands, found, err := j.findStep(ctx, tx, key)
		if err != nil || !found || stands.Recorded || stands.Token != token {
			return false, err
		}
		_, err = tx.Run(ctx, j.words.removeSteps, map[string]any{"titles": []any{j.words.stepTitle(key)}})
		return true, err
	})
	return answer, journal.Wrap("release step", err)
}

// Get implements journal.Steps.
func (s steps) Get(ctx context.Context, key journal.StepKey) (found journal.Step, err error) {
	err = s.j.with(ctx, func() error {
		rows, err := s.j.graph.Read(ctx, s.j.words.findStep, map[string]any{"title": s.j.words.stepTitle(key)})
		if err == nil && len(rows) == 0 {
			err = journal.ErrNotFound
		}
		if err != nil {
			return err
		}
		step, err := decodeStep(rows[0])
		found = step.Step
		return err
	})
	return found, journal.Wrap("read step", err)
}

// List implements journal.StepLister.
func (s steps) List(ctx context.Context, f func(journal.Step) error) error {
	return journal.Wrap("list steps", s.j.with(ctx, func() error {
		var after journal.StepKey
		for {
			rows, err := s.j.graph.Read(ctx, s.j.words.listSteps, map[string]any{
				"execution": after.Execution, "label": after.Label, "input": after.Input, "limit": int64(pageSize),
			})
			if err != nil {
				return err
			}
			for _, row := range rows {
				step, err := decodeStep(row)
				if err == nil {
					err = f(step.Step)
				}
				if err != nil {
					return err
				}
				after = step.Key
			}
			if len(rows) < pageSize {
				return nil
			}
		}
	}))
}

// Remove implements journal.StepLister.
func (s steps) Remove(ctx context.Context, before time.Time, limit int) (removed int, err error) {
	if limit <= 0 {
		return 0, nil
	}
	err = s.j.with(ctx, func() error {
		return s.j.write(ctx, func(tx *bolt.Tx) error {
			now, err := s.j.now(ctx, tx)
			if err != nil {
				return err
			}
			rows, err := tx.Run(ctx, s.j.words.idleSteps, map[string]any{"before": before.UnixMilli(), "now": now, "limit": int64(limit)})
			if err != nil {
				return err
			}
			titles := make([]any, len(rows))
			for i, row := range rows {
				titles[i] = row[0]
			}
			if removed = len(titles); removed == 0 {
				return errUnchanged
			}
			_, err = tx.Run(ctx, s.j.words.removeSteps, map[string]any{"titles": titles})
			return err
		})
	})
	if err != nil {
		return 0, journal.Wrap("remove steps", err)
	}
	return removed, nil
}

var errNoClock = errors.New("the server did not tell its time")

// now is the server's clock inside a transaction.
func (j *Journal) now(ctx context.Context, tx *bolt.Tx) (int64, error) {
	row, err := bolt.Only(tx.Run(ctx, `RETURN timestamp()`, nil))
	if err != nil {
		return 0, err
	}
	now, err := asInt[int64](row[0])
	if err == nil && now == 0 {
		err = errNoClock
	}
	return now, err
}
