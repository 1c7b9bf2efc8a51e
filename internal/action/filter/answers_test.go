package filter_test

import (
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
)

func TestAnswersHold(t *testing.T) {
	t.Parallel()
	reply := filter.Reply{Code: 1, State: "aborted", Node: "web-1.example", Message: "no such service"}
	const data = `{"status": "stopped", "size": 7, "tags": ["a", "b"], "deep": {"er": 1.5}, "on": true}`
	for text, want := range map[string]bool{
		`code == 1`: true, `code == 0`: false, `state == "aborted" and code > 0`: true, `node matches "^web"`: true, `message contains "such"`: true,
		`data.status == "stopped"`: true, `data["status"] == "running"`: false, `data.size > 5`: true, `data.size == 7`: true, `data.size < 7.0`: false,
		`data.deep.er == 1.5`: true, `"b" in data.tags`: true, `len(data.tags) == 2`: true, `any(data.tags, # == "a")`: true, `data.on`: true, `not data.on`: false,
		`not data.status == "running"`: true, `code == 0 or data.on`: true,
		// What is not there, and what is of another kind, does not hold.
		`data.nothing == "x"`: false, `data.nothing.deeper == 1`: false, `data.status > 5`: false, `data.status`: false, `data.size.x == 1`: false,
		`not (data.nothing > 5)`: false,
	} {
		a, err := filter.ParseAnswers(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := a.Hold(reply, []byte(data)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		if a.Hold(reply, []byte(`{"status":`)) {
			t.Errorf("%s holds for what is no JSON", text)
		}
	}
	if a, err := filter.ParseAnswers(`code == 1 and data.status == "x"`); err != nil || a.Hold(reply, nil) || a.Hold(reply, []byte(`[1]`)) ||
		a.Hold(reply, []byte(`"x"`)) {
		t.Errorf("without an object: %v", err)
	}
}

func TestExpressionsOverAnswersThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``: "it is empty", `code = 0`: `one = is written in facts`, `code ==`: "character", `cod == 0`: `unknown name cod`,
		`code`:            "a condition is true or false|expected bool",
		`fact("os") == 1`: "unknown name fact", `code == "0"`: "invalid operation|mismatched", `map(data, # > 1)`: "expected bool",
		strings.Repeat("x", 5000): "4096 may be", strings.TrimSuffix(strings.Repeat("code == 1 or ", 150), " or "): "300 parts",
	} {
		_, err := filter.ParseAnswers(text)
		said := ""
		if err != nil {
			said = err.Error() + fault.Hint(err)
		}
		fits := false
		for one := range strings.SplitSeq(want, "|") {
			fits = fits || strings.Contains(said, one)
		}
		if fault.Of(err) != fault.Invalid || !fits {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}
