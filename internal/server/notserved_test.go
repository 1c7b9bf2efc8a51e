package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/server/settings"
)

// Clients of Puppet Enterprise read every error as JSON, also of what is not here.
func TestWhatIsNotServedSaysSoInJSON(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	routes, err := p.routes(p.health())
	if err != nil {
		t.Fatal(err)
	}
	for path, begins := range map[string]string{
		"/code-manager/v1/nothing": "puppetlabs.", "/activity-api/v1/events": "puppetlabs.", "/inventory/v1/query": "tutti/", "/nothing": "tutti/", "/": "tutti/",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			w := httptest.NewRecorder()
			routes.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			var problem struct{ Kind, Msg string }
			err := json.Unmarshal(w.Body.Bytes(), &problem)
			if err != nil || w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/json; charset=utf-8" ||
				!strings.HasPrefix(problem.Kind, begins) || !strings.Contains(problem.Msg, method+" "+path) {
				t.Errorf("%s %s: %d %s %v", method, path, w.Code, w.Body, err)
			}
		}
	}
}
