package puppetrun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/yamljson"
)

// Puppet sends the report of a run once, and only prints that it could not. Such a report is kept, in the form in which it
// is sent, for the agent to deliver. Puppet may be wrong: when the server's answer was lost, it has the report; it
// knows a report that it has by its content, which is the same here to the last digit.

// notSent is what Puppet prints, in any language: its translations are off unless a setting says otherwise.
const notSent = "Could not send report"

// ear passes on what is written to it, and listens for a word.
type ear struct {
	mu    sync.Mutex // Puppet's two streams come at the same time
	to    io.Writer
	heard bool
	tail  []byte // the end of what came before
}

func (e *ear) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.heard {
		text := append(e.tail, p...)
		e.heard = bytes.Contains(text, []byte(notSent))
		e.tail = bytes.Clone(text[max(0, len(text)-len(notSent)+1):])
	}
	return e.to.Write(p)
}

// keepReport keeps the last report of Puppet in a directory, under a name that sorts by time.
func keepReport(path, dir string, now time.Time) error {
	text, err := puppetenv.ReadBounded(path, maxReportBytes)
	if err != nil {
		return err
	}
	if text, err = yamljson.ToJSON(text); err != nil {
		return err
	}
	var r struct {
		UUID string `json:"transaction_uuid"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	if !uuidForm.MatchString(r.UUID) {
		return fmt.Errorf("its transaction_uuid is %.100q", r.UUID)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return puppetenv.Replace(filepath.Join(dir, fmt.Sprintf("%020d-%s.json", now.UnixNano(), r.UUID)), text, 0o600)
}

var uuidForm = regexp.MustCompile(`\A[0-9A-Za-z-]{1,64}\z`)
