package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A client of the classifier's API, with its token and its header, manages groups that
// `tutti group` shows.
func TestClassifierClients(t *testing.T) {
	begin(t)
	s := startServer(t)
	token, err := os.ReadFile(filepath.Join(s.data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	client := anonymous(t, s)
	client.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // 303 is the answer
	ask := func(method, path, body string, status int) answer {
		t.Helper()
		headers := map[string]string{"Content-Type": "application/json", "X-Authentication": strings.TrimSpace(string(token))}
		a, err := client.doHeaders(method, "/classifier-api/v1"+path, headers, []byte(body))
		if err != nil || a.status != status {
			t.Fatalf("%s %s: %d %s %v, want %d", method, path, a.status, a.body, err, status)
		}
		return a
	}
	var groups []struct{ ID, Name string }
	if err := json.Unmarshal([]byte(ask("GET", "/groups", "", 200).body), &groups); err != nil || len(groups) != 1 {
		t.Fatalf("groups: %v %v", groups, err)
	}
	made := ask("POST", "/groups",
		`{"name":"Web","parent":"`+groups[0].ID+`","environment":"production","classes":{"apache":{"port":80}},"rule":["or",["=",["fact","role"],"web"]]}`, 303)
	id := strings.TrimPrefix(made.header.Get("Location"), "/classifier-api/v1/groups/")
	ask("POST", "/groups/"+id+"/pin", `{"nodes":["web-1.example.test"]}`, 204)
	contains(t, ask("POST", "/classified/nodes/web-1.example.test", `{"fact":{},"trusted":{}}`, 200).body, `"apache":{"port":80}`, `"environment":"production"`)
	contains(t, s.tutti(t, "group", "show", "Web"), `facts.role = "web"`, "web-1.example.test", "apache::port = 80")
	ask("DELETE", "/groups/"+id, "", 204)
	if r := s.try(t, "group", "show", "Web"); r.code != 1 {
		t.Errorf("the group is still there: %s", r.text())
	}
	refused, err := anonymous(t, s).do("GET", "/classifier-api/v1/groups", "", nil)
	if err != nil || refused.status != 401 || !strings.Contains(refused.body, `"kind":"user-unauthenticated"`) {
		t.Errorf("without a token: %d %s %v", refused.status, refused.body, err)
	}
}
