package rhizodat

import (
	"net/url"
	"strings"
)

// storeURL is a store's URL cut into its parts, all of them as they were
// written. net/url is not asked: it knows no list of hosts, and its errors
// repeat the whole URL with the password in it.
type storeURL struct {
	scheme      string
	user        string
	password    string
	hasUser     bool
	hasPassword bool
	hosts       []string
	path        string // with its slash; empty for none
	query       []param
	hasQuery    bool
}

// param is one name=value behind the "?".
type param struct {
	name, value string
	hasValue    bool
}

const (
	rawAt   = "an \"@\" outside of the user's part (in a password or a name write @ as %40, / as %2F)"
	rawPort = "a port that is not a number (in a password write / as %2F, : as %3A)"
)

// splitURL cuts by libpq's rules (fe-connect.c, conninfo_uri_parse_options),
// the widest of the adapters': the user's part ends at the first "@" before
// any "/", hosts are a list.
//
// The reason it gives for refusing a URL never repeats a part of it. A raw "@"
// or a port that is no number is refused, because the usual cause is a password
// that was pasted without its percent signs, and then no part is what it seems.
func splitURL(raw string) (u storeURL, reason string) {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		return u, "the scheme is not followed by \"//\""
	}
	if strings.ContainsFunc(raw, isControl) {
		return u, "the URL has a control character"
	}
	u.scheme = scheme
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		u.user, u.password, u.hasPassword = strings.Cut(rest[:i], ":")
		u.hasUser = true
		rest = rest[i+1:]
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	u.hasQuery = hasQuery
	hosts := rest
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		hosts, u.path = rest[:i], rest[i:]
	}
	// An "@" in a path is a name like any other where nothing stands before the
	// path that could be a user's part (file:///srv/@data/journal.db).
	if strings.Contains(hosts, "@") || strings.Contains(u.path, "@") && (hosts != "" || u.hasUser) {
		return u, rawAt
	}
	u.hosts = strings.Split(hosts, ",")
	for _, host := range u.hosts {
		if reason := hostReason(host); reason != "" {
			return u, reason
		}
	}
	return u.withQuery(query)
}

func (u storeURL) withQuery(query string) (storeURL, string) {
	if query == "" {
		return u, ""
	}
	for text := range strings.SplitSeq(query, "&") {
		var p param
		p.name, p.value, p.hasValue = strings.Cut(text, "=")
		if strings.Contains(p.name, "@") {
			return u, rawAt
		}
		u.query = append(u.query, p)
	}
	return u, ""
}

func hostReason(host string) string {
	var name, port string
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 || end+1 < len(host) && host[end+1] != ':' {
			return "an IPv6 address without its closing bracket"
		}
		name, port = host[:end+1], strings.TrimPrefix(host[end+1:], ":")
	} else if name, port, _ = strings.Cut(host, ":"); strings.Contains(port, ":") {
		return "a second colon in a host (an IPv6 address stands in brackets)"
	}
	for _, c := range []byte(port) {
		if c < '0' || c > '9' {
			return rawPort
		}
	}
	if strings.ContainsAny(name, blanks) {
		return "a blank in a host"
	}
	return ""
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// params returns the parameters by their decoded names; the last of equals
// counts, as in libpq.
func (u storeURL) params() map[string]string {
	m := make(map[string]string, len(u.query))
	for _, p := range u.query {
		m[decoded(p.name)] = decoded(p.value)
	}
	return m
}

// decoded undoes percent signs and nothing else: a "+" is itself, in libpq and
// in paths. A text with a broken one stays as it is; its adapter refuses it.
func decoded(s string) string {
	if d, err := url.PathUnescape(s); err == nil {
		return d
	}
	return s
}
