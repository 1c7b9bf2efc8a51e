package puppetrun

import (
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

const (
	// maxComplaints bounds what is kept of standard error; its end says why a run ended.
	maxComplaints = 8 << 10
	// maxErrors and maxErrorBytes bound what is said of it in one line.
	maxErrors     = 3
	maxErrorBytes = 600
)

// complaints are what Puppet prints on standard error: errors and warnings. It prints what keeps it from running there and
// nowhere else, for then there is no report: that its certificate is not accepted, say.
type complaints struct {
	to io.Writer

	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.kept = append(c.kept, p...)
	if over := len(c.kept) - 2*maxComplaints; over > 0 {
		c.kept = slices.Clone(c.kept[len(c.kept)-maxComplaints-1:]) // one more: text knows that it was cut
	}
	c.mu.Unlock()
	return c.to.Write(p)
}

// forget is for a run that begins.
func (c *complaints) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = nil
}

// text is the end of it, in whole lines and without colours.
func (c *complaints) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := string(c.kept)
	if over := len(text) - maxComplaints; over > 0 {
		text = text[over:]
		if _, whole, more := strings.Cut(text, "\n"); more {
			text = whole
		}
	}
	return strings.ToValidUTF8(puppetenv.Plain(text), "\uFFFD")
}

// into puts them into the results of a run that failed.
func (c *complaints) into(r *pxp.PuppetResults) {
	if r.Error == "" && r.ExitCode == 0 && r.Status != "failed" {
		return
	}
	r.Stderr = c.text()
	if said := errorsIn(r.Stderr); said != "" && r.Error != "" {
		r.Error += "; Puppet says: " + said
	}
}

// errorsIn are the first errors of a text, each once: the first is the cause of those that follow. Facter's are of single facts, and end no run.
func errorsIn(text string) string {
	var found []string
	for line := range strings.Lines(text) {
		said, isError := strings.CutPrefix(strings.TrimSpace(line), "Error: ")
		if isError && !strings.HasPrefix(said, "Facter: ") && !slices.Contains(found, said) && len(found) < maxErrors {
			found = append(found, said)
		}
	}
	all := strings.Join(found, "; ")
	if len(all) > maxErrorBytes {
		all = strings.ToValidUTF8(all[:maxErrorBytes], "") + "…"
	}
	return all
}
