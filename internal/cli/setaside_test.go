package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
)

// What is set aside is listed with its reasons, shown with its content, tried again and deleted; --all deletes what somebody was shown, and nothing
// that came since.
func TestSetAside(t *testing.T) {
	t.Parallel()
	piece := api.SetAside{Number: "7", Kind: "report", Node: "web-1", At: time.Now(), Bytes: 1200, Reason: "it is odd"}
	for line, c := range map[string]struct{ typed, says, asked string }{
		"list":         {"", "it is odd", "GET /set-aside"},
		"show 7":       {"", `{"status":"failed"}`, "GET /set-aside/7"},
		"retry 7":      {"", "1 piece will be tried again within seconds", "POST /set-aside/retry"},
		"delete 7":     {"y\n", "delete for good what nodes sent: 1 piece (7).\nGo on?", "POST /set-aside/delete"},
		"delete --all": {"y\n", "1 piece deleted", "GET /set-aside, POST /set-aside/delete"},
		"retry --all":  {"", "1 piece will be tried again", "GET /set-aside, POST /set-aside/retry"},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			s := &answers{to: map[string]any{
				"GET /set-aside": api.List[api.SetAside]{Items: []api.SetAside{piece}}, "POST /set-aside/retry": api.SetAsideCount{Count: 1},
				"GET /set-aside/7":       api.SetAsideContent{SetAside: piece, Content: []byte(`{"status":"failed"}`)},
				"POST /set-aside/delete": api.SetAsideCount{Count: 1},
			}}
			var out bytes.Buffer
			system := System{In: strings.NewReader(c.typed), Out: &out, Err: &out, Env: s.start(t), Asks: c.typed != "", ErrWidth: 80}
			code := Run(t.Context(), append([]string{"cluster", "set-aside"}, strings.Fields(line)...), system)
			if code != exitDone || !strings.Contains(out.String(), c.says) {
				t.Errorf("exit code %d\n%s", code, out.String())
			}
			if diff := cmp.Diff(c.asked, strings.Join(s.asked, ", ")); diff != "" {
				t.Errorf("asked (-want +got): %s", diff)
			}
		})
	}
}
