package main

import (
	"encoding/json"
	"net/url"
	"testing"
)

func TestCatalogRequestEscapesFactsTwice(t *testing.T) {
	t.Parallel()
	b := &bench{facts: map[string]any{"os": map[string]any{"release": map[string]any{"full": "12.5", "major": "12"}}, "sum": "1+1 = 2"}}
	request, err := catalogRequest("small-1.example.org", b.factsOf("small-1.example.org", "12.1001"))
	if err != nil {
		t.Fatal(err)
	}
	form, err := url.ParseQuery(string(request.Body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := url.PathUnescape(form.Get("facts"))
	if err != nil {
		t.Fatal(err)
	}
	var facts struct {
		Name   string
		Values struct {
			Sum, Clientcert, Hostname string
			OS                        struct{ Release struct{ Full, Major string } }
		}
	}
	if err := json.Unmarshal([]byte(text), &facts); err != nil {
		t.Fatal(err)
	}
	v := facts.Values
	if facts.Name != "small-1.example.org" || v.Clientcert != facts.Name || v.Hostname != "small-1" || v.Sum != "1+1 = 2" ||
		v.OS.Release.Full != "12.1001" || v.OS.Release.Major != "12" {
		t.Errorf("facts = %+v", facts)
	}
	if b.facts["os"].(map[string]any)["release"].(map[string]any)["full"] != "12.5" {
		t.Error("the shared facts were changed")
	}
}

func TestCheckFindsAnAnswerFromACache(t *testing.T) {
	t.Parallel()
	b := &bench{uuids: map[string]bool{}}
	body := []byte(`{"catalog_uuid": "u-1","resources":[{"exported":false},{"exported":false}],"content":"runs Debian 12.1001\n"}`)
	if err := b.check(body, "small-1", "12.1001"); err != nil || b.resources != 2 {
		t.Errorf("resources %d, err %v", b.resources, err)
	}
	if err := b.check(body, "small-1", "12.1001"); err == nil {
		t.Error("the same catalog again is no error")
	}
	if err := b.check(body, "small-1", "12.1002"); err == nil {
		t.Error("a catalog of other facts is no error")
	}
}
