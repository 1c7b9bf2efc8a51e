package broker

import (
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

// Farewell is why a connection has to go: what stands in a websocket's close
// frame. It is an error so that Join can return it.
type Farewell struct {
	Code   int
	Reason string // at most MaxReasonBytes
}

// MaxReasonBytes fits into a close frame beside the code.
const MaxReasonBytes = 123

// Ends says whether a client said that its process ends.
func (f Farewell) Ends() bool { return f.Code == Stopping.Code && f != Stopping }

func (f Farewell) Error() string { return fmt.Sprintf("%d %s", f.Code, f.Reason) }

// The farewells that this package says. Codes and texts are the original's where it has any.
var (
	Stopping       = Farewell{1001, "The server is stopping."}
	NotRunning     = Farewell{1011, "Broker is not running."}
	LimitExceeded  = Farewell{1011, "Connection limit exceeded."}
	OneEach        = Farewell{1008, "This certificate is connected as another client type (broker_connections_per_node)."}
	Unsuccessful   = Farewell{4002, "Association unsuccessful."}
	NoCertificate  = Farewell{4003, "No client certificate."}
	tooSlow        = Farewell{1008, "Too slow: what waits for this client exceeds the limit."}
	supersededWord = Farewell{1006, "Superseded by a later connection."} // only for the log
)

// maxTypeBytes is the longest client type.
const maxTypeBytes = 64

// URIOf is who a connection is: the name that its certificate proves, and the
// type that it asked for. Types that no message could be addressed to are refused.
func URIOf(name fleet.Certname, clientType string) (wire.URI, error) {
	if clientType == "" || len(clientType) > maxTypeBytes || clientType == wire.BrokerType ||
		strings.ContainsAny(clientType, "*/") || !wire.IsPlain(clientType) {
		return "", fault.New(fault.Invalid,
			"the client type %.80q cannot be used: it has 1 to %d letters, digits or characters of _-.: and is not %s", clientType, maxTypeBytes, wire.BrokerType)
	}
	return wire.ParseURI(string(wire.NewURI(string(name), clientType)))
}
