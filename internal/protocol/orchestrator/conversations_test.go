package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/task/tasktest"
)

// conversation is what a client sends, one request behind the other, and what it reads of the answers.
type conversation struct {
	Client   string            `json:"client"`
	Recorded string            `json:"recorded"` // how it became known
	Headers  map[string]string `json:"headers"`
	Steps    []step            `json:"steps"`
}

// step is one request. Texts in braces stand for what comes with an answer: {new job} keeps a text, {job} is the one kept, {link} is an
// absolute URL, {something} anything but null.
type step struct {
	Token     string                        `json:"token"` // the administrator's if empty
	Method    string                        `json:"method"`
	Path      string                        `json:"path"`
	Body      json.RawMessage               `json:"body"`
	Nodes     map[fleet.Certname]nodeAnswer `json:"nodes"`      // how nodes answer what the step starts
	UntilOver bool                          `json:"until_over"` // asked again until the job's state is final
	Status    int                           `json:"status"`
	ParsedAs  string                        `json:"parsed_as"` // which form of the client takes the answer
	Reads     json.RawMessage               `json:"reads"`     // what the client looks for: more may be there
}

type nodeAnswer struct {
	ExitCode int             `json:"exit_code"`
	Stdout   string          `json:"stdout"`
	Results  json.RawMessage `json:"results"` // of a Puppet run
}

// shims are tasks of the interface that Bolt's pcp transport asks for.
var shims = tasktest.Version{
	"bolt_shim/tasks/command.json": `{"input_method":"stdin","parameters":{"command":{"type":"String"}}}`,
	"bolt_shim/tasks/command.rb":   "",
	"bolt_shim/tasks/script.json": `{"input_method":"stdin","parameters":{"content":{"type":"String","sensitive":true},"arguments":{"type":"Array[String]"},
		"name":{"type":"String"}}}`,
	"bolt_shim/tasks/script.rb": "",
	"bolt_shim/tasks/upload.json": `{"input_method":"stdin","parameters":{"path":{"type":"String"},"content":{"type":"String","sensitive":true},"mode":{"type":"Integer"},
		"directory":{"type":"Boolean"}}}`,
	"bolt_shim/tasks/upload.rb": "",
	"demo/tasks/greet.json": `{"input_method":"environment","parameters":{"who":{"type":"String"},"fail":{"type":"Optional[Boolean]"},
		"secret":{"type":"Optional[String]","sensitive":true}}}`,
	"demo/tasks/greet.sh": "",
}

// What real clients of Puppet Enterprise say goes as it went, and they find in each answer what they read.
func TestConversationsOfClients(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/conversations/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c conversation
			if err := json.Unmarshal(text, &c); err != nil || len(c.Steps) == 0 {
				t.Fatalf("%v in %s", err, file)
			}
			b := newBench(t)
			b.code = maps.Clone(code)
			maps.Copy(b.code, shims)
			talk := &talk{bench: b, conversation: c, forms: clientForms[name], kept: map[string]string{}}
			for i, s := range c.Steps {
				talk.step(t, fmt.Sprintf("%s, step %d, %s %s", name, i+1, s.Method, s.Path), s)
			}
		})
	}
}

// talk is a conversation that goes on.
type talk struct {
	*bench
	conversation
	forms map[string]func() any
	kept  map[string]string
}

func (c *talk) step(t *testing.T, what string, s step) {
	t.Helper()
	for node, answer := range s.Nodes {
		c.fleet.Behave(node, jobtest.Manner{ExitCode: answer.ExitCode, Stdout: answer.Stdout, Results: string(answer.Results)})
	}
	w := c.ask(s)
	for s.UntilOver && !slices.ContainsFunc([]string{"finished", "failed", "stopped"}, func(state string) bool {
		return strings.Contains(w.Body.String(), `"state":"`+state+`"`)
	}) {
		select {
		case <-t.Context().Done():
			t.Fatal(what, t.Context().Err())
		case <-time.After(5 * time.Millisecond):
			w = c.ask(s)
		}
	}
	var got, want any
	err := json.Unmarshal(w.Body.Bytes(), &got)
	if _, is := got.(map[string]any); err != nil || !is || w.Code != s.Status || w.Header().Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("%s: %d %s, want %d", what, w.Code, w.Body, s.Status)
	}
	if err := json.Unmarshal(s.Reads, &want); err != nil {
		t.Fatal(what, err)
	}
	if missing := c.missing("", want, got); missing != "" {
		t.Fatalf("%s: %s in %s", what, missing, w.Body)
	}
	if s.ParsedAs == "" {
		return
	}
	form := c.forms[s.ParsedAs]
	if form == nil {
		t.Fatalf("%s: there is no form %s", what, s.ParsedAs)
	}
	if err := json.Unmarshal(w.Body.Bytes(), form()); err != nil {
		t.Errorf("%s as %s: %v in %s", what, s.ParsedAs, err, w.Body)
	}
}

// ask sends one request, with what was kept in it.
func (c *talk) ask(s step) *httptest.ResponseRecorder {
	fill := func(text string) string {
		for name, value := range c.kept {
			text = strings.ReplaceAll(text, "{"+name+"}", value)
		}
		return text
	}
	r := httptest.NewRequest(s.Method, "/orchestrator/v1"+fill(s.Path), strings.NewReader(fill(string(s.Body))))
	r.Host = "tutti.example:8143"
	for name, value := range c.Headers {
		r.Header.Set(name, value)
	}
	if s.Method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-Authentication", "admin")
	if s.Token != "" {
		r.Header.Set("X-Authentication", s.Token)
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// missing says what of want is not in got; empty if all of it is.
func (c *talk) missing(at string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		object, is := got.(map[string]any)
		if !is {
			return at + " is no object"
		}
		for key, value := range want {
			if missing := c.missing(at+"."+key, value, object[key]); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		list, is := got.([]any)
		if !is || len(list) != len(want) {
			return fmt.Sprintf("%s has not %d items", at, len(want))
		}
		for i := range want {
			if missing := c.missing(fmt.Sprintf("%s[%d]", at, i), want[i], list[i]); missing != "" {
				return missing
			}
		}
		return ""
	case string:
		return c.missingText(at, want, got)
	}
	if want != got {
		return fmt.Sprintf("%s is not %v", at, want)
	}
	return ""
}

func (c *talk) missingText(at, want string, got any) string {
	text, is := got.(string)
	name, braces := strings.CutPrefix(want, "{")
	name, closed := strings.CutSuffix(name, "}")
	fresh, isNew := strings.CutPrefix(name, "new ")
	switch {
	case !braces || !closed:
		is = is && text == want
	case isNew:
		c.kept[fresh] = text
		is = is && text != ""
	case name == "link":
		is = is && strings.HasPrefix(text, "https://tutti.example:8143/orchestrator/v1/")
	case name == "something":
		is = got != nil
	default:
		is = is && text == c.kept[name]
	}
	if !is {
		return at + " is not " + want
	}
	return ""
}
