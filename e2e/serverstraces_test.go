package e2e_test

import "testing"

// traced waits until the collector has a trace of a node whose steps of these names were each told of by one server.
func (f *several) traced(t *testing.T, node string, steps map[string]*server) {
	t.Helper()
	who := map[string]string{}
	for name, s := range steps {
		who[name] = idOf(t, s)
	}
	if within(patience, func() bool {
		found := map[string]map[string]bool{} // of each trace, names of steps
		for _, s := range f.traces.Steps() {
			if s.About["tutti.node"] == node && s.Server == who[s.Name] {
				if found[s.Trace] == nil {
					found[s.Trace] = map[string]bool{}
				}
				found[s.Trace][s.Name] = true
			}
		}
		for _, names := range found {
			if len(names) == len(steps) {
				return true
			}
		}
		return false
	}) {
		return
	}
	t.Errorf("no trace of %s has %v; there are:", node, who)
	for _, s := range f.traces.Steps() {
		t.Logf("%+v", s)
	}
}
