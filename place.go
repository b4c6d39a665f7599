package rhizodat

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
)

// textPlace says where a store's markers live as far as its URL shows it; two
// spellings of one place compare equal. ok is false where the text does not
// show it: then only the servers can tell (branches.Placer), and they are asked
// before the first unit that has both.
//
// It errs on one side only. Two places that compare equal are refused at open
// and there is no way round it, so what the environment or a role's settings
// may decide (no schema given and different users) is no equality here.
func textPlace(raw string) (place string, ok bool) {
	s, known := knownScheme(raw)
	if !known || s.adapter == nil || s.adapter.place == nil {
		return "", false
	}
	u, reason := splitURL(raw)
	if reason != "" {
		return "", false
	}
	return s.adapter.name + " " + s.adapter.place(s, u), true
}

// postgresPlace: cluster, database, schema.
func postgresPlace(s scheme, u storeURL) string {
	p := u.params()
	user := first(p["user"], decoded(u.user))
	// No database is the user's own, unless PGDATABASE or the service says
	// otherwise, which is why it is not the same text as the user's name.
	database := first(p["database"], p["dbname"], decoded(strings.TrimPrefix(u.path, "/")), "of user "+user)
	return fmt.Sprintf("%q %q %q %q", postgresHosts(s, u, p), p["service"], database, postgresSchema(p, user))
}

// postgresHosts: host= and port= override what stands before the path, as in
// libpq; several hosts are several ways to one cluster, in any order.
func postgresHosts(s scheme, u storeURL, p map[string]string) []string {
	hosts, ports := make([]string, len(u.hosts)), make([]string, len(u.hosts))
	for i, h := range u.hosts {
		hosts[i], ports[i] = splitPort(decoded(h))
	}
	if p["host"] != "" {
		hosts = strings.Split(p["host"], ",")
	}
	if p["port"] != "" {
		ports = strings.Split(p["port"], ",")
	}
	for i, h := range hosts {
		port := ""
		if len(ports) == 1 {
			port = ports[0]
		} else if i < len(ports) {
			port = ports[i]
		}
		hosts[i] = oneHost(h) + ":" + first(port, s.port)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

var searchPathOption = regexp.MustCompile(`(?:-c\s*|--)search_path=((?:\\.|\S)+)`)

// postgresSchema: schema=, or the first of search_path, or the user's default.
func postgresSchema(p map[string]string, user string) string {
	list := first(p["schema"], p["search_path"])
	if list == "" {
		for _, m := range searchPathOption.FindAllStringSubmatch(p["options"], -1) {
			list = strings.ReplaceAll(m[1], `\`, "")
		}
	}
	name, _, _ := strings.Cut(list, ",")
	return first(strings.Trim(name, blanks+`"`), "default of user "+user)
}

// databasePlace: server and database (ClickHouse), server and graph (drevo).
func databasePlace(s scheme, u storeURL) string {
	p := u.params()
	database := first(decoded(strings.Trim(u.path, "/")), p["database"], defaultDatabase[s.adapter.name])
	hosts := make([]string, len(u.hosts))
	for i, h := range u.hosts {
		name, port := splitPort(decoded(h))
		if port = first(port, s.port); s.adapter.name == "clickhouse" && clickhousePorts[port] {
			port = "its own" // one server has its protocols at different ports
		}
		hosts[i] = oneHost(name) + ":" + port
	}
	slices.Sort(hosts)
	return fmt.Sprintf("%q %q", slices.Compact(hosts), database)
}

var (
	defaultDatabase = map[string]string{"clickhouse": "default", "drevo": "drevo"}
	clickhousePorts = map[string]bool{"9000": true, "9440": true, "8123": true, "8443": true}
)

// wholePlace: the server and everything else that is not a secret. For Iceberg,
// where any parameter may name the catalog or its root, and for adapters that
// this package does not know.
func wholePlace(s scheme, u storeURL) string {
	var params []string
	for name, value := range u.params() {
		if !secretParam(name) {
			params = append(params, name+"="+value)
		}
	}
	slices.Sort(params)
	hosts := make([]string, len(u.hosts))
	for i, h := range u.hosts {
		name, port := splitPort(decoded(h))
		hosts[i] = oneHost(name) + ":" + first(port, s.port)
	}
	slices.Sort(hosts)
	return fmt.Sprintf("%s %q %q %q", s.name, hosts, path.Clean("/"+decoded(u.path)), params)
}

// splitPort parts host:port, [v6]:port and either without a port.
func splitPort(host string) (name, port string) {
	if address, rest, found := strings.Cut(host, "]"); found {
		return strings.Trim(address, "["), strings.TrimPrefix(rest, ":")
	}
	name, port, _ = strings.Cut(host, ":")
	return name, port
}

// oneHost makes one spelling of a host's many. The three names of the loopback
// are one host; other addresses of 127/8 are not, servers are bound to them
// apart. A directory (a Unix socket) is a place of its own.
func oneHost(name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, blanks)), ".")
	if addr, err := netip.ParseAddr(name); err == nil {
		name = addr.Unmap().String()
	}
	if name == "127.0.0.1" || name == "::1" {
		return "localhost"
	}
	return name
}

// first returns the first of texts that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
