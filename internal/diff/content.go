package diff

import (
	"context"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Blobs reads content by its digest. It is called by many goroutines at once.
type Blobs interface {
	// Blob reads a whole blob; NotFound if it is not stored, Invalid if it has more
	// than limit bytes.
	Blob(ctx context.Context, d fleet.Digest, limit int64) ([]byte, error)
}

// content is what a file has on one side: nothing, text of the catalog, or a
// checksum of what lies elsewhere.
type content struct {
	there  bool
	inline bool
	text   string
	sum    string // "{sha256}…"
}

// contentOf is the content of a File on one side: of its parameter, or of its metadata.
func contentOf(parameter *value, f file) content {
	switch {
	case parameter != nil && parameter.kind == '"':
		return content{there: true, inline: true, text: parameter.text, sum: "{sha256}" + string(fleet.DigestOf([]byte(parameter.text)))}
	case f.Checksum != "" && f.Type == "file":
		return content{there: true, sum: f.Checksum}
	default:
		return content{}
	}
}

// read gives the text of content, or says why not. What a sent catalog names is
// not read: it could name anything.
func (s *Shower) read(ctx context.Context, c content, sent bool) (text, note string) {
	if c.inline || !c.there {
		return c.text, ""
	}
	hex, ok := strings.CutPrefix(c.sum, "{sha256}")
	if !ok {
		return "", "only its checksum is known, which is none of sha256"
	}
	digest, err := fleet.ParseDigest(hex)
	switch {
	case err != nil:
		return "", "its checksum is not written as it should be"
	case sent:
		return "", "what a sent catalog names is not read"
	case s.blobs == nil:
		return "", "its content is not read"
	}
	body, err := s.blobs.Blob(ctx, digest, int64(s.limits.TextBytes))
	switch {
	case fault.Is(err, fault.NotFound):
		return "", "its content is not stored any more"
	case fault.Is(err, fault.Invalid):
		return "", "too large for a diff"
	case err != nil:
		return "", "its content cannot be read now"
	}
	return string(body), ""
}

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
