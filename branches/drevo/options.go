package drevo

import (
	"errors"
	"strings"
	"time"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"

	"github.com/rhizodat/rhizodat-go/hlc"
)

// Options are what a URL cannot say. The zero Options are usable.
type Options struct {
	// Configure may change the configuration of the Bolt driver: TLS, timeouts,
	// logging. Nil changes nothing.
	Configure func(*config.Config)
	// PreparedTimeout is the server's DREVO_PREPARED_TX_TIMEOUT_SECS, after which
	// it rolls a prepared transaction back by itself. Bolt does not tell it; Examine
	// compares it with Patience. 0: not known. In a URL: dat_prepared_timeout=10m.
	PreparedTimeout time.Duration
	// Patience is how long a decided branch may stay prepared before somebody
	// finishes it: the finisher's patience and recovery's. 0 is 45 s.
	Patience time.Duration
	// Wall is the clock; nil is hlc.System.
	Wall hlc.Wall
}

// Scheme makes Options stand without a URL in a rhizodat.StoreConfig.
func (Options) Scheme() string { return "bolt" }

const (
	defaultPatience = 45 * time.Second
	// workConns bounds the connections of the application's statements. Its own
	// pool bounds them already; the driver's 100 would make the next one wait.
	workConns = 1 << 16
	// controlConns bounds the store's own. They are apart, so that the end of a
	// decided unit never waits for the application.
	controlConns = 16
)

// keyPreparedTimeout is the one parameter of a URL. It is ours: drevo has none.
const keyPreparedTimeout = "dat_prepared_timeout"

// cutOurs takes our parameter out of a URL. Its errors hold nothing of the URL.
func cutOurs(url string, opts *Options) (string, error) {
	base, query, found := strings.Cut(url, "?")
	if !found {
		return url, nil
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key != keyPreparedTimeout {
			kept = append(kept, pair)
			continue
		}
		timeout, err := time.ParseDuration(value)
		if err != nil || timeout <= 0 {
			return "", errors.New(keyPreparedTimeout + "= wants a duration above 0, such as 10m")
		}
		opts.PreparedTimeout = timeout
	}
	if len(kept) == 0 {
		return base, nil
	}
	return base + "?" + strings.Join(kept, "&"), nil
}
