package clickhouse

import (
	"context"
	"math"
	"slices"

	"github.com/rhizodat/rhizodat-go/branches"
)

var _ branches.Capacity = (*Store)(nil)

// Free is the least of what the storage policies of the database's tables have.
func (s *Store) Free(ctx context.Context) (int64, bool, error) { return s.free(ctx, nil) }

// free is the least of what some storage policies have; without any, of those of
// the database's tables. Disks that no such policy uses do not count: they are
// somebody else's. Inside a policy the disks add up, since a part goes to
// whichever has room.
func (s *Store) free(ctx context.Context, policies []string) (int64, bool, error) {
	which := "SELECT storage_policy FROM system.tables WHERE database=" + textList([]string{s.database}) + " AND storage_policy<>''"
	if policies = slices.DeleteFunc(slices.Clone(policies), func(p string) bool { return p == "" }); len(policies) > 0 {
		which = textList(policies)
	}
	var least float64
	var found uint64
	_, err := s.row(ctx, "SELECT min(free),count() FROM (SELECT p.policy_name,sum(toFloat64(d.free_space)) AS free FROM ("+
		"SELECT DISTINCT policy_name,arrayJoin(disks) AS disk FROM system.storage_policies WHERE policy_name IN ("+which+")"+
		") AS p INNER JOIN (SELECT name,free_space FROM system.disks) AS d ON p.disk=d.name GROUP BY p.policy_name)", &least, &found)
	if err != nil {
		return 0, false, s.fail("ask free space", err)
	}
	if found == 0 || least > math.MaxInt64/2 { // an object storage says "all there is"
		return 0, false, nil
	}
	return int64(least), true, nil
}
