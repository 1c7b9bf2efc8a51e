package main

import (
	"testing"

	"github.com/tutti-project/tutti/api"
)

// A benchmark that loses answers, or counts them twice, measures nothing: it must see that.
func TestTallySeesWhatIsLostOrTwice(t *testing.T) {
	t.Parallel()
	answer := func(node, state string) api.ActionEvent {
		return api.ActionEvent{Answer: &api.ActionAnswer{Node: node, State: state}}
	}
	asked := func(nodes int) api.ActionEvent { return api.ActionEvent{Asked: &api.ActionAsked{Nodes: nodes}} }
	for name, c := range map[string]struct {
		events []api.ActionEvent
		fine   bool
	}{
		"all":      {[]api.ActionEvent{asked(2), answer("a", "ok"), answer("b", "ok")}, true},
		"lost":     {[]api.ActionEvent{asked(2), answer("a", "ok")}, false},
		"twice":    {[]api.ActionEvent{asked(2), answer("a", "ok"), answer("a", "ok"), answer("b", "ok")}, false},
		"stranger": {[]api.ActionEvent{asked(2), answer("a", "ok"), answer("b", "ok"), answer("c", "ok")}, false},
		"unasked":  {[]api.ActionEvent{asked(1), answer("a", "ok"), answer("b", "ok")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard := tally{states: map[string]string{}}
			var err error
			for _, e := range c.events {
				if err == nil {
					err = heard.take(e)
				}
			}
			if err == nil {
				err = heard.complete([]string{"a", "b"})
			}
			if (err == nil) != c.fine {
				t.Errorf("error: %v", err)
			}
		})
	}
	if allOK(map[string]string{"a": "ok"}) != nil || allOK(map[string]string{"a": "ok", "b": "left"}) == nil {
		t.Error("an answer that is none passes")
	}
}
