package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/front"
	"github.com/tutti-project/tutti/internal/store/sql"
)

// codeFromGit is the lease of who looks after sources of code. What is known of them is in the memory of that server.
const codeFromGit = "code from git"

// sourcesWhereTheyAre has requests about sources of code answered by the server that looks after them: any other one says which one that is.
func sourcesWhereTheyAre(p *parts, others map[string]front.Route, known func(*http.Request) (fleet.Actor, error)) {
	if p.shared == nil {
		return
	}
	own, manager := others[api.Prefix+"/"], others["/code-manager/"]
	for pattern, route := range map[string]front.Route{
		api.Prefix + "/sources": own, api.Prefix + "/sources/": own, api.Prefix + "/deploys": own, "/code-manager/": manager,
	} {
		next := route.Handler
		route.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.leases.Holds(codeFromGit) {
				next.ServeHTTP(w, r)
				return
			}
			_, err := known(r)
			tellWhere(p.store.Leases, w, r, err != nil)
		})
		others[pattern] = route
	}
}

// tellWhere says which server looks after sources of code. A stranger, as a git server is one, hears no name.
func tellWhere(records *sql.Leases, w http.ResponseWriter, r *http.Request, stranger bool) {
	who := "another server"
	if !stranger {
		who = whoHas(r.Context(), records, codeFromGit)
	}
	said := api.Problem{
		Kind: fault.Unavailable.String(), Message: "sources of code are looked after by " + who + ", and only there; ask that server",
		RequestID: front.RequestID(r.Context()),
	}
	text, err := json.Marshal(problemFor(r.URL.Path, said))
	if err != nil { // texts can be written
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "5")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write(text)
}

// whoHas names the server that has a lease, as far as that is known.
func whoHas(ctx context.Context, records *sql.Leases, lease string) string {
	leases, err := records.Leases(ctx)
	servers, alsoErr := records.Servers(ctx)
	if err != nil || alsoErr != nil {
		return "another server"
	}
	for _, l := range leases {
		for _, s := range servers {
			if l.Name == lease && !l.Free() && s.ID == l.Holder {
				return fmt.Sprintf("the server %s at %s", s.ID, strings.TrimSuffix(s.Address, "/"))
			}
		}
	}
	return "no server now"
}
