package keeper

import (
	"crypto/rand"
	"fmt"
	"os"
	"unicode"
	"unicode/utf8"
)

// MaxName is the greatest length, in bytes, of a name that the journal keeps.
const MaxName = 200

// Fault says what is wrong with a name, which could not be read back as it was
// written, or read at all; empty when nothing is.
func Fault(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > MaxName:
		return fmt.Sprintf("has %d bytes, at most %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return "is not UTF-8"
	}
	for _, c := range name {
		if unicode.IsControl(c) {
			return "holds a control character"
		}
	}
	return ""
}

// NewHolder names one acquisition of this process, for people to find it by. The
// random part keeps two of one process apart: the second must not take from the
// first.
func NewHolder() string {
	host, err := os.Hostname()
	if err != nil || Fault(host) != "" || len(host) > 100 {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:10])
}
