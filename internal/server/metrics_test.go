package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestMetricsAreKeptByRouteAndStatus(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	for range 2 {
		m.request("/a/", http.StatusOK, time.Second)
		m.request("/a/", http.StatusNotFound, time.Second)
		m.request("/b/", http.StatusOK, time.Second)
	}
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{`{route="/a/",status="200"} 2`, `{route="/a/",status="404"} 2`, `{route="/b/",status="200"} 2`} {
		if line := "tutti_http_request_seconds_count" + want; !strings.Contains(w.Body.String(), line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}
