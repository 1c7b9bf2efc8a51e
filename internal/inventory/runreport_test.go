package inventory_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/inventory"
)

func TestFirstFailure(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 11, 23, 12, 0, second, 0, time.UTC) }
	failure := func(message string) []inventory.Event {
		return []inventory.Event{{Status: "success", Message: "fine"}, {Status: "failure", Message: message}}
	}
	good := inventory.ResourceStatus{Type: "File", Title: "/good", Changed: true, Time: at(0), Events: failure("")[:1]}
	for name, test := range map[string]struct {
		report inventory.Report
		want   inventory.ResourceFailure
	}{
		"none": {inventory.Report{Resources: []inventory.ResourceStatus{good}}, inventory.ResourceFailure{}},
		"by time, not by place": {inventory.Report{Resources: []inventory.ResourceStatus{
			good,
			{Type: "Exec", Title: "late", Failed: true, Time: at(9), Events: failure("late")},
			{Type: "Exec", Title: "x", Failed: true, Time: at(3), Events: failure("wrong")},
		}}, inventory.ResourceFailure{Resource: "Exec[x]", Message: "wrong"}},
		"what failed before what failed to restart": {inventory.Report{Resources: []inventory.ResourceStatus{
			{Type: "Service", Title: "s", FailedToRestart: true, Time: at(1)}, {Type: "Exec", Title: "x", Failed: true, Time: at(3), Events: failure("wrong")},
		}}, inventory.ResourceFailure{Resource: "Exec[x]", Message: "wrong"}},
		"words of the log": {inventory.Report{
			Resources: []inventory.ResourceStatus{{Type: "Package", Title: "p", Failed: true}},
			Logs: []inventory.RunLog{
				{Level: "notice", Source: "/Stage[main]/Main/Package[p]", Message: "trying"},
				{Level: "err", Source: "/Stage[main]/Main/Package[q]", Message: "another one"},
				{Level: "err", Source: "/Stage[main]/Main/Package[p]", Message: "no provider"},
			},
		}, inventory.ResourceFailure{Resource: "Package[p]", Message: "no provider"}},
	} {
		if diff := cmp.Diff(test.want, test.report.FirstFailure()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNoCatalog(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation Error: no": "Evaluation Error: no",
		"Could not retrieve catalog from remote server: Connection refused":                                      "Connection refused",
		"Could not retrieve catalog; skipping run":                                                               "",
	} {
		r := inventory.Report{Logs: []inventory.RunLog{
			{Level: "notice", Message: "Could not retrieve catalog from remote server: no"}, {Level: "err", Message: message},
		}}
		if got := r.NoCatalog(); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}
