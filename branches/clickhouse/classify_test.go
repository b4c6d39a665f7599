package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"

	client "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/branches/clickhouse"
)

// The table of kinds. 252 is two things.
func TestClassify(t *testing.T) {
	store, err := clickhouse.Open("ch", "clickhouse://h", clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	server := func(code int32, message string) error {
		return fmt.Errorf("sendQuery: %w", &client.Exception{Code: code, Message: message})
	}
	for _, c := range []struct {
		err  error
		want branches.Kind
	}{
		{server(243, "Cannot reserve 1.00 MiB, not enough space"), branches.StoreFull},
		{server(341, "Code: 243. DB::Exception: Cannot reserve (NOT_ENOUGH_SPACE)"), branches.StoreFull},
		{server(75, "Cannot write to file: No space left on device"), branches.StoreFull},
		{fmt.Errorf("write: %w", syscall.ENOSPC), branches.StoreFull},
		{server(469, "Constraint violated"), branches.Constraint},
		{server(252, "Too many parts (300 with average size of 1 KiB)"), branches.Transient},
		{server(252, "Too many partitions for single INSERT block (more than 100)"), branches.Permanent},
		{server(159, "Timeout exceeded"), branches.Transient},
		{server(202, "Too many simultaneous queries"), branches.Transient},
		{server(216, "Query with id = x is already running"), branches.Transient},
		{server(242, "Table is in readonly mode"), branches.Transient},
		{server(319, "Unknown quorum status"), branches.Transient},
		{server(341, "Mutation is not finished"), branches.Transient},
		{server(394, "Query was cancelled"), branches.Transient},
		{server(745, "Server overloaded"), branches.Transient},
		{server(16, "No such column"), branches.Permanent},
		{server(60, "Table d.t does not exist"), branches.Permanent},
		{server(62, "Syntax error"), branches.Permanent},
		{server(497, "Not enough privileges"), branches.Permanent},
		{server(516, "Authentication failed"), branches.Permanent},
		{io.EOF, branches.Transient},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), branches.Transient},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, branches.Transient},
		{&url.Error{Op: "Post", URL: "http://h", Err: syscall.ECONNRESET}, branches.Transient},
		{client.ErrAcquireConnTimeout, branches.Transient},
		{context.DeadlineExceeded, branches.Transient},
		{context.Canceled, branches.Permanent},
		{errors.New("anything"), branches.Permanent},
		{nil, branches.Permanent},
	} {
		if got := store.Classify(c.err); got != c.want {
			t.Errorf("%v is %s, want %s", c.err, got, c.want)
		}
	}
}
