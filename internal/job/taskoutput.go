package job

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// taskOutput is what a task says in the keys of its output that every runner of tasks knows.
type taskOutput struct {
	text    string // what may be kept and shown
	failed  bool   // it has an _error
	problem string // of that
}

// hiddenValue stands for what a task marks as sensitive.
const hiddenValue = `"(hidden)"`

// readTaskOutput reads a task's output: an object, or a text that says nothing of this.
func readTaskOutput(stdout string) taskOutput {
	out := taskOutput{text: stdout}
	if !strings.HasPrefix(strings.TrimSpace(stdout), "{") {
		return out
	}
	object := map[string]jsontext.Value{}
	if json.Unmarshal([]byte(stdout), &object, jsontext.AllowDuplicateNames(true)) != nil {
		return out
	}
	if problem, there := object["_error"]; there && problem.Kind() != 'n' {
		out.failed, out.problem = true, problemText(problem)
	}
	if _, there := object["_sensitive"]; there {
		out.text = withoutSensitive(stdout)
	}
	return out
}

// problemText is the words of an _error: its msg, or all of it.
func problemText(problem jsontext.Value) string {
	var known struct {
		Msg string `json:"msg"`
	}
	if json.Unmarshal(problem, &known) == nil && known.Msg != "" {
		return known.Msg
	}
	var text string
	if json.Unmarshal(problem, &text) == nil {
		return text
	}
	return string(problem)
}

// withoutSensitive is an object without the values of its keys _sensitive. Everything else stays as it was written.
func withoutSensitive(object string) string {
	d := jsontext.NewDecoder(bytes.NewReader([]byte(object)), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return hiddenValue
	}
	var kept strings.Builder
	from := int64(0)
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return hiddenValue
		}
		sensitive := name.String() == "_sensitive"
		value, err := d.ReadValue()
		if err != nil {
			return hiddenValue
		}
		if sensitive {
			fmt.Fprint(&kept, object[from:d.InputOffset()-int64(len(value))], hiddenValue)
			from = d.InputOffset()
		}
	}
	return kept.String() + object[from:]
}
