package drevo

import (
	"context"
	"errors"
	"net"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"github.com/rhizodat/rhizodat-go/branches"
	"github.com/rhizodat/rhizodat-go/internal/bolt"
)

var _ branches.Classifier = (*Store)(nil)

// Classify says what kind of error err is. The fence and a conflict are TRANSIENT;
// a lost connection is, too.
func (s *Store) Classify(err error) branches.Kind {
	if bolt.Says(err, textBroken) && s.full.Load() {
		return branches.StoreFull
	}
	return classify(err)
}

func classify(err error) branches.Kind {
	switch {
	case err == nil:
		return branches.Permanent
	case branches.DeviceFull(err):
		return branches.StoreFull
	case errors.Is(err, context.Canceled):
		return branches.Permanent // the caller gave up: there is nobody to try again for
	}
	if bolt.Code(err) == "" && !connectivity(err) && !errors.Is(err, context.DeadlineExceeded) {
		if _, ok := errors.AsType[net.Error](err); ok {
			return branches.Transient
		}
	}
	return bolt.Classify(err)
}

// textBroken: an earlier write of the log has failed. Only the writer that met it
// was told why.
const textBroken = "durable WAL is broken"

// notice remembers what the server tells only once: that its disk is full, to the
// one writer whose flush failed; that it is an old one, by the code of its fence.
func (s *Store) notice(err error) {
	if bolt.IsFull(err) {
		s.full.Store(true)
	}
	if code := bolt.Code(err); code == "Neo.TransientError.Transaction.LockClientStopped" ||
		code == "Neo.ClientError.Transaction.LockClientStopped" {
		s.stopped.Store(true)
	}
}

func connectivity(err error) bool {
	_, ok := errors.AsType[*neo4j.ConnectivityError](err)
	return ok
}
