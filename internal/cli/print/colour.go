package print

import "strings"

// The colours of states, as numbers of SGR (ECMA-48, 8.3.117). Colour never says what no word says.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
)

// colourOf is the colour of the first word of a state, up to a comma or bracket; empty: none.
func colourOf(state string) string {
	word := strings.ToLower(strings.TrimSpace(state))
	if end := strings.IndexAny(word, " ,(:"); end > 0 {
		word = word[:end]
	}
	switch word {
	case "failed", "failure", "errored", "error", "broken", "revoked", "expired", "refused", "denied", "deny", "timed", "timed_out", "killed", "lost", "held",
		"differs", "interrupted", "missing", "alarm", "aborted", "unreachable", "does": // "does not compile"
		return red
	case "changed", "succeeded", "success", "ok", "signed", "done", "active", "equal", "yes", "ready", "current", "released", "good":
		return green
	case "requested", "waiting", "paused", "offline", "stopped", "corrective", "warned", "warn", "warning", "approve", "cancelled", "pending",
		"frozen", "stale", "wanted":
		return yellow
	case "running", "sent", "noop", "audit", "compiling", "computing", "would":
		return cyan
	case "unchanged", "skipped", "begin", "no", "none", "never", "superseded", "removed", "deactivated":
		return dim
	}
	return ""
}

// painted is text in a colour, if there is one.
func painted(text, colour string) string {
	if colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// State paints a text in the colour of a state, where the printer shows colours.
func (p Printer) State(text, state string) string {
	if !p.Colours {
		return text
	}
	return painted(text, colourOf(state))
}
