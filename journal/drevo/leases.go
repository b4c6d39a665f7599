package drevo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rhizodat/rhizodat-go/internal/bolt"
	"github.com/rhizodat/rhizodat-go/journal"
)

// leases keeps the nodes of leases. A node is never deleted.
type leases struct{ j *Journal }

var _ journal.Leases = leases{}

var errCount = errors.New("another number of nodes was changed than was found")

// granted is a lease's node with the server's clock as it was read.
type granted struct {
	journal.Lease
	nowMS int64
}

func decodeLease(row []any) (l granted, err error) {
	if len(row) != 6 {
		return l, fmt.Errorf("row of %d columns", len(row))
	}
	l.Name, l.Holder, l.Token = asText(row[0]), asText(row[1]), asText(row[2])
	fence, fenceErr := asInt[journal.Fence](row[3])
	until, untilErr := asInt[int64](row[4])
	now, nowErr := asInt[int64](row[5])
	l.Fence, l.Until, l.nowMS = fence, time.UnixMilli(until), now
	l.Lapsed = l.Holder == "" || now >= until
	return l, errors.Join(fenceErr, untilErr, nowErr)
}

// findLease reads a lease inside a transaction.
func (j *Journal) findLease(ctx context.Context, tx *bolt.Tx, name string) (l granted, found bool, err error) {
	rows, err := tx.Run(ctx, j.words.findLease, map[string]any{"title": j.words.leaseTitle(name)})
	if err != nil || len(rows) == 0 {
		return l, false, err
	}
	l, err = decodeLease(rows[0])
	return l, err == nil, err
}

// Acquire implements journal.Leases.
func (l leases) Acquire(ctx context.Context, r journal.LeaseRequest) (stands journal.Lease, answer journal.Answer, err error) {
	j, title := l.j, l.j.words.leaseTitle(r.Name)
	answer, err = j.attempt(ctx, func(tx *bolt.Tx) (bool, error) {
		now, err := j.now(ctx, tx)
		if err != nil {
			return false, err
		}
		before, found, err := j.findLease(ctx, tx, r.Name)
		if err != nil {
			return false, err
		}
		if stands = before.Lease; found && !stands.Lapsed && stands.Holder != r.Holder {
			return false, nil
		}
		stands = journal.Lease{Name: r.Name, Holder: r.Holder, Token: r.Token, Fence: before.Fence, Until: time.UnixMilli(now + r.TTL.Milliseconds())}
		if !found || before.Token != r.Token { // else the same acquisition, sent again
			stands.Fence++
		}
		stands.Lapsed = r.TTL <= 0
		props := map[string]any{
			"title": title, "name": r.Name, "holder": r.Holder, "token": r.Token,
			"fence": int64(stands.Fence), "expires_at": stands.Until.UnixMilli(),
		}
		if !found {
			_, err = tx.Run(ctx, j.words.createLease, map[string]any{"props": props})
			return true, err
		}
		return true, one(tx.Run(ctx, j.words.changeLease, map[string]any{"title": title, "props": props}))
	})
	if err != nil {
		return journal.Lease{Name: r.Name}, answer, journal.Wrap("acquire lease", err)
	}
	return stands, answer, nil
}

// Renew implements journal.Leases. No renewal waits for a node that another
// transaction has locked: drevo has no such locks.
func (l leases) Renew(ctx context.Context, list []journal.LeaseRenewal) ([]journal.Answer, error) {
	j := l.j
	titles := make([]any, len(list))
	for i, r := range list {
		titles[i] = j.words.leaseTitle(r.Name)
	}
	answers, err := j.renew(ctx, len(list), func(tx *bolt.Tx) (map[int]renewal, error) {
		rows, err := tx.Run(ctx, j.words.findLeases, map[string]any{"titles": titles})
		if err != nil {
			return nil, err
		}
		found := map[string]granted{}
		for _, row := range rows {
			lease, err := decodeLease(row)
			if err != nil {
				return nil, err
			}
			found[lease.Name] = lease
		}
		standing := map[int]renewal{}
		for i, r := range list {
			if lease, ok := found[r.Name]; ok && lease.Token == r.Token && lease.Fence == r.Fence && !lease.Lapsed {
				standing[i] = renewal{j.words.leaseTitle(r.Name), lease.nowMS + r.TTL.Milliseconds()}
			}
		}
		return standing, nil
	}, j.words.renewLeases)
	return answers, journal.Wrap("renew leases", err)
}

// Release implements journal.Leases.
func (l leases) Release(ctx context.Context, lease journal.Lease) (journal.Answer, error) {
	j := l.j
	answer, err := j.attempt(ctx, func(tx *bolt.Tx) (bool, error) {
		stands, found, err := j.findLease(ctx, tx, lease.Name)
		if err != nil || !found || stands.Token != lease.Token || stands.Fence != lease.Fence || stands.Holder == "" {
			return false, err
		}
		return true, one(tx.Run(ctx, j.words.changeLease, map[string]any{
			"title": j.words.leaseTitle(lease.Name), "props": map[string]any{"holder": ""},
		}))
	})
	return answer, journal.Wrap("release lease", err)
}

// Get implements journal.Leases.
func (l leases) Get(ctx context.Context, name string) (journal.Lease, error) {
	list, err := l.read(ctx, l.j.words.findLease, map[string]any{"title": l.j.words.leaseTitle(name)})
	if err == nil && len(list) == 0 {
		err = journal.ErrNotFound
	}
	if err != nil {
		return journal.Lease{}, journal.Wrap("read lease", err)
	}
	return list[0], nil
}

// List implements journal.Leases.
func (l leases) List(ctx context.Context) ([]journal.Lease, error) {
	list, err := l.read(ctx, l.j.words.listLeases, nil)
	return list, journal.Wrap("list leases", err)
}

func (l leases) read(ctx context.Context, text string, params map[string]any) (list []journal.Lease, err error) {
	err = l.j.with(ctx, func() error {
		rows, err := l.j.graph.Read(ctx, text, params)
		if err != nil {
			return err
		}
		for _, row := range rows {
			lease, err := decodeLease(row)
			if err != nil {
				return err
			}
			list = append(list, lease.Lease)
		}
		return nil
	})
	return list, err
}
