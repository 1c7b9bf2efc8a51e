package rivals

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below those that systems give to clients (32768 and up on Linux): in the
// seconds until a server listens, and whenever it is away, a client's connection could take one of them.
const (
	firstPort = 15_000
	pastPort  = 30_000
)

// FreePort is a loopback port on which nobody listens, for a server that is to be found again
// where it was. Chance keeps those apart that ask at the same time; if it does not, the start
// fails, and says so.
func FreePort(ctx context.Context) (int, error) {
	var failed error
	for range 100 {
		port := firstPort + rand.IntN(pastPort-firstPort) //nolint:gosec // nobody is to be kept from guessing it
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		failed = errors.Join(failed, err)
	}
	return 0, fmt.Errorf("find a free port: %w", failed)
}
