package variants

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDriftIsWhatCatalogAndNodeSayOtherwise(t *testing.T) {
	t.Parallel()
	const hi = "{sha256}98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4" // of "hi\n", by sha256sum
	for _, c := range []struct{ kind, catalog, live, want string }{
		{"Service", `{"ensure":"running","enable":true,"require":"Package[a]"}`, `{"ensure":"stopped","enable":"true","provider":"systemd"}`, "ensure"},
		{"Service", `{"ensure":true}`, `{"ensure":"running"}`, ""},
		{"Service", `{"ensure":"running","enable":true}`, `{"ensure":"running","enable":"false"}`, "enable"},
		{"Package", `{"ensure":"installed"}`, `{"ensure":"1.2-3"}`, ""},
		{"Package", `{"ensure":"1.2-4"}`, `{"ensure":"1.2-3"}`, "ensure"},
		{"Package", `{"ensure":"latest"}`, `{"ensure":"purged"}`, "ensure"},
		{"Package", `{"ensure":"absent"}`, `{"ensure":"purged"}`, ""},
		{"Package", `{"ensure":"purged"}`, `{"ensure":"absent"}`, "ensure"},
		{"File", `{"ensure":"present","mode":"644","owner":"root","group":0}`, `{"ensure":"file","mode":"0644","owner":0,"group":1}`, "group"},
		{"File", `{"ensure":"directory"}`, `{"ensure":"file"}`, "ensure"},
		{"File", `{"mode":"u=rw"}`, `{"mode":"0644"}`, ""},
		{"File", `{"content":"hi\n"}`, `{"content":"` + hi + `"}`, ""},
		{"File", `{"content":"hi"}`, `{"content":"` + hi + `"}`, "content"},
		{"File", `{"content":"hi\n"}`, `{"content":"{md5}764efa883dda1e11db47671c4a3bbd9e"}`, ""},
		{"File", `{"content":"{sha256}` + strings.Repeat("0", 64) + `"}`, `{"content":"` + hi + `"}`, "content"},
		{"File", `{"content":"hi"}`, `{"content":"{mtime}2026-01-01"}`, ""},
		{"User", `{"groups":["b","a"],"uid":"1000","password":{"__ptype":"Sensitive"}}`, `{"groups":["a","b"],"uid":1000,"password":"[redacted]"}`, ""},
		{"User", `{"groups":["a"],"shell":null}`, `{"groups":["a","b"],"shell":"/bin/sh"}`, "groups"},
		{"User", `{"groups":"a"}`, `{"groups":["a"]}`, ""},
		{"Host", `{"host_aliases":[]}`, `{"host_aliases":["a"]}`, "host_aliases"},
		{"User", `{"comment":""}`, `{"comment":"Ann"}`, "comment"},
	} {
		all, err := Drift(c.kind, json.RawMessage(c.catalog), json.RawMessage(c.live))
		var names []string
		for _, d := range all {
			names = append(names, d.Parameter)
		}
		if got := strings.Join(names, " "); got != c.want || err != nil {
			t.Errorf("%s: catalog %s, node %s: %q differ, want %q; %v", c.kind, c.catalog, c.live, got, c.want, err)
		}
	}
	if _, err := Drift("File", json.RawMessage(`[]`), json.RawMessage(`{}`)); err == nil {
		t.Error("an array was read as parameters")
	}
}

func TestParametersHaveOneSpelling(t *testing.T) {
	t.Parallel()
	got, err := Canonical(json.RawMessage(`{"b": {"y":1, "x":12345678901234567890}, "a":"<&>", "mtime":"now"}`), []string{"mtime"})
	if want := `{"a":"<&>","b":{"x":12345678901234567890,"y":1}}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for _, bad := range []string{``, `null`, `[1]`} {
		if _, err := Canonical(json.RawMessage(bad), nil); err == nil {
			t.Errorf("%q was taken as parameters", bad)
		}
	}
}
