package pgserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
)

// freePort picks a random port below the range from which the kernel hands
// out client ports: else an outgoing connection could take the port of a
// server that a test has stopped and is about to start again.
func freePort(ctx context.Context) (int, error) {
	const low, high, tries = 20000, 32000, 200
	var listen net.ListenConfig
	for range tries {
		offset, err := rand.Int(rand.Reader, big.NewInt(high-low))
		if err != nil {
			return 0, fmt.Errorf("rhizodat: pick port: %w", err)
		}
		port := low + int(offset.Int64())
		listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, listener.Close()
	}
	return 0, errors.New("rhizodat: pick port: no free loopback port found")
}
