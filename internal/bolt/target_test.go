package bolt

import (
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"bolt://h:1/g", "bolt://h:1/g"},
		{"bolt://h", "bolt://h/drevo"},
		{"bolt://h/", "bolt://h/drevo"},
		{"bolt+s://u:p%2F%40@[::1]:7687/or-ders_1", "bolt+s://[::1]:7687/or-ders_1"},
		{"bolt+ssc://u@h/g", "bolt+ssc://h/g"},
	} {
		got, err := Parse(c.url)
		if err != nil || got.String() != c.want {
			t.Errorf("Parse(%s): %v, %v, want %s", c.url, got, err, c.want)
		}
	}
	got, err := Parse("bolt://u%40:p%2F%3A@h/g")
	if err != nil || got.user != "u@" || got.password != "p/:" || !got.known {
		t.Errorf("user and password: %q, %q, %v", got.user, got.password, err)
	}
}

func TestParseRefuses(t *testing.T) {
	const secret = "s3cr3t"
	for _, url := range []string{
		"", "h/g", "neo4j://u:" + secret + "@h/g", "http://h/g", "bolt://", "bolt:///g", "bolt://:7687/g", "bolt://a,b/g",
		"bolt://u:" + secret + "@h/g?x=1", "bolt://u:" + secret + "@h/g?", "bolt://h/g#f", "bolt://u:" + secret + "/x@h/g",
		"bolt://u:" + secret + "@h:port/g", "bolt://h/a/b", "bolt://h/-a", "bolt://h/a%20b", "bolt://h/" + strings.Repeat("a", 64),
	} {
		got, err := Parse(url)
		if err == nil {
			t.Errorf("Parse(%q) took it as %v", url, got)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("Parse(%q) prints the password: %v", url, err)
		}
	}
}

func TestTargetHidesPassword(t *testing.T) {
	target, err := Parse("bolt://user:s3cr3t@h/g")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, target); strings.Contains(text, "s3cr3t") {
			t.Errorf("%s prints the password: %s", verb, text)
		}
	}
}
