package pejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// Act answers a request, or returns what is wrong.
type Act func(w http.ResponseWriter, r *http.Request) error

// Routes answers what the table has, by "METHOD /path/{name}" as http.ServeMux reads it. A GET answers HEAD, too. Everything else is
// refused in JSON: other paths, other methods, senders that take no JSON, and bodies that are none.
func (s *Service) Routes(table map[string]Act) http.Handler {
	paths := map[string]map[string]Act{}
	for pattern, act := range table {
		method, where, _ := strings.Cut(pattern, " ")
		if paths[where] == nil {
			paths[where] = map[string]Act{}
		}
		if paths[where][method] = act; method == http.MethodGet {
			paths[where][http.MethodHead] = act
		}
	}
	mux := http.NewServeMux()
	for where, methods := range paths {
		mux.HandleFunc(where, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, methods) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = pieces{w, http.NewResponseController(w)}
		_, found := mux.Handler(r)
		if found == "" || path.Clean(r.URL.Path) != r.URL.Path { // a mux would send the caller to the clean path, which clients take for an error
			s.Fail(w, r,
				s.Bad(NotFound, map[string]string{"path": r.URL.Path}, "%s %.200s is not served here; docs/enterprise-api-compatibility.md lists what is",
					r.Method, r.URL.Path))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

const (
	pieceBytes = 64 << 10    // what is written at a time
	pieceTime  = time.Minute // how long a caller may take to accept that
)

// pieces writes an answer in pieces, so that a caller who does not read it loses the connection, and holds nothing for ever.
type pieces struct {
	http.ResponseWriter

	control *http.ResponseController
}

// Unwrap is for http.ResponseController.
func (p pieces) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write implements io.Writer. The last deadline stands until the answer is complete; then net/http takes it back.
func (p pieces) Write(text []byte) (written int, err error) {
	for {
		piece := text[written:min(written+pieceBytes, len(text))]
		_ = p.control.SetWriteDeadline(time.Now().Add(pieceTime)) // a connection that cannot has bounds of its own
		n, err := p.ResponseWriter.Write(piece)
		if written += n; err != nil || written == len(text) {
			return written, err
		}
	}
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request, methods map[string]Act) {
	act, ok := methods[r.Method]
	allowed := slices.Sorted(maps.Keys(methods))
	var err error
	switch {
	case !ok:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		err = s.Bad(MethodNotAllowed, map[string]any{"allowed": allowed}, "%s is not possible here; %s is", r.Method, strings.Join(allowed, ", "))
	case !takesJSON(r):
		err = s.Bad(NotAcceptable, nil, "the answer is application/json, which the Accept header %.100q does not take", r.Header.Get("Accept"))
	case sends(r) && !isJSON(r.Header.Get("Content-Type")):
		err = s.Bad(UnsupportedType, nil, "the body must be application/json, not %.100q", r.Header.Get("Content-Type"))
	default:
		err = act(w, r)
	}
	if err != nil {
		s.Fail(w, r, err)
	}
}

// sends says whether a request has a body that is read. Clients name a type on GET, too: that means nothing.
func sends(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.ContentLength != 0
}

// isJSON says whether a body is JSON by its type; none may be named.
func isJSON(header string) bool {
	kind, _, err := mime.ParseMediaType(header)
	return header == "" || err == nil && (kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"))
}

// takesJSON says whether the sender takes application/json.
func takesJSON(r *http.Request) bool {
	headers := r.Header.Values("Accept")
	if len(headers) == 0 {
		return true
	}
	for one := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		kind, params, err := mime.ParseMediaType(strings.TrimSpace(one))
		if err != nil {
			continue
		}
		refused := strings.Trim(params["q"], "0.") == "" && params["q"] != ""
		if !refused && (kind == "*/*" || kind == "application/*" || kind == "application/json") {
			return true
		}
	}
	return strings.TrimSpace(strings.Join(headers, "")) == ""
}

// Read reads a JSON object of at most limit bytes into a struct. word is the service's word for one that is malformed.
func (s *Service) Read(w http.ResponseWriter, r *http.Request, limit int64, word string, into any) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return s.Bad(TooLarge, map[string]int64{"limit": tooLarge.Limit}, "the body is larger than %d bytes, which is what is taken here", tooLarge.Limit)
	}
	if err != nil {
		return err // the front says why it stopped reading
	}
	if len(text) == 0 {
		return s.Bad(word, nil, "the body is empty; it must be a JSON object")
	}
	return s.Decode(text, word, into)
}

// Decode reads a JSON object.
func (s *Service) Decode(text []byte, word string, into any) error {
	err := json.Unmarshal(text, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return s.Bad(word, map[string]string{"field": wrong.Field}, "field %.100s: it cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	if err != nil && !json.Valid(text) {
		return s.Bad(word, nil, "the body is not valid JSON: %.200s", err.Error())
	}
	if err != nil || !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return s.Bad(word, nil, "the body must be a JSON object")
	}
	return nil
}
