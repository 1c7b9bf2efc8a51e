package pxp

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// The bounds of the events of a run.
const (
	MaxRunEvents      = 500     // in one message
	MaxEventNumber    = 1 << 40 // of a run
	MaxEventTextBytes = 4096    // of a title, a message or a value
	MaxEventNameBytes = 512     // of everything else
	MaxContainment    = 100     // elements of a containment path
	firstYear         = 1990
	lastYear          = 2200
	cutMark           = "… (cut)"
)

// The kinds of events of a run.
const (
	RunBegan      = "begin"    // the run began
	ResourceEvent = "resource" // something happened to a resource, as Puppet's reports have it
	EventsMissing = "missing"  // the node had no room to keep so many
	RunEnded      = "end"      // the run ended; its status says how
)

// RunInterrupted is the status of a run that ended without a word: it was killed.
const RunInterrupted = "interrupted"

// RunEvents is the data of a message with events of one Puppet run, in the order in which they happened.
type RunEvents struct {
	Run    string     `json:"run"` // the transaction_uuid of its report
	Events []RunEvent `json:"events"`
}

// RunEvent is one thing that happened in a Puppet run.
type RunEvent struct {
	N           int       `json:"n"` // its number in the run, from 1, without gaps
	Kind        string    `json:"kind"`
	At          time.Time `json:"at"`
	Environment string    `json:"environment,omitzero"`
	Noop        bool      `json:"noop,omitzero"`           // of a run: all of it
	Transaction string    `json:"transaction_id,omitzero"` // of begin: the PXP transaction that ordered the run
	Missing     int       `json:"missing,omitzero"`        // of missing: how many, the first of them is N
	Version     string    `json:"version,omitzero"`        // of end: config_version
	Pending     int       `json:"pending,omitzero"`        // of end: resources that noop kept from changing

	// The outcome; Status is also that of a run that ended: changed, unchanged, failed, interrupted.
	Status      string         `json:"status,omitzero"` // success, failure, noop, audit, skipped
	Type        string         `json:"type,omitzero"`
	Title       string         `json:"title,omitzero"`
	Property    string         `json:"property,omitzero"`
	Name        string         `json:"name,omitzero"`
	Message     string         `json:"message,omitzero"`
	Old         jsontext.Value `json:"old,omitzero"` // as the report has it: what Puppet redacts is redacted
	New         jsontext.Value `json:"new,omitzero"`
	Redacted    bool           `json:"redacted,omitzero"`
	Corrective  bool           `json:"corrective,omitzero"`
	File        string         `json:"file,omitzero"`
	Line        int            `json:"line,omitzero"`
	Containment []string       `json:"containment,omitzero"`
}

// RunEventsTaken is the data of the answer: the events of a run up to a number are stored. It may be less
// than what was sent: then what is behind it is wanted.
type RunEventsTaken struct {
	Run  string `json:"run"`
	Last int    `json:"last"`
}

// Last is the number of the last event that e stands for.
func (e RunEvent) Last() int { return e.N + max(e.Missing, 1) - 1 }

// ParseRunEvents reads the data of a message with events.
func ParseRunEvents(data jsontext.Value) (RunEvents, error) {
	var r RunEvents
	if err := parse(data, &r); err != nil {
		return r, err
	}
	if err := CheckRun(r.Run); err != nil {
		return r, err
	}
	if len(r.Events) == 0 || len(r.Events) > MaxRunEvents {
		return r, fault.New(fault.Invalid, "field events: it has %d elements, 1 to %d are allowed", len(r.Events), MaxRunEvents)
	}
	for i, e := range r.Events {
		if err := e.check(); err != nil {
			return r, err
		}
		if i > 0 && e.N != r.Events[i-1].Last()+1 {
			return r, fault.New(fault.Invalid, "field events: number %d follows on %d; there must be no gap", e.N, r.Events[i-1].Last())
		}
	}
	return r, nil
}

// ParseRunEventsTaken reads the data of the answer.
func ParseRunEventsTaken(data jsontext.Value) (RunEventsTaken, error) {
	var t RunEventsTaken
	if err := parse(data, &t); err != nil {
		return t, err
	}
	if t.Last < 0 || t.Last > MaxEventNumber {
		return t, fault.New(fault.Invalid, "field last: %d is no number of an event", t.Last)
	}
	return t, CheckRun(t.Run)
}

// CheckRun says whether id may name a run: nodes make a directory of that name.
func CheckRun(id string) error {
	if CheckTransaction(id) != nil {
		return fault.New(fault.Invalid, "field run: 1 to %d letters, digits, _ and - are allowed; it is a UUID", MaxTransactionBytes)
	}
	return nil
}

func (e RunEvent) check() error {
	switch e.Kind {
	case RunBegan, ResourceEvent, RunEnded, EventsMissing:
	default:
		return fault.New(fault.Invalid, "field kind: %.40q is none of %s, %s, %s and %s", e.Kind, RunBegan, ResourceEvent, EventsMissing, RunEnded)
	}
	if (e.Kind == EventsMissing) != (e.Missing > 0) || e.Missing < 0 {
		return fault.New(fault.Invalid, "field missing: it is the number of events that are missing, of the kind %s only", EventsMissing)
	}
	if e.N < 1 || e.Missing > MaxEventNumber || e.Last() > MaxEventNumber {
		return fault.New(fault.Invalid, "field n: it is a number from 1 to %d", MaxEventNumber)
	}
	if e.Pending < 0 || e.Pending > MaxEventNumber {
		return fault.New(fault.Invalid, "field pending: it is the number of resources that would have been changed")
	}
	if year := e.At.UTC().Year(); year < firstYear || year > lastYear {
		return fault.New(fault.Invalid, "field at: it is a time of the years %d to %d", firstYear, lastYear)
	}
	if e.Transaction != "" && CheckTransaction(e.Transaction) != nil {
		return CheckTransaction(e.Transaction)
	}
	return e.checkTexts()
}

func (e RunEvent) checkTexts() error {
	for name, text := range map[string]string{"title": e.Title, "message": e.Message, "old": string(e.Old), "new": string(e.New)} {
		if err := checkText(name, text, MaxEventTextBytes); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"environment": e.Environment, "version": e.Version, "status": e.Status, "type": e.Type, "property": e.Property, "name": e.Name, "file": e.File,
	} {
		if err := checkText(name, text, MaxEventNameBytes); err != nil {
			return err
		}
	}
	if len(e.Containment) > MaxContainment {
		return fault.New(fault.Invalid, "field containment: it has %d elements, at most %d are allowed", len(e.Containment), MaxContainment)
	}
	for _, element := range e.Containment {
		if err := checkText("containment", element, MaxEventNameBytes); err != nil {
			return err
		}
	}
	if e.Line < 0 || e.Line > 1<<31 {
		return fault.New(fault.Invalid, "field line: it is the number of a line")
	}
	return nil
}

func checkText(field, text string, most int) error {
	if len(text) > most {
		return fault.New(fault.Invalid, "field %s: it has %d bytes, at most %d are allowed", field, len(text), most)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return fault.New(fault.Invalid, "field %s: it holds a byte 0", field)
	}
	return nil
}

// Fit makes an event of a node, or of a report, one that a message may hold: what is too long is cut, and
// says so.
func (e RunEvent) Fit() RunEvent {
	for _, text := range []*string{&e.Title, &e.Message} {
		*text = fitText(*text, MaxEventTextBytes)
	}
	for _, text := range []*string{&e.Environment, &e.Version, &e.Status, &e.Type, &e.Property, &e.Name, &e.File} {
		*text = fitText(*text, MaxEventNameBytes)
	}
	e.Old, e.New = fitValue(e.Old), fitValue(e.New)
	if len(e.Containment) > 0 {
		path := make([]string, min(len(e.Containment), MaxContainment))
		for i := range path {
			path[i] = fitText(e.Containment[i], MaxEventNameBytes)
		}
		e.Containment = path
	}
	if e.Line < 0 || e.Line > 1<<31 {
		e.Line = 0
	}
	e.Pending = min(max(0, e.Pending), MaxEventNumber)
	if CheckTransaction(e.Transaction) != nil {
		e.Transaction = ""
	}
	return e
}

func fitText(text string, most int) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if len(text) <= most {
		return text
	}
	keep := most - len(cutMark)
	for keep > 0 && !utf8.RuneStart(text[keep]) {
		keep--
	}
	return text[:keep] + cutMark
}

// fitValue cuts a value that is too long; it is a text then.
func fitValue(value jsontext.Value) jsontext.Value {
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	if len(value) <= MaxEventTextBytes && value.IsValid() {
		return value
	}
	text := string(value)
	if value.Kind() == '"' {
		if plain, err := jsontext.AppendUnquote(nil, value); err == nil {
			text = string(plain)
		}
	}
	for most := MaxEventTextBytes - 2; ; most /= 2 { // quoting may make it longer
		if quoted := Data(fitText(text, most)); len(quoted) <= MaxEventTextBytes {
			return quoted
		}
	}
}
