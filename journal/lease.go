package journal

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rhizodat/rhizodat-go/branches"
)

// Fence is the number of a grant of one lease. It starts at 0, each acquisition
// adds 1 and nothing takes any away, so that a late write under an earlier grant
// can be told. The zero Fence is no grant.
type Fence int64

func (f Fence) String() string { return strconv.FormatInt(int64(f), 10) }

// ParseFence reads what String prints.
func ParseFence(s string) (Fence, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("rhizodat: parse fence: want a number that is not negative")
	}
	return Fence(n), nil
}

// Lease is a row of dat_lease as it stood when it was read. It is never
// deleted: a fence never repeats.
type Lease struct {
	Name   string
	Holder string // empty once it was released
	Token  string // of the acquisition that it was granted to
	Fence  Fence
	Until  time.Time // by the journal's clock
	Lapsed bool      // by the journal's clock: Until was reached. Also set on a released lease
}

// LeaseRequest is one acquisition.
type LeaseRequest struct {
	Name   string
	Holder string
	// Token is random and made for this acquisition alone. It is how a lost
	// reply is told from another grant to the same holder; sent again, the same
	// acquisition keeps its fence.
	Token string
	TTL   time.Duration // from the journal's now; 0 is lapsed at once
}

// LeaseRenewal names a grant that is to live on.
type LeaseRenewal struct {
	Name  string
	Token string
	Fence Fence
	TTL   time.Duration // from the journal's now
}

// Leases keeps named leases. A fence orders the grants of one name:
//
// INVARIANT J4: each fence of a name is granted to one acquisition.
// INVARIANT J5: the fences of a name only rise; release keeps the row.
type Leases interface {
	// Acquire grants the lease where there is no row, or it was released, has
	// lapsed, or is held by the same holder (whose earlier grant is fenced by
	// this one), and raises the fence by one in the same statement. Won: the
	// grant. Lost: the row that stands, as far as it could be read; a row that
	// another transaction has locked is lost too, never waited for.
	Acquire(ctx context.Context, r LeaseRequest) (Lease, Answer, error)
	// Renew sets the expiry of every grant that still stands (token and fence)
	// and has not lapsed, all in one statement. It answers for each: Lost where
	// another grant stands, or this one has lapsed or was released. A row that
	// is locked is left out and Unknown: it must not delay the others.
	Renew(ctx context.Context, list []LeaseRenewal) ([]Answer, error)
	// Release clears the holder of a grant that still stands, and keeps row and fence.
	Release(ctx context.Context, l Lease) (Answer, error)
	// Get reads one lease. ErrNotFound when there never was a grant of it.
	Get(ctx context.Context, name string) (Lease, error)
	// List reads every lease, by name.
	List(ctx context.Context) ([]Lease, error)
}

// Fenced means that a write under a lease came too late: the lease was granted
// again, with a higher fence. Nothing of the write took effect. It is found
// inside an *Aborted, and the same holder must not try again.
type Fenced struct {
	Lease   string
	Fence   Fence // the one the write carried
	Current Fence // the one that stands; 0 where it could not be read
}

func (e *Fenced) Error() string {
	if e.Current == 0 {
		return fmt.Sprintf("rhizodat: write under lease %s: fence %d does not stand any more", e.Lease, e.Fence)
	}
	return fmt.Sprintf("rhizodat: write under lease %s: fence %d came too late, fence %d stands", e.Lease, e.Fence, e.Current)
}

// Kind is Permanent: the work belongs to another holder now.
func (e *Fenced) Kind() branches.Kind { return branches.Permanent }
