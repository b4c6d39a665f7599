package bolt

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

// DefaultGraph is the graph of a URL that names none.
const DefaultGraph = "drevo"

// Schemes of a drevo graph's URL. neo4j:// asks the server for a routing table,
// which drevo does not have.
var Schemes = []string{"bolt", "bolt+s", "bolt+ssc"}

// Target is a graph as its URL names it.
type Target struct {
	Graph string

	server         string // the URL's scheme, host and port
	user, password string
	known          bool // the URL names a user
}

// graphName is drevo's own rule.
var graphName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$`)

// Parse reads bolt://user:password@host:port/graph. Its errors hold nothing of
// what it was given.
func Parse(raw string) (Target, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return Target{}, errors.New("not a URL (in the user and password / ? # @ : and % are written %2F %3F %23 %40 %3A and %25)")
	case !slices.Contains(Schemes, u.Scheme):
		return Target{}, errors.New("its scheme is none of " + strings.Join(Schemes, ", "))
	case u.Hostname() == "" || strings.Contains(u.Host, ","):
		return Target{}, errors.New("it does not name one host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return Target{}, errors.New("it has options, and a drevo graph has none")
	}
	t := Target{Graph: strings.Trim(u.Path, "/"), server: (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()}
	if t.Graph == "" {
		t.Graph = DefaultGraph
	}
	if !graphName.MatchString(t.Graph) {
		return Target{}, errors.New("its path is no graph's name: 1 to 63 of A-Z, a-z, 0-9, _ and -, the first not -")
	}
	if u.User != nil {
		t.user, t.known = u.User.Username(), true
		t.password, _ = u.User.Password()
	}
	return t, nil
}

// String is the graph's URL without user and password.
func (t Target) String() string { return t.server + "/" + t.Graph }

// GoString keeps %#v from printing the password.
func (t Target) GoString() string { return t.String() }

func (t Target) auth() neo4j.AuthToken {
	if !t.known {
		return neo4j.NoAuth()
	}
	return neo4j.BasicAuth(t.user, t.password, "")
}
