package catalogrequest

import (
	"encoding/json"
	"net/url"
	"testing"
)

func TestCatalogRequestEscapesFactsTwice(t *testing.T) {
	t.Parallel()
	base := Facts{"os": map[string]any{"release": map[string]any{"full": "12.5", "major": "12"}}, "sum": "1+1 = 2"}
	request, err := New("small-1.example.org", base.Of("small-1.example.org", "12.1001"))
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
	if base["os"].(map[string]any)["release"].(map[string]any)["full"] != "12.5" {
		t.Error("the shared facts were changed")
	}
}
