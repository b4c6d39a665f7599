package drevo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j/config"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/drevo"
)

// Opening connects to nobody, and an unreachable server is a transient error that
// names the store.
func TestOpenDoesNotConnect(t *testing.T) {
	for _, scheme := range []string{"bolt", "bolt+s", "bolt+ssc"} {
		store := openURL(t, scheme+"://127.0.0.1:1/g", drevo.Options{})
		session := connect(t, store)
		_, err := session.Begin(t.Context(), branches.BeginOptions{})
		if err == nil || store.Classify(err) != branches.Transient || !strings.Contains(err.Error(), "store s") {
			t.Errorf("%s: Begin = %v (%s), want a transient error of store s", scheme, err, store.Classify(err))
		}
		if !session.Usable() {
			t.Errorf("%s: nothing has begun, and the session is not usable", scheme)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	const secret = "s3cr3t"
	for _, test := range []struct{ url, want string }{
		{"", "no URL"},
		{"neo4j://u:" + secret + "@h/g", "its scheme is none of bolt, bolt+s, bolt+ssc"},
		{"bolt://u:" + secret + "@h/g?x=1", "it has options"},
		{"bolt://u:" + secret + "@h/g?dat_prepared_timeout=soon", "wants a duration"},
		{"bolt://u:" + secret + "@h/g?dat_prepared_timeout=-1s", "wants a duration"},
		{"bolt://u:" + secret + "@h/a b", "no graph's name"},
		{"bolt://u:" + secret + "@h1,h2/g", "one host"},
	} {
		_, err := drevo.Open("s", test.url, drevo.Options{})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "store s") {
			t.Errorf("Open = %v, want %q", err, test.want)
		}
		if strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("the password is shown: %v", err)
		}
	}
}

// A store, printed with any verb, and its errors do not show the password.
func TestSecretsStayHidden(t *testing.T) {
	const secret = "s3cr3t"
	store := openURL(t, "bolt://app:"+secret+"@127.0.0.1:1/g?dat_prepared_timeout=1m", drevo.Options{
		Configure: func(c *config.Config) { c.UserAgent = "test" },
	})
	_, err := connect(t, store).Begin(t.Context(), branches.BeginOptions{})
	for _, text := range []string{fmt.Sprint(err), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		if strings.Contains(text, secret) {
			t.Errorf("the password is shown: %s", text)
		}
	}
	if (drevo.Options{}).Scheme() != "bolt" || store.Name() != "s" {
		t.Errorf("scheme %q, name %q", drevo.Options{}.Scheme(), store.Name())
	}
}
