// Package checkup has words for what a look at a machine finds: what was looked at, how bad it is, and how it is mended. The agent and the
// server say it in the same words.
package checkup

import (
	"fmt"

	"github.com/tutti-project/tutti/internal/fault"
)

// Finding is what a check found.
type Finding struct {
	Check string  `json:"check"`
	State Verdict `json:"state"`
	Found string  `json:"found"`
	Mend  string  `json:"mend,omitempty"` // what to do; empty when all is well

	Unreachable bool  `json:"-"` // the trouble is that a server is away
	Err         error `json:"-"` // that a start would end with; may be nil
}

// Verdict is how bad a finding is.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "ok"
	Warning Verdict = "warning" // it works, but not for ever or not all of it
	Broken  Verdict = "broken"
)

// Goodf is a finding of something that is well.
func Goodf(check, format string, args ...any) Finding {
	return Finding{Check: check, State: Good, Found: fmt.Sprintf(format, args...)}
}

// Failed is a finding of what an error says, and how it is mended.
func Failed(check string, err error, mend string) Finding {
	text := fault.Detail(err)
	if text == "" {
		text = err.Error()
	}
	return Finding{Check: check, State: Broken, Found: text, Mend: mend, Err: err}
}

// Those picks findings of one verdict.
func Those(all []Finding, state Verdict) (picked []Finding) {
	for _, f := range all {
		if f.State == state {
			picked = append(picked, f)
		}
	}
	return picked
}
