package console

import (
	"net/http"
	"strings"

	"github.com/tutti-project/tutti/api"
)

// Config is what the console stands on.
type Config struct {
	API http.Handler // answers below api.Prefix
}

// Handler serves the console.
type Handler struct{ mux *http.ServeMux }

// New reads the built files; an error says that they are not whole.
func New(c Config) (*Handler, error) {
	built, err := readPages(dist)
	if err != nil {
		return nil, err
	}
	h, logins := &Handler{mux: http.NewServeMux()}, &sessions{api: c.API}
	h.mux.HandleFunc("GET /session", logins.show)
	h.mux.HandleFunc("POST /session", logins.open)
	h.mux.HandleFunc("DELETE /session", logins.close)
	h.mux.HandleFunc(api.Prefix+"/", logins.pass)
	h.mux.HandleFunc("GET /assets/", built.asset)
	h.mux.HandleFunc("/", built.page)
	return h, nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	if !strings.HasPrefix(r.URL.Path, "/assets/") {
		head.Set("Cache-Control", "no-store")
	}
	h.mux.ServeHTTP(w, r)
}
