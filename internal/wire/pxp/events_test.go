package pxp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func TestRunEventsAreChecked(t *testing.T) {
	t.Parallel()
	const at = `"at":"2026-11-22T01:02:03.4Z"`
	of := func(events ...string) string { return `{"run":"u","events":[` + strings.Join(events, ",") + `]}` }
	for text, want := range map[string]string{
		of(`{"n":1,"kind":"begin",` + at + `}`):                                          "",
		of(`{"n":7,"kind":"resource",` + at + `,"old":{"a":[1]},"new":null}`):            "",
		of(`{"n":1,"kind":"missing","missing":4,`+at+`}`, `{"n":5,"kind":"end",`+at+`}`): "",
		of(`{"n":1,"kind":"missing","missing":4,`+at+`}`, `{"n":4,"kind":"end",`+at+`}`): "no gap",
		of(): "field events",
		`{"run":"../u","events":[{"n":1,"kind":"begin",` + at + `}]}`:                                                    "field run",
		of(`{"n":0,"kind":"begin",` + at + `}`):                                                                          "field n",
		of(`{"n":1,"kind":"begin"}`):                                                                                     "field at",
		of(`{"n":1,"kind":"begun",` + at + `}`):                                                                          "field kind",
		of(`{"n":1,"kind":"missing",` + at + `}`):                                                                        "field missing",
		of(`{"n":1,"kind":"begin","missing":1,` + at + `}`):                                                              "field missing",
		of(`{"n":1,"kind":"missing","missing":9223372036854775807,` + at + `}`):                                          "field n",
		of(`{"n":1,"kind":"begin","transaction_id":"a/b",` + at + `}`):                                                   "field transaction_id",
		of(`{"n":1,"kind":"resource","title":"a\u0000",` + at + `}`):                                                     "byte 0",
		of(`{"n":1,"kind":"resource","message":"` + strings.Repeat("x", pxp.MaxEventTextBytes+1) + `",` + at + `}`):      "field message",
		of(`{"n":1,"kind":"resource","type":"` + strings.Repeat("x", pxp.MaxEventNameBytes+1) + `",` + at + `}`):         "field type",
		of(`{"n":1,"kind":"resource","line":-1,` + at + `}`):                                                             "field line",
		of(strings.TrimSuffix(strings.Repeat(`{"n":1,"kind":"begin",`+at+`},`, pxp.MaxRunEvents+1), ",")):                "field events",
		of(`{"n":1,"kind":"resource","containment":[` + strings.Repeat(`"x",`, pxp.MaxContainment) + `"x"],` + at + `}`): "field containment",
	} {
		_, err := pxp.ParseRunEvents(jsontext.Value(text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%.200s: %v", text, err)
		case want != "" && (fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want)):
			t.Errorf("%.200s: got %v, want an error that says %q", text, err, want)
		}
	}
	for text, ok := range map[string]bool{`{"run":"u","last":0}`: true, `{"run":"u","last":-1}`: false, `{"last":1}`: false} {
		if _, err := pxp.ParseRunEventsTaken(jsontext.Value(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Whatever a run says, its node can send it.
func TestFittedEventsAreTaken(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä\x00\xff\"\n", 4000)
	path := make([]string, pxp.MaxContainment+1)
	path[0] = long
	e := pxp.RunEvent{
		N: 1, Kind: pxp.ResourceEvent, At: time.Now(), Title: long, Message: long, Type: long, Property: long, Name: long, File: long, Status: long,
		Environment: long, Version: long, Containment: path, Line: -4, Transaction: "../x",
		Old: pxp.Data(strings.Repeat(`"`, 9000)), New: jsontext.Value(`[` + strings.Repeat(`"\u0001",`, 4000) + `1]`),
	}.Fit()
	if _, err := pxp.ParseRunEvents(pxp.Data(pxp.RunEvents{Run: "u", Events: []pxp.RunEvent{e}})); err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(e.Message, "(cut)") || !strings.Contains(string(e.Old), "(cut)") || e.Transaction != "" {
		t.Errorf("what was cut does not say so: %.80q %.80s", e.Message, e.Old)
	}
	small := pxp.RunEvent{N: 1, Kind: pxp.ResourceEvent, Title: "/etc/motd", Old: jsontext.Value(`"absent"`), Containment: []string{"Stage[main]"}}
	if diff := cmp.Diff(small, small.Fit()); diff != "" {
		t.Errorf("what fits was changed (-want +got):\n%s", diff)
	}
	if e := (pxp.RunEvent{Old: jsontext.Value("null")}).Fit(); e.Old != nil {
		t.Errorf("null is no value, got %s", e.Old)
	}
}
