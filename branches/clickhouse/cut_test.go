package clickhouse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
	"github.com/rhizodat/rhizodat-go/internal/byteproxy"
	"github.com/rhizodat/rhizodat-go/internal/chtest"
)

// The network is cut at the insert and at the marker, before and behind: a
// decided branch comes to its rows, and a commit of one phase is settled as what
// it has become.
func TestNetworkCut(t *testing.T) {
	for _, protocol := range chtest.Protocols {
		for _, when := range []byteproxy.Manner{byteproxy.Before, byteproxy.Behind, byteproxy.Reply} {
			for _, at := range []string{"r` (`k`", "dat_applied` (dat_txn"} {
				t.Run(fmt.Sprintf("%s, %s, %s", protocol, when, strings.Trim(at, "` (")), func(t *testing.T) {
					p := newPlace(t, chtest.Server(t))
					p.table(t, "r", 0)
					network := byteproxy.New(t, p.cluster.Addr(protocol))
					dsn := strings.Replace(p.cluster.DSN(protocol, p.database), p.cluster.Addr(protocol), network.Addr(), 1)
					store, err := clickhouse.Open("s", dsn, clickhouse.Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer store.Close()
					for _, cut := range []func(*testing.T, *clickhouse.Store, func()){p.cutFinish, p.cutCommit} {
						var rule *byteproxy.Rule
						cut(t, store, func() { rule = network.Cut(at, when) })
						if !rule.Met() {
							t.Error("not cut")
						}
					}
				})
			}
		}
	}
}

func (p place) cutFinish(t *testing.T, store *clickhouse.Store, arm func()) {
	t.Helper()
	ref := p.staged(t, store, "r", 50)
	arm()
	mustFinish(t, store, ref)
	p.holds(t, "r", ref, 50)
	p.fate(t, store, ref.Txn, branches.FateApplied)
}

func (p place) cutCommit(t *testing.T, store *clickhouse.Store, arm func()) {
	t.Helper()
	session := connect(t, store)
	u := begin(t, session)
	execute(t, session, "INSERT INTO r (k, s) VALUES (1, 'a'), (2, 'b')")
	u.stage(t, true)
	arm()
	err := u.Commit(t.Context())
	fate := branches.FateApplied
	switch {
	case branches.IsUnknown(err):
		if fate, err = store.Settle(t.Context(), u.txn); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		fate = branches.FateAbsent // it is proved that nothing took effect
	}
	want := map[branches.Fate]int{branches.FateApplied: 2}[fate]
	p.holds(t, "r", u.ref(), want)
	p.fate(t, store, u.txn, fate)
}
