package ruby

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// askCode asks in every way, one node each.
var askCode = map[string]string{
	"environment.conf": "modulepath = modules\n",
	"manifests/site.pp": `
node 'collects.example.org' { Notify <<| |>> }
node 'queries.example.org' { notify { 'q': message => puppetdb_query('resources[title]{type = "Notify"}') } }
node 'mistake.example.org' {
  notify { 'before': }
  $rows = puppetdb_query('resources[title]{')
}
node 'wrong-field.example.org' { $rows = puppetdb_query(['from', 'resources', ['=', 'nothing', 'x']]) }
node 'no-query.example.org' { $rows = puppetdb_query(5) }
node 'lists.example.org' { $list = ['a', 'b'] Notify <<| message == $list |>> }
node 'curious.example.org' {
  Integer[1, 5].each |$n| { $rows = puppetdb_query("resources[title]{title = '${n}'}") }
}
node 'repeats.example.org' {
  Integer[1, 50].each |$n| { $rows = puppetdb_query('resources[title]{title = "x"}') }
}
node 'long.example.org' { $rows = puppetdb_query(bad::long()) }
node 'rescues.example.org' { notify { 'rescued': message => bad::rescued() } }
node 'refused.example.org' { notify { 'refused': message => bad::refused() } }
node 'endless.example.org' { bad::endless() }
node 'overlong.example.org' { bad::overlong() }
node 'garbage.example.org' { bad::garbage() }
node 'stranger.example.org' { bad::stranger() }
node 'rich.example.org' {
  @@notify { 'rich': message => Timestamp('2020-01-01T00:00:00Z'), tag => ['a', 'b'] }
  @@file { '/collected': content => Deferred('sprintf', ['x']), require => Notify['rich'] }
  File <<| |>>
}
node default { notify { 'fine': } }
`,
	"modules/bad/lib/puppet/functions/bad/long.rb": function("long", "", "'x' * 1_100_000"),
	"modules/bad/lib/puppet/functions/bad/rescued.rb": function("rescued", "",
		askRuby+"begin; asked.query('resources[title]{}'); rescue Puppet::Error; 'never mind'; end"),
	"modules/bad/lib/puppet/functions/bad/refused.rb": function("refused", "",
		askRuby+"begin; asked.query('resources[title]{'); rescue Puppet::Error; 'never mind'; end"),
	"modules/bad/lib/puppet/functions/bad/endless.rb": function("endless", "",
		askRuby+"loop { asked.query(\"resources[title]{title = '#{rand}'}\") rescue nil }"),
	"modules/bad/lib/puppet/functions/bad/overlong.rb": function("overlong", "", askRuby+"asked.send(:ask, 'ask' => 'query', 'query' => 'x' * 3_000_000)"),
	"modules/bad/lib/puppet/functions/bad/garbage.rb": function("garbage", "",
		askRuby+"asked.instance_variable_get(:@wire).instance_variable_get(:@io).write(\"\\x00 no json\\n\")"),
	"modules/bad/lib/puppet/functions/bad/stranger.rb": function("stranger", "",
		askRuby+"asked.instance_variable_set(:@node, 'other.example.org'); asked.query('resources{}')"),
}

const askRuby = "asked = Tutti::Questions.current; "

func TestAsking(t *testing.T) {
	t.Parallel()
	known := compiletest.NewInventory()
	known.Replace("a.example.org", compiletest.Resource{Type: "Notify", Title: "hello", Exported: true, Parameters: json.RawMessage(`{}`)})
	pool := runningWith(t, Config{Workers: 1, MaxQuestions: 4, MaxAnswerBytes: 10_000}, directories{version("ask"): tree(t, askCode)}, known)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Pool, *compiletest.Inventory)
	}{
		{"WarmingAsksToo", warmingAsksToo},
		{"MistakesSayWhere", askingMistakes},
		{"EqualQuestionsAreAskedOnce", equalQuestions},
		{"NoAnswerIsNoEmptyAnswer", noAnswer},
		{"AnswersTooLarge", answersTooLarge},
		{"ARefusalIsAnAnswer", refusalIsAnswer},
		{"HostileCodeIsEnded", hostileCode},
		{"ExportedRichDataIsText", exportedRichData},
		{"KilledWhileAQuestionIsOpen", killedWhileAsking},
		{"CancelledWhileAQuestionIsOpen", cancelledWhileAsking},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, pool, known) })
	}
}

func ask(t *testing.T, node string) compile.Order {
	t.Helper()
	return order(t, "production", "ask", node+".example.org")
}

func warmingAsksToo(t *testing.T, pool *Pool, known *compiletest.Inventory) {
	t.Helper()
	err := pool.Warm(t.Context(), "production", version("ask"), []compile.Order{ask(t, "collects"), ask(t, "queries"), ask(t, "mistake")})
	if err != nil {
		t.Fatal(err)
	}
	if known.Questions() != 3 || pool.isSlow(key{environment: "production", version: version("ask")}) {
		t.Errorf("%d questions, want 3", known.Questions())
	}
	if c := mustCompile(t, pool, ask(t, "collects")); c.find("Notify[hello]") == nil {
		t.Error("the warm worker does not collect")
	}
}

func askingMistakes(t *testing.T, pool *Pool, _ *compiletest.Inventory) {
	t.Helper()
	for node, want := range map[string]struct {
		message string
		line    int
	}{
		"mistake":     {"(line 1, column 18)", 6},
		"wrong-field": {"'nothing' is not a queryable object for resources", 8},
		"no-query":    {"'puppetdb_query' parameter 'query' expects a value of type String or Array", 9},
		"curious":     {"more than 4 questions", 12},
		"long":        {"the query has 1100000 bytes, at most 1048576 are allowed", 17},
		"stranger":    {`the catalog of node "other.example.org" is not being compiled`, 23},
	} {
		got := fails(t, pool, ask(t, node))
		if got.Cause != compile.CauseCode || !strings.Contains(got.Message, want.message) {
			t.Errorf("%s: cause %s, message %q, want %q in it", node, got.Cause, got.Message, want.message)
		}
		if want.line != 0 && (got.File != "manifests/site.pp" || got.Line != want.line) {
			t.Errorf("%s: at %s:%d, want line %d (%s)", node, got.File, got.Line, want.line, got.Message)
		}
	}
	mustCompile(t, pool, ask(t, "lists"))
}

// Code that goes on without an answer gives another catalog where the question is answered.
func refusalIsAnswer(t *testing.T, pool *Pool, _ *compiletest.Inventory) {
	t.Helper()
	outcome, err := pool.Compile(t.Context(), ask(t, "refused"))
	if err != nil {
		t.Fatal(err)
	}
	want := compile.Question{Kind: compile.AskedQuery, Text: "resources[title]{", Refused: true}
	if len(outcome.Asked) != 1 || outcome.Asked[0].Answer == "" {
		t.Fatalf("it asked %+v", outcome.Asked)
	}
	want.Answer = outcome.Asked[0].Answer
	if outcome.Asked[0] != want || want.Answer == fleet.DigestOf([]byte("[]")) {
		t.Errorf("it asked %+v, want %+v", outcome.Asked[0], want)
	}
}

func equalQuestions(t *testing.T, pool *Pool, known *compiletest.Inventory) {
	t.Helper()
	before := known.Questions()
	mustCompile(t, pool, ask(t, "repeats"))
	if asked := known.Questions() - before; asked != 1 {
		t.Errorf("fifty equal queries asked %d questions", asked)
	}
}

func noAnswer(t *testing.T, pool *Pool, known *compiletest.Inventory) {
	t.Helper()
	defer known.Fail(nil)
	known.Fail(fault.New(fault.Unavailable, "the database is away"))
	for _, node := range []string{"collects", "queries", "rescues"} {
		_, err := pool.Compile(t.Context(), ask(t, node))
		if _, ours := errors.AsType[*compile.Error](err); err == nil || ours || fault.Of(err) != fault.Unavailable ||
			!strings.Contains(fault.Detail(err), "the database is away") {
			t.Errorf("%s: got %v, want an error that says to try again", node, err)
		}
	}
	known.Fail(errors.New("secret detail")) // an internal error: its text is for the log
	if _, err := pool.Compile(t.Context(), ask(t, "collects")); fault.Of(err) != fault.Unavailable || strings.Contains(fault.Detail(err), "secret") {
		t.Errorf("got %v", err)
	}
	known.Fail(nil)
	if c := mustCompile(t, pool, ask(t, "collects")); c.find("Notify[hello]") == nil {
		t.Error("the next compile does not collect")
	}
}

func answersTooLarge(t *testing.T, pool *Pool, known *compiletest.Inventory) {
	t.Helper()
	known.Replace("b.example.org", compiletest.Resource{
		Type: "Notify", Title: "large", Exported: true, Parameters: json.RawMessage(`{"message":"` + strings.Repeat("x", 20_000) + `"}`),
	})
	defer known.Replace("b.example.org")
	if got := fails(t, pool, ask(t, "collects")); got.Cause != compile.CauseCode || !strings.Contains(got.Message, "bytes") ||
		got.File != "manifests/site.pp" || got.Line != 2 {
		t.Errorf("got %+v, want the collector's place", got)
	}
}

func hostileCode(t *testing.T, pool *Pool, _ *compiletest.Inventory) {
	t.Helper()
	if got := fails(t, pool, ask(t, "endless")); got.Cause != compile.CauseCode || !strings.Contains(got.Message, "more than 4 questions") {
		t.Errorf("endless: got %+v", got)
	}
	for _, node := range []string{"overlong", "garbage"} {
		if got := fails(t, pool, ask(t, node)); got.Cause != compile.CauseCrash {
			t.Errorf("%s: got %+v", node, got)
		}
	}
	mustCompile(t, pool, ask(t, "fine"))
}

// As PuppetDB has them: text, also where the resource is collected by its own node.
func exportedRichData(t *testing.T, pool *Pool, _ *compiletest.Inventory) {
	t.Helper()
	outcome, err := pool.Compile(t.Context(), ask(t, "rich"))
	if err != nil {
		t.Fatal(err)
	}
	var exported []resource
	if err := json.Unmarshal(outcome.Exported, &exported); err != nil || len(exported) != 2 {
		t.Fatalf("exported %s, %v", outcome.Exported, err)
	}
	if got := exported[0].Parameters["message"]; got != "2020-01-01T00:00:00.000000000 UTC" {
		t.Errorf("message %v", got)
	}
	if got, ok := exported[1].Parameters["content"].(string); !ok || !strings.HasPrefix(got, "Deferred(") {
		t.Errorf("content %v", exported[1].Parameters["content"])
	}
	if got := exported[1].Parameters["require"]; got != "Notify[rich]" {
		t.Errorf("require %v", got)
	}
	if got, ok := parse(t, outcome.Catalog).find("File[/collected]").Parameters["content"].(map[string]any); !ok || got["__ptype"] != "Deferred" {
		t.Errorf("the agent gets %v", got)
	}
}

func killedWhileAsking(t *testing.T, pool *Pool, known *compiletest.Inventory) {
	t.Helper()
	opened := known.Hang(true)
	done := compileLater(pool, t.Context(), ask(t, "collects"))
	<-opened
	killed := aWorker(t, pool)
	known.Hang(false)
	_ = syscall.Kill(hostPID(t, killed), syscall.SIGKILL)
	r := <-done
	if r.err != nil || len(r.outcome.Collected) != 1 {
		t.Errorf("after its worker was killed: collected %v, %v", r.outcome.Collected, r.err)
	}
}

func cancelledWhileAsking(t *testing.T, pool *Pool, known *compiletest.Inventory) {
	t.Helper()
	opened := known.Hang(true)
	ctx, cancel := context.WithCancel(t.Context())
	done := compileLater(pool, ctx, ask(t, "queries"))
	<-opened
	cancel()
	if r := <-done; r.err == nil {
		t.Error("the cancelled compile did not end with an error")
	}
	known.Hang(false)
	mustCompile(t, pool, ask(t, "queries"))
}

func TestTimeLimitHoldsWhileAQuestionIsOpen(t *testing.T) {
	t.Parallel()
	known := compiletest.NewInventory()
	pool := runningWith(t, Config{Workers: 1, Timeout: 5 * time.Second}, directories{version("ask"): tree(t, askCode)}, known)
	known.Hang(true)
	if got := fails(t, pool, ask(t, "collects")); got.Cause != compile.CauseTimeout {
		t.Errorf("got %+v", got)
	}
}

// An environment that brings its own puppetdb_query uses that.
func TestEnvironmentsMayBringTheirOwnPuppetdbQuery(t *testing.T) {
	t.Parallel()
	site := "notify { 'q': message => puppetdb_query('nodes{}') }\n"
	own := map[string]map[string]string{
		"module": {
			"modules/own/lib/puppet/functions/puppetdb_query.rb": "Puppet::Functions.create_function(:puppetdb_query) { def puppetdb_query(_); 'module'; end }\n",
		},
		"dsl": {"functions/puppetdb_query.pp": "function puppetdb_query($query) { 'dsl' }\n"},
	}
	checkouts := directories{}
	for name, files := range own {
		files["manifests/site.pp"] = site
		checkouts[version(name)] = tree(t, files)
	}
	known := compiletest.NewInventory()
	pool := runningWith(t, Config{Workers: 1}, checkouts, known)
	for name := range own {
		c := mustCompile(t, pool, order(t, "production", name, "n.example.org"))
		if got := c.find("Notify[q]").Parameters["message"]; got != name {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if known.Questions() != 0 {
		t.Errorf("the inventory was asked %d times", known.Questions())
	}
}

// FuzzHear reads whatever Ruby may send, with its questions answered.
func FuzzHear(f *testing.F) {
	f.Add([]byte(`{"v":1,"ask":"collect","node":"n","type":"Notify","filter":["=","title","x"]}` + "\n" + `{"v":1,"logs":[]}` + "\n"))
	f.Add([]byte(`{"v":1,"ask":"query","node":"n","query":"resources{}"}` + "\n"))
	f.Add([]byte(`{"v":1,"ask":"query","node":"m","query":"[\"from\""}` + "\n"))
	f.Add([]byte(`{"v":1,"ask":"other","node":"n"}` + "\n" + `{"v":2}` + "\n"))
	f.Add([]byte(`{"v":1,"ask":"collect","node":"n","filter":{}}` + "\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		talk := newAsking(compiletest.NewInventory(), Config{MaxQuestions: 3, MaxAnswerBytes: 1000}, &out, compile.Order{Node: "n"})
		reply, err := hear[workerReply](bufio.NewReader(bytes.NewReader(input)), func(m *message) error { return talk.answer(t.Context(), m) })
		if err == nil && (reply.Ask != "" || reply.V != protocolVersion) {
			t.Errorf("took %+v for an answer", reply)
		}
		lines := bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
		if out.Len() > 0 && len(lines) > 3+patience {
			t.Errorf("%d answers", len(lines))
		}
		for _, line := range lines {
			var got struct {
				V     int
				Rows  *[]json.RawMessage
				Error string
			}
			if out.Len() > 0 && (json.Unmarshal(line, &got) != nil || got.V != protocolVersion || (got.Rows == nil) == (got.Error == "")) {
				t.Errorf("answered %q", line)
			}
		}
	})
}
