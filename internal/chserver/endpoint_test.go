package chserver_test

import (
	"strings"
	"testing"

	"github.com/rhizodat/rhizodat-go/internal/chserver"
)

func TestEnvEndpoint(t *testing.T) {
	for _, c := range []struct{ native, web, wantNative, wantHTTP string }{
		{"clickhouse://u:p@h:9000", "", "clickhouse://u:p@h:9000/d", "clickhouse+http://u:p@h:8123/d"},
		{"clickhouse://h:9000/other?x=1", "clickhouse+http://w:1", "clickhouse://h:9000/d?x=1", "clickhouse+http://w:1/d"},
	} {
		t.Setenv(chserver.EnvServer, c.native)
		t.Setenv(chserver.EnvServerHTTP, c.web)
		e, found, err := chserver.EnvEndpoint()
		if err != nil || !found {
			t.Fatalf("%s: %t, %v", c.native, found, err)
		}
		if e.Native("d") != c.wantNative || e.HTTP("d") != c.wantHTTP {
			t.Errorf("%s, %s: %s and %s, want %s and %s", c.native, c.web, e.Native("d"), e.HTTP("d"), c.wantNative, c.wantHTTP)
		}
	}
}

// What is refused is not shown: it has a password.
func TestEnvEndpointRefused(t *testing.T) {
	for _, c := range []struct{ native, web string }{
		{"http://u:geheim@h", ""},
		{"clickhouse://u:geheim@h:x", ""},
		{"clickhouse://h:9000", "http://u:geheim@h"},
	} {
		t.Setenv(chserver.EnvServer, c.native)
		t.Setenv(chserver.EnvServerHTTP, c.web)
		_, found, err := chserver.EnvEndpoint()
		if err == nil || found {
			t.Errorf("%s, %s: taken", c.native, c.web)
		} else if strings.Contains(err.Error(), "geheim") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
	t.Setenv(chserver.EnvServer, "")
	if _, found, err := chserver.EnvEndpoint(); found || err != nil {
		t.Errorf("nothing set: %t, %v", found, err)
	}
}
