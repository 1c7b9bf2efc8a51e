package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tutti-project/tutti/internal/protocol/front"
)

// backstage is what a server answers that nodes and people do not ask: health and figures.
func backstage(all map[string]front.Route) map[string]front.Route {
	kept := map[string]front.Route{"/": front.Bodiless(http.HandlerFunc(notHere))}
	for pattern, route := range all {
		if strings.Contains(pattern, "/status/v1/") || strings.Contains(pattern, "/metrics") && !strings.Contains(pattern, "/metrics/") {
			kept[pattern] = route
		}
	}
	return kept
}

// notHere sends whoever asks to another server.
func notHere(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "This server has not the roles api, broker, content and ca: ask another one.", http.StatusServiceUnavailable)
}

// enterpriseServices is where clients of Puppet Enterprise ask, and what the kinds of errors begin with there.
var enterpriseServices = map[string]string{
	"/orchestrator/": "puppetlabs.orchestrator", "/rbac-api/": "puppetlabs.rbac", "/code-manager/": "puppetlabs.code-manager",
	"/activity-api/": "puppetlabs.activity",
}

// enterpriseService is the service that a path belongs to, if its clients are those of Puppet Enterprise.
func enterpriseService(path string) (string, bool) {
	for prefix, service := range enterpriseServices {
		if strings.HasPrefix(path, prefix) {
			return service, true
		}
	}
	return "", false
}

// notServed answers what is not here as a service of Puppet Enterprise would: an error in the form that its clients read.
func notServed(service string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := json.Marshal(map[string]any{
			"kind": service + "/not-found", "msg": r.Method + " " + r.URL.Path + " is not served here; Tutti's own API is below /api/v1",
			"details": map[string]string{"path": r.URL.Path},
		})
		if err != nil { // a map of texts can be written
			http.Error(w, http.StatusText(http.StatusNotFound), http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(text)
	})
}
