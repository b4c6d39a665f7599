package rhizodat

import (
	"net/url"
	"strings"
)

// mask stands for a secret, as in net/url's Redacted.
const mask = "xxxxx"

// secretWords are found in the names of parameters that hold a secret: those of
// pgx, clickhouse-go, the Neo4j drivers and Iceberg's catalogs and object
// stores (s3.secret-access-key, adls.auth.shared-key.account.key,
// header.Authorization, …). s3.access-key-id, sslkey and passfile are names and
// places, not secrets.
var secretWords = []string{
	"password", "passwd", "passphrase", "pwd", "secret", "token", "credential",
	"signature", "authorization", "cookie", "connection-string",
	"account.key", "account-key", "account_key", "shared-key.key",
	"api-key", "api_key", "apikey", "private-key", "private_key", "encryption-key",
}

// secretParam reports whether a parameter of this name holds a secret.
func secretParam(name string) bool {
	name = strings.ToLower(name)
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

// maskURL returns a store's URL with its secrets masked. It fails closed: of a
// text whose parts are not certain it shows the scheme at most. That is so for
// a raw "@" behind the user's part, which may be the end of a password that
// holds a "/" (seen as half a password in the database's name).
func maskURL(raw string) string {
	name, rest, found := strings.Cut(raw, "://")
	if !found || !validScheme(strings.ToLower(name)) {
		if raw == "" {
			return ""
		}
		return mask
	}
	hidden := name + "://" + mask
	u, reason := splitURL(raw)
	if u.hasUser {
		_, rest, _ = strings.Cut(rest, "@")
	}
	if reason != "" || (u.hasUser || u.hosts[0] != "") && strings.Contains(rest, "@") {
		return hidden
	}
	var b strings.Builder
	b.WriteString(name + "://")
	if u.hasUser {
		b.WriteString(u.user)
		if u.hasPassword {
			b.WriteString(":" + mask)
		}
		b.WriteByte('@')
	}
	b.WriteString(strings.Join(u.hosts, ","))
	b.WriteString(u.path)
	if u.hasQuery {
		b.WriteByte('?')
	}
	for i, p := range u.query {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.masked())
	}
	return b.String()
}

// masked writes the parameter without its secret. A text without a "=" may be
// the second half of a password with a raw "&".
func (p param) masked() string {
	if !p.hasValue {
		if p.name == "" {
			return ""
		}
		return mask
	}
	value := decoded(p.value)
	switch {
	case p.value == "":
		return p.name + "="
	case secretParam(decoded(p.name)), secretInside(value):
		return p.name + "=" + mask
	case strings.Contains(value, "://"):
		// A URL in a parameter (warehouse=, uri=) has secrets of its own.
		if masked := maskURL(value); masked != value {
			return p.name + "=" + url.QueryEscape(masked)
		}
	case strings.Contains(value, "@"):
		return p.name + "=" + mask
	}
	return p.name + "=" + p.value
}

// secretInside finds key=value text with a secret in a parameter's value
// (options=-c app.token=…), and parameters parted by ";" instead of "&".
func secretInside(value string) bool {
	return strings.Contains(value, "=") && !strings.Contains(value, "://") && secretParam(value)
}
