package diff

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// blobs is content by digest.
type blobs map[fleet.Digest]string

func blobsOf(texts ...string) blobs {
	b := blobs{}
	for _, text := range texts {
		b[fleet.DigestOf([]byte(text))] = text
	}
	return b
}

func (b blobs) Blob(_ context.Context, d fleet.Digest, limit int64) ([]byte, error) {
	text, there := b[d]
	switch {
	case !there:
		return nil, fault.New(fault.NotFound, "no blob")
	case int64(len(text)) > limit:
		return nil, fault.New(fault.Invalid, "too large")
	}
	return []byte(text), nil
}

func sumOf(text string) string { return "{sha256}" + string(fleet.DigestOf([]byte(text))) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		check(t, os.MkdirAll("testdata", 0o755))
		check(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

const (
	tableLines = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"
	scriptOld  = "#!/bin/sh\necho old\n"
	scriptNew  = "#!/bin/sh\necho new\n"
	binaryBlob = "\x7fELF\x00\x01"
)

func oldSample() string {
	return `{"exported":[{"type":"Host","title":"a","parameters":{"ip":"192.0.2.1"},"tags":["h"]}],"catalog":{"name":"web-1.example.org","environment":"production",
"classes":["settings","web"],"tags":["settings"],"edges":[{"source":"Stage[main]","target":"Class[Web]"},{"source":"Class[Web]","target":"User[legacy]"}],"resources":[
{"type":"Stage","title":"main","tags":["stage"]},
{"type":"Class","title":"Web","tags":["web"],"parameters":{"ports":[80,443],"options":{"a":1,"odd key":{"deep":[{"x":"y"}]}}},"file":"a.pp","line":1},
{"type":"User","title":"legacy","tags":["user"],"parameters":{"ensure":"present"},"file":"users.pp","line":4},
{"type":"Package","title":"openssl","parameters":{"ensure":"3.0.15","require":"Class[Web]"},"tags":["p"],"file":"a.pp","line":3},
{"type":"Package","title":"tar","parameters":{"ensure":"1.34"},"tags":["p"]},
{"type":"File","title":"/etc/table","parameters":{"content":"` + strings.ReplaceAll(tableLines, "\n", `\n`) + `"},"tags":["f"]},
{"type":"File","title":"/usr/local/bin/run","parameters":{"source":"puppet:///modules/web/run"},"tags":["f"]},
{"type":"File","title":"/usr/local/bin/tool","parameters":{"source":"puppet:///modules/web/tool"},"tags":["f"]},
{"type":"File","title":"/usr/local/bin/lost","parameters":{"source":"puppet:///modules/web/lost"},"tags":["f"]},
{"type":"File","title":"/etc/moved","parameters":{"content":"` + strings.ReplaceAll(scriptOld, "\n", `\n`) + `"},"tags":["f"]},
{"type":"File","title":"/etc/tree","parameters":{"source":"puppet:///modules/web/tree","recurse":true},"tags":["f"]},
{"type":"File","title":"/etc/secret","parameters":{"content":"old","show_diff":false},"tags":["f"]}],
"metadata":{
"/usr/local/bin/run":{"type":"file","mode":420,"content_uri":"puppet:///modules/web/files/run","checksum":{"value":"` + sumOf(scriptOld) + `"}},
"/usr/local/bin/tool":{"type":"file","mode":420,"checksum":{"value":"` + sumOf("text\n") + `"}},
"/usr/local/bin/lost":{"type":"file","mode":420,"checksum":{"value":"` + sumOf("gone") + `"}}},
"recursive_metadata":{"/etc/tree":{"puppet:///modules/web/tree":[{"relative_path":".","type":"directory"},{"relative_path":"a","type":"file","checksum":{"value":"` + sumOf(scriptOld) + `"}}]}}}}`
}

func newSample() string {
	return strings.NewReplacer(
		`"environment":"production"`, `"environment":"staging"`, `[80,443]`, `[80,8080,443]`, `"x":"y"`, `"x":"z"`, `"a":1,"odd`, `"b":2,"odd`,
		`3.0.15`, `3.0.17`, `four`, `4\u001b[31m`, `192.0.2.1`, `192.0.2.2`, `"line":3`, `"line":33`, `"require":"Class[Web]"`,
		`"require":["Class[Web]","User[new]"]`,
		`"type":"User","title":"legacy"`, `"type":"User","title":"new"`, `User[legacy]`, `User[new]`, `"content":"old"`, `"content":"new"`,
		`{"type":"Package","title":"tar","parameters":{"ensure":"1.34"},"tags":["p"]}`,
		`{"type":"Package","title":"tar","parameters":{"ensure":"1.34","before":"User[new]"},"tags":["p","q"]}`,
		`{"type":"Stage","title":"main","tags":["stage"]},`, ``,
		`"tags":["f"]}],`, `"tags":["f"]},{"type":"Stage","title":"main","tags":["stage"]}],`,
		sumOf("text\n"), sumOf(binaryBlob), sumOf("gone"), sumOf("new"), `web/files/run`, `web2/files/run`,
		`"mode":420,"content_uri"`, `"mode":493,"content_uri"`,
		`{"relative_path":"a","type":"file","checksum":{"value":"`+sumOf(scriptOld)+`"}}`,
		`{"relative_path":"b","type":"file","checksum":{"value":"`+sumOf(scriptNew)+`"}}`,
		`"content":"#!/bin/sh\necho old\n"`, `"source":"puppet:///modules/web/moved"`,
		`"metadata":{`, `"metadata":{"/etc/moved":{"type":"file","checksum":{"value":"`+sumOf(scriptNew)+`"}},`,
	).Replace(oldSample())
}

func TestSampleIsPrinted(t *testing.T) {
	t.Parallel()
	shower := NewShower(blobsOf(scriptOld, scriptNew, binaryBlob, "text\n"), DefaultLimits())
	shown := shower.Show(t.Context(), compareTexts(t, oldSample(), newSample()))
	var text, full, markdown bytes.Buffer
	check(t, WriteText(&text, shown, false))
	check(t, WriteText(&full, shown, true))
	check(t, WriteMarkdown(&markdown, shown, false))
	golden(t, "sample", text.String())
	golden(t, "sample-order", full.String())
	golden(t, "sample-markdown", markdown.String())
}

// TestFleetIsPrinted prints what a reviewer reads first.
func TestFleetIsPrinted(t *testing.T) {
	t.Parallel()
	g := newGrouper(t, GrouperConfig{Shower: NewShower(blobsOf(scriptOld, scriptNew), exampleLimits)})
	resources := func(openssl, motd, rest string) string {
		return catalogOf(`{"type":"Package","title":"openssl","parameters":{"ensure":"` + openssl + `"}},
			{"type":"File","title":"/etc/motd","parameters":{"content":"hello\n` + motd + `\n"}},{"type":"User","title":"a","parameters":{"uid":1}}` + rest)
	}
	legacy, order := `,{"type":"User","title":"legacy"}`, `,{"type":"Notify","title":"n","parameters":{"before":"User[a]"}}`
	for n := range uint32(100) {
		node := Node{n, nodeName(n)}
		switch {
		case n < 3:
			g.AddError(node, CompileError{
				Message: "Class[Profile::Db]: parameter 'size' expects an Integer value, got String", File: "profile/manifests/db.pp", Line: 12,
			})
		case n < 10:
			g.Add(t.Context(), node, compareTexts(t, resources("3.0.15", "x", legacy), resources("3.0.17", "x", "")))
		case n < 40:
			g.Add(t.Context(), node, compareTexts(t, resources("3.0.15", "old", ""), resources("3.0.17", "new|`"+string(rune('a'+n%3)), "")))
		case n < 45:
			g.Add(t.Context(), node, compareTexts(t, resources("1", "", `,{"type":"Notify","title":"n"}`), resources("1", "", order)))
		default:
			g.AddSame(node)
		}
	}
	var text, full, markdown bytes.Buffer
	f := fleetOf(t, g)
	for i := range f.Groups {
		f.Groups[i].Key = ""
	}
	check(t, WriteFleetText(&text, f, false))
	check(t, WriteFleetText(&full, f, true))
	check(t, WriteFleetMarkdown(&markdown, f, false))
	golden(t, "fleet", text.String())
	golden(t, "fleet-order", full.String())
	golden(t, "fleet-markdown", markdown.String())
}

// What cannot be shown is said, and nothing is without bounds.
func TestLongThingsAreCut(t *testing.T) {
	t.Parallel()
	limits := Limits{Resources: 2, Places: 3, Edges: 1, ValueBytes: 20, TextBytes: 2000, DiffLines: 5, ContextLines: 1}
	file := func(content string) string {
		return `{"type":"File","title":"/a","parameters":{"content":"` + content + `"}}`
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"a long value", file("short"), file(strings.Repeat("é", 50)), `éééééééééé… (100 bytes)`},
		{"many lines", file("x\\n"), file(strings.Repeat("y\\n", 50)), "more lines"},
		{"too much text", file("x\\n"), file(strings.Repeat("y\\n", 2000)), "too large for a diff"},
		{"a long line", file("x\\n"), file(strings.Repeat("z", 90) + "\\n"), "long lines are cut"},
		{"many places", `{"type":"A","title":"a","parameters":{"l":[1,2,3,4,5]}}`, `{"type":"A","title":"a","parameters":{"l":[[1],[2],[3],[4],[5]]}}`, "more place"},
		{"many resources", ``, `{"type":"A","title":"a"},{"type":"A","title":"b"},{"type":"A","title":"c"},{"type":"A","title":"d"}`, "… and 2 more resources"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			check(t, WriteText(&out, NewShower(nil, limits).Show(t.Context(), compareTexts(t, catalogOf(c.old), catalogOf(c.new))), false))
			if !strings.Contains(out.String(), c.want) || out.Len() > 600 {
				t.Errorf("want %q in\n%s", c.want, out.String())
			}
		})
	}
}

// A sent catalog could name any blob: none is read.
func TestBlobsOfASentCatalogAreNotRead(t *testing.T) {
	t.Parallel()
	old, err := Parse([]byte(oldSample()))
	check(t, err)
	sent, err := ParseSent([]byte(newSample()))
	check(t, err)
	d, err := Compare(old, sent)
	check(t, err)
	var out bytes.Buffer
	check(t, WriteText(&out, NewShower(blobsOf(scriptOld, scriptNew, binaryBlob, "text\n"), DefaultLimits()).Show(t.Context(), d), true))
	if strings.Contains(out.String(), "echo new") || !strings.Contains(out.String(), "what a sent catalog names is not read") {
		t.Error(out.String())
	}
}

func TestWhatIsNoCatalog(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `[]`, `{}`, `{"resources":{}}`, `{"resources":[1]}`, `{"resources":[{"title":"a"}]}`, `{"resources":[]} x`,
		`{"resources":[{"type":"A","title":"b","parameters":`, `{"exported":[],"catalog":{}}`, `{"resources":[],"metadata":[]}`,
	} {
		if _, err := Parse([]byte(text)); fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("%s: %v", text, err)
		} else if len(text) > 4 && strings.Contains(fault.Detail(err), text) {
			t.Errorf("the error quotes the document: %v", err)
		}
	}
	deep := catalogOf(`{"type":"A","title":"b","parameters":{"p":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}}`)
	a, err := Parse([]byte(deep))
	check(t, err)
	b, err := Parse([]byte(catalogOf(``)))
	check(t, err)
	if _, err := Compare(a, b); fault.Of(err) != fault.Invalid || err == nil {
		t.Errorf("values nested 300 deep: %v", err)
	}
}
