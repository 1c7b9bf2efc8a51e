package front

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
)

// Route is what answers below a path, and how large a body it takes, in bytes: none, unless
// it is said. A handler has a limit of its own, with better words; this is for who forgets it.
type Route struct {
	http.Handler
	Bytes     int64
	Strangers int64 // what may come from who proves by the body itself who they are; 0: what may come from every stranger
	Streamed  bool  // the body goes to the disk while it comes
	Drained   bool  // of a body that is too large, more is read and thrown away: its sender reads no answer before
}

// ServeHTTP tells the body what the route takes.
func (t Route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if req := of(r.Context()); req != nil && req.body != nil {
		req.body.takes = t
	}
	t.Handler.ServeHTTP(w, r)
}

// Bodiless is a route that takes no body.
func Bodiless(h http.Handler) Route { return Route{Handler: h} }

// Streams says that the body goes to the disk while it comes: little of it is in memory.
func Streams(ctx context.Context) {
	if req := of(ctx); req != nil && req.body != nil {
		req.body.takes.Streamed = true
	}
}

// Prefixes is routes by the beginning of the path, as it was sent: a ServeMux
// cleans paths, but agents name backups by //etc/motd and mean it.
type Prefixes map[string]Route

// Before answers what begins with one of the prefixes, the longest one, and
// leaves the rest to next.
func (p Prefixes) Before(next http.Handler) http.Handler {
	ways := make([]way, 0, len(p)+1)
	for prefix, handler := range p {
		ways = append(ways, way{prefix, handler})
	}
	slices.SortFunc(ways, func(a, b way) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	ways = append(ways, way{"", next})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(ways, func(way way) bool { return strings.HasPrefix(r.URL.Path, way.prefix) })
		r.Pattern = ways[i].prefix // a mux sets its own
		ways[i].handler.ServeHTTP(w, r)
	})
}

type way struct {
	prefix  string
	handler http.Handler
}
