package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

// newProgress is lines that are written over on a terminal, and plain lines elsewhere. told says that what became of runs, and why, is printed for
// people at the end: nothing need say it before that, too.
func newProgress(a *app, job api.Job, told bool) progress {
	switch {
	case a.tools.follows() && a.output == "table":
		return &theirProgress{out: a.system.Out, job: job}
	case a.quiet:
		return silence{}
	case a.system.animates():
		return &liveProgress{
			out: a.system.Err, width: a.system.ErrWidth, colours: a.coloured(a.system.animates()),
			passing: told && a.system.Width > 0,
		}
	}
	return &plainProgress{out: a.system.Err, short: told}
}

// silence is no progress at all.
type silence struct{}

func (silence) ended(api.JobRun)     {}
func (silence) happened(api.Event)   {}
func (silence) note(string)          {}
func (silence) draw(jobStanding)     {}
func (silence) pause() time.Duration { return time.Minute }
func (silence) close(bool)           {}

// plainProgress writes a line for each run that ended, and how the job stands
// every 30 seconds.
type plainProgress struct {
	out    io.Writer
	short  bool         // why a run did not succeed is said at the end
	untold []api.JobRun // those of which that is still to be said
}

func (p *plainProgress) ended(r api.JobRun) {
	if p.short && r.Reason != "" && r.State != "succeeded" {
		p.untold = append(p.untold, r)
		r.Reason = ""
	}
	p.note(runLine(r))
}

func (p *plainProgress) happened(e api.Event) { p.note(eventLine(e)) }

func (p *plainProgress) note(text string) { _, _ = fmt.Fprintln(p.out, print.OneLine(text)) }

func (p *plainProgress) draw(s jobStanding) {
	if !jobOver(s.job.State) {
		p.note(s.text())
	}
}

func (p *plainProgress) pause() time.Duration { return 30 * time.Second }

// close says why runs did not succeed, if nothing else does.
func (p *plainProgress) close(told bool) {
	if told {
		return
	}
	for _, group := range grouped(p.untold) {
		p.note(groupHead(group))
	}
}

// jobOver says whether a job in this state has ended.
func jobOver(state string) bool {
	return state == "finished" || state == "failed" || state == "stopped"
}

// runLine is one line about a run.
func runLine(r api.JobRun) string {
	return r.Node + ": " + runText(r) + tookText(r)
}

// runText is how a run stands, in words.
func runText(r api.JobRun) string {
	state := stateText(r.State)
	if r.Puppet != nil && r.State == "succeeded" && r.Puppet.Status != "" {
		state = puppetText(*r.Puppet)
	}
	if r.Reason != "" && r.State != "succeeded" {
		return state + ": " + r.Reason
	}
	return state
}

// puppetText is what a Puppet run that went well did.
func puppetText(p api.JobRunPuppet) string {
	text := p.Status
	if p.Pending > 0 {
		text += ", " + wouldChange(p.Pending)
	}
	if p.Held != "" {
		text += "; " + p.Held
	}
	return text
}

// wouldChange says what a noop run found to do.
func wouldChange(resources int) string { return fmt.Sprintf("%d would change", resources) }

// tookText is how long a run took.
func tookText(r api.JobRun) string {
	if r.FinishedAt == nil || r.StartedAt == nil {
		return ""
	}
	return " (" + print.Duration(time.Duration(runTook(r))) + ")"
}

func runTook(r api.JobRun) print.Took {
	if r.FinishedAt == nil || r.StartedAt == nil {
		return 0
	}
	return print.Took(r.FinishedAt.Sub(*r.StartedAt))
}

func stateText(state string) string { return strings.ReplaceAll(state, "_", " ") }

// stateOrder is the states of runs as they are counted for people.
var stateOrder = []string{
	"succeeded", "failed", "errored", "timed_out", "killed", "refused", "offline", "lost", "skipped", "running", "sent", "waiting",
}

// countsText is the counts that are not zero.
func countsText(counts map[string]int) string {
	var words []string
	for _, state := range stateOrder {
		if n := counts[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, stateText(state)))
		}
	}
	return strings.Join(words, ", ")
}

// done counts the runs that are over.
func (s jobStanding) done() (n int) {
	for state, count := range s.counts {
		if final(state) {
			n += count
		}
	}
	return n
}

func (s jobStanding) text() string {
	return fmt.Sprintf("Job %s %s: %d of %d done (%s) after %s", s.job.ID, s.job.State, s.done(), s.job.Nodes, countsText(s.counts),
		print.Duration(s.now.Sub(s.job.CreatedAt)))
}

// liveProgress is a line with counts and a bar that is written over, and below it the last
// runs that did not succeed.
type liveProgress struct {
	out      io.Writer
	width    int
	colours  bool
	passing  bool // what is below the line is printed at the end, on the same terminal
	drawn    int  // lines
	failures []string
	noted    string
}

// shownFailures is how many of the last failures are shown.
const shownFailures = 5

func (p *liveProgress) ended(r api.JobRun) {
	if r.State == "succeeded" {
		return
	}
	p.failed(runLine(r))
}

// failed shows one more failure.
func (p *liveProgress) failed(line string) {
	p.failures = append(p.failures, line)
	p.failures = p.failures[max(0, len(p.failures)-shownFailures):]
}

func (p *liveProgress) happened(e api.Event) { p.noted = eventLine(e) }

func (p *liveProgress) note(text string) { p.noted = text }

func (p *liveProgress) pause() time.Duration { return 250 * time.Millisecond }

// close leaves what is drawn standing, but for failures that are printed now; the cursor is below.
func (p *liveProgress) close(told bool) {
	if told && p.passing && p.drawn > 1 {
		_, _ = fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.drawn-1)
		p.drawn = 1
	}
}

func (p *liveProgress) draw(s jobStanding) { p.drawLine(bar(s.done(), s.job.Nodes) + " " + s.text()) }

// drawLine draws a line that says how all stands, and what there is below it.
func (p *liveProgress) drawLine(line string) {
	lines := []string{line}
	if p.noted != "" {
		lines = append(lines, p.noted)
	}
	fresh := len(lines)
	lines = append(lines, slices.Clone(p.failures)...)
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	for i, line := range lines {
		line = print.Shortened(print.OneLine(line), max(20, p.width-1)) // a line that wraps would be two
		if i >= fresh && p.colours {
			line = "\x1b[31m" + line + "\x1b[0m"
		}
		b.WriteString("\r\x1b[2K" + line + "\n")
	}
	if len(lines) < p.drawn {
		b.WriteString("\x1b[J")
	}
	p.drawn = len(lines)
	_, _ = io.WriteString(p.out, b.String())
}

// barWidth is how many characters a bar has.
const barWidth = 20

func bar(done, of int) string {
	full := 0
	if of > 0 {
		full = done * barWidth / of
	}
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}
