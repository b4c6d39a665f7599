package clickhouse

import (
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go/hlc"
)

// Options are what a DSN cannot say. The zero Options are usable.
type Options struct {
	// Options of the client stand in for the DSN.
	Client *client.Options

	// Markers: an INSERT outside of a transaction leaves a marker where its
	// table has the columns for it, so that a lost answer can be settled.
	Markers bool
	// MaxPayload bounds the bytes that a unit keeps, compressed. 0 is no bound:
	// the coordinator has its own for what goes into the journal.
	MaxPayload int64
	// Fsync makes Install create our tables with fsync_after_insert and
	// fsync_part_directory, and Examine ask the same of the tables of the
	// application. In a DSN: dat_fsync=1.
	Fsync bool
	// Replacing lets units write to tables of ReplacingMergeTree: a second insert
	// after a crash is then left to the table to merge, the marker alone says that
	// a branch is done. In a DSN: dat_replacing=1.
	Replacing bool
	// Patience is how long an attempt at a decided branch may run before it is
	// ended: by the server for whoever began it, and by everybody who finds it
	// running. 0 is 5 min. One of a branch that may still be given up is ended after
	// 5 s, if Patience is no less.
	Patience time.Duration

	// Logger takes what nobody waits for; nil is slog.Default.
	Logger *slog.Logger
	// Clock stamps inserts outside of a transaction; nil is one of the store's own.
	Clock *hlc.Clock
	// Wall is the clock; nil is hlc.System.
	Wall hlc.Wall
}

// Scheme makes Options stand without a URL in a rhizodat.StoreConfig.
func (Options) Scheme() string { return "clickhouse" }

const (
	defaultPatience = 5 * time.Minute
	// settlePatience is Patience where somebody waits to learn whether a commit
	// has taken effect: no work is lost by ending it.
	settlePatience = 5 * time.Second
	// leavePatience is how long Close waits for attempts. It is below what those
	// who stop services grant one.
	leavePatience = 30 * time.Second
	// defaultConns is the bound of the client's pool where the DSN has none. The
	// application's pool bounds the connections; the client's own 10 would make
	// an eleventh query with open rows wait and then fail.
	defaultConns = 256
	// controlConns is the bound of the store's own pool. It is apart, so that a
	// commit never waits for the application's open rows.
	controlConns = 16
)

// The schemes of a DSN, and what the client calls them.
var clientSchemes = map[string]string{
	"clickhouse":       "clickhouse",
	"clickhouse+http":  "http",
	"clickhouse+https": "https",
}

// Parameters of a DSN that are ours: the client would take them for settings of
// the server.
const (
	keyFsync     = "dat_fsync"
	keyReplacing = "dat_replacing"
)

// parseDSN makes the client's options, and sets ours.
func parseDSN(dsn string, opts *Options) (*client.Options, error) {
	scheme, rest, _ := strings.Cut(dsn, ":")
	name, ok := clientSchemes[scheme]
	if !ok {
		return nil, errors.New("its scheme is none of clickhouse, clickhouse+http, clickhouse+https")
	}
	rest, err := cutOurs(rest, opts)
	if err != nil {
		return nil, err
	}
	if name == "https" && !hasParameter(rest, "secure") {
		separator := "?"
		if strings.Contains(rest, "?") {
			separator = "&"
		}
		rest += separator + "secure=true"
	}
	parsed, err := client.ParseDSN(name + ":" + rest)
	if err != nil {
		return nil, errors.New(reason(rest, err))
	}
	return parsed, nil
}

// cutOurs takes our parameters out. It works on the text, because a DSN may name
// several hosts, which net/url does not understand.
func cutOurs(dsn string, opts *Options) (string, error) {
	base, query, found := strings.Cut(dsn, "?")
	if !found {
		return dsn, nil
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		var flag *bool
		switch key {
		case keyFsync:
			flag = &opts.Fsync
		case keyReplacing:
			flag = &opts.Replacing
		default:
			kept = append(kept, pair)
			continue
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return "", errors.New(key + "= wants 1 or 0")
		}
		*flag = on
	}
	if len(kept) == 0 {
		return base, nil
	}
	return base + "?" + strings.Join(kept, "&"), nil
}

func hasParameter(dsn, key string) bool {
	_, query, _ := strings.Cut(dsn, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); name == key {
			return true
		}
	}
	return false
}

// reason is why the client could not parse a DSN, unless its words would show a
// secret of it.
func reason(dsn string, err error) string {
	const plain = "its DSN is malformed (in a password, / ? # @ and % are percent-encoded)"
	said := err.Error()
	base, query, _ := strings.Cut(dsn, "?")
	secrets := []string{}
	if at := strings.LastIndex(base, "@"); at >= 0 {
		_, password, _ := strings.Cut(base[:at], ":")
		secrets = append(secrets, password)
	}
	if values, err := url.ParseQuery(query); err == nil {
		secrets = append(secrets, values.Get("password"))
	}
	for _, secret := range secrets {
		decoded, err := url.PathUnescape(secret)
		if secret != "" && (strings.Contains(said, secret) || err == nil && strings.Contains(said, decoded)) {
			return plain
		}
	}
	return said
}
