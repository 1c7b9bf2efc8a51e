package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cli/print"
)

func TestAnswersArePrintedForPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	columns := []string{"name", "value"}
	rows := []json.RawMessage{
		json.RawMessage(`{"name":"kernel","value":"Linux"}`),
		json.RawMessage(`{"name":"os","value":{"family": "<Debian>"}}`),
		json.RawMessage(`{"name":"none","value":null}`),
	}
	for output, want := range map[string]string{
		"table": "NAME    VALUE\nkernel  Linux\nos      {\"family\":\"<Debian>\"}\nnone    -\n",
		"csv":   "name,value\nkernel,Linux\nos,\"{\"\"family\"\":\"\"<Debian>\"\"}\"\nnone,\n",
		"jsonl": "{\"name\":\"kernel\",\"value\":\"Linux\"}\n{\"name\":\"os\",\"value\":{\"family\":\"<Debian>\"}}\n{\"name\":\"none\",\"value\":null}\n",
		"json": "[\n  {\n    \"name\": \"kernel\",\n    \"value\": \"Linux\"\n  },\n  {\n    \"name\": \"os\",\n    \"value\": {\n      \"family\": \"<Debian>\"\n    }\n  },\n" +
			"  {\n    \"name\": \"none\",\n    \"value\": null\n  }\n]\n",
		"name": "kernel\nos\nnone\n",
	} {
		var out bytes.Buffer
		a := &app{system: System{Out: &out, Err: &out}, output: output}
		if err := print.List(a.printer(), rows, rowTable(columns, "", true)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", output, diff)
		}
	}
}

func TestAWrongQueryShowsThePlace(t *testing.T) {
	t.Parallel()
	_, err := readQuery("nodes {\n  certname > \"a\"\n}")
	if err == nil || !strings.Contains(err.Error(), "not allowed on field certname (line 2, column 3)\n\n  certname > \"a\"\n  ^") {
		t.Errorf("got %v", err)
	}
	if exitCode(err) != exitUsage {
		t.Errorf("exit code %d", exitCode(err))
	}
}

func TestTheShellCompletesQueries(t *testing.T) {
	t.Parallel()
	if got, _ := completeCondition(nil)(nil, nil, `certname = "a" and latest_report_st`); len(got) == 0 || got[0] != `certname = "a" and latest_report_status` {
		t.Errorf("a condition: %v", got)
	}
	for typed, want := range map[string][]string{
		"nodes[certn":            {"nodes[certname"},
		"nodes{latest_report_st": {"nodes{latest_report_status"},
		`nodes{certname = "a" a`: {`nodes{certname = "a" and`},
	} {
		got, _ := completeQuery(nil)(nil, nil, typed)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", typed, diff)
		}
	}
}
