package cli

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fleet"
)

// What MCollective itself prints of the same answers, by its own code: mco rpc with its statistics, mco facts, mco find.
const theOriginal = `require "mcollective"
require "mcollective/application/facts"
require "pp"
include MCollective
Util.define_singleton_method(:colorize) { |_, text| text.to_s }
asked = JSON.parse($stdin.read)
ddl = {display: :always, output: asked["titles"].to_h { |name, title| [name, {display_as: title}] }}
text = asked["answers"].map { |a| RPC::Helpers.text_for_result(a["sender"], a["statuscode"], a["statusmsg"], a["data"], ddl) }.join
puts "\n%s\n" % [text]
stats = RPC::Stats.new
average = Aggregate::Result::NumericResult.new({type: :numeric, value: asked["average"], output: "percent"}, "mean %.1f", "usage")
def average.is_a?(kind) = kind == Aggregate::Result::Base || super
{discovered: asked["nodes"], responses: asked["answers"].size, noresponsefrom: asked["silent"], blocktime: 0.41208, discoverytime: 0.1, totaltime: 0.51208,
 starttime: asked["began"], okcount: 1, failcount: 2, aggregate_summary: [average], aggregate_failures: [],
 unexpectedresponsefrom: []}.each { |name, value| stats.instance_variable_set("@#{name}", value) }
interface = Object.new
interface.define_singleton_method(:action_interface) { |_| ddl.merge(output: {"percent" => {display_as: "Used %"}}) }
stats.instance_variable_set(:@ddl, interface)
puts stats.report("disk#usage call stats", true, asked["verbose"])
puts "---- facts"
facts = Application::Facts.allocate
facts.show_single_fact_report("os.family", asked["facts"], asked["verbose"])
`

// The layouts are held against what MCollective's own code prints.
func TestLayoutsAreTheOriginals(t *testing.T) {
	t.Parallel()
	results, err := action.Compile([]byte(`{"type": "object", "properties": {
		"percent": {"type": "integer", "title": "Used %", "x-order": 1}, "note": {"type": "string", "title": "A Note", "x-order": 2}, "mount": {"type": "string", "x-order": 3}}}`))
	if err != nil {
		t.Fatal(err)
	}
	answers := []action.Answer{
		{Node: "web1", Data: []byte(`{"percent": 71, "note": "two\nlines\n", "mount": ""}`)},
		{Node: "web2", Code: action.Aborted, Message: "no such mount", Data: []byte(`{"percent": 5}`)},
		{Node: "web4.a-name-that-is-longer-than-forty-characters.example.test", Code: action.InvalidData, Message: "field mount: it is missing"},
	}
	silent := []string{"web3", "web5", "web6.example.test", "web7"}
	for _, verbosely := range []bool{false, true} {
		p := &mcoAnswers{
			module: "disk", results: results, took: 412080 * time.Microsecond, began: time.Unix(1700000000, 0), verbosely: verbosely,
			found: discovery{nodes: make([]string, 7), took: 100 * time.Millisecond},
			action: action.Action{
				Name: "usage", Display: action.Always, Aggregates: []action.Aggregate{{Function: action.Average, Field: "percent", Format: "mean %.1f"}},
			},
			all: answers,
		}
		type sent struct {
			Sender     string          `json:"sender"`
			StatusCode int             `json:"statuscode"`
			StatusMsg  string          `json:"statusmsg"`
			Data       json.RawMessage `json:"data,omitempty"`
		}
		var said []sent
		for _, a := range answers {
			said = append(said, sent{string(a.Node), statusCode(a.Code), statusText(a), json.RawMessage(a.Data)})
		}
		for _, name := range silent {
			p.all = append(p.all, action.Answer{Node: fleet.Certname(name), Code: action.Silent})
		}
		question, err := json.Marshal(map[string]any{
			"titles": map[string]string{"percent": "Used %", "note": "A Note", "mount": "mount"}, "answers": said, "average": 71.0, "nodes": 7, "silent": silent,
			"verbose": verbosely, "began": 1700000000, "facts": map[string][]string{"RedHat": {"a"}, "Debian": {"c", "b"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ruby := exec.CommandContext(t.Context(), "ruby", "-e", theOriginal)
		ruby.Env, ruby.Stdin = append(ruby.Environ(), "TZ=UTC"), bytes.NewReader(question)
		want, err := ruby.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, want)
		}
		p.began = p.began.UTC()
		got := p.text() + "---- facts\n" + factCounts("os.family", []action.Answer{
			{Node: "c", Data: []byte(`{"value": "Debian"}`)},
			{Node: "a", Data: []byte(`{"value": "RedHat"}`)},
			{Node: "b", Data: []byte(`{"value": "Debian"}`)},
			{Node: "d", Data: []byte(`{"value": null}`)},
		}, verbosely)
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("verbosely: %v (-MCollective +tutti):\n%s\n%s", verbosely, diff, want)
		}
	}
}
