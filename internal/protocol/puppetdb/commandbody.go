package puppetdb

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/klauspost/compress/gzip"

	"github.com/tutti-project/tutti/internal/fault"
)

// readOldOrder reads the old form: {"command", "version", "certname", "payload"}.
func (h *Handler) readOldOrder(r *http.Request, params url.Values, in *inside) (order, kind, error) {
	body, err := h.readBody(r, max(h.MaxCatalogBytes, h.MaxFactsBytes, h.MaxReportBytes), in)
	if err != nil {
		return order{}, kind{}, err
	}
	var sent struct {
		Command string          `json:"command"`
		Version json.RawMessage `json:"version"`
		Payload json.RawMessage `json:"payload"`
	}
	err = json.Unmarshal([]byte(body), &sent)
	o := order{name: spaced(sent.Command)}
	if err != nil || sent.Command == "" || sent.Payload == nil || json.Unmarshal(sent.Version, &o.version) != nil {
		return o, kind{}, fault.New(fault.Invalid, "Command %q is invalid. Command was submitted without query parameters (old format). "+
			"The request body must be a JSON map with required keys: command, version, payload.", clip(o.name))
	}
	if o.waits, err = waits(params); err != nil {
		return o, kind{}, err
	}
	k, err := h.find(o)
	if err == nil && int64(len(sent.Payload)) > k.limit {
		err = tooLarge()
	}
	o.payload = string(sent.Payload)
	return o, k, err
}

// refused is an answer whose status no fault has.
type refused struct {
	status int
	text   string
}

func (r refused) Error() string { return r.text }

func tooLarge() error {
	return refused{http.StatusRequestEntityTooLarge, "Command size exceeds max-command-size"}
}

// smallBody is how much of a body comes with the place behind the gate. What is
// larger needs one of few places besides.
const smallBody = 1 << 20

// readBody reads a body of at most limit bytes, counted after decompression.
func (h *Handler) readBody(r *http.Request, limit int64, in *inside) (string, error) {
	from, err := decoded(r)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(int(max(0, min(r.ContentLength, smallBody))))
	n, err := copyUpTo(&text, from, min(limit+1, smallBody))
	if err == nil && n == smallBody {
		if err := in.enter(r.Context(), h.large); err != nil {
			return "", err
		}
		_, err = copyUpTo(&text, from, limit+1-smallBody)
	}
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the command's body cannot be read: it was cut off, came too slowly, or is no gzip")
	}
	if int64(text.Len()) > limit {
		_, _ = io.CopyN(io.Discard, r.Body, drain) // Ruby's client reads no answer before it has sent everything
		return "", tooLarge()
	}
	return text.String(), nil
}

// drain is how much is read of a body that is too large.
const drain = 64 << 20

func copyUpTo(to io.Writer, from io.Reader, n int64) (int64, error) {
	count, err := io.CopyN(to, from, n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return count, err
}

func decoded(r *http.Request) (io.Reader, error) {
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return r.Body, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the command's body is not well-formed gzip")
		}
		return z, nil
	default:
		return nil, refused{http.StatusUnsupportedMediaType, "content encoding " + clip(encoding) + " not supported"}
	}
}
