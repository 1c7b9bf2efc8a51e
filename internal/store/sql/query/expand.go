package query

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/inventory"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// report shows a part of a report as PuppetDB does.
func (r *Renderer) report(o output, c cell) error {
	document, err := r.open(c.bytes())
	if err != nil {
		return err
	}
	var report inventory.Report
	if document != nil {
		if err := inventory.ParseDocument(document, &report); err != nil {
			return err
		}
	}
	href := "/pdb/query/v4/reports/" + r.cells[o.cols[1]].text() + "/"
	switch o.part {
	case "metrics":
		metrics, err := metricList(report.Metrics)
		if err != nil {
			return err
		}
		return r.expanded(metrics, href+"metrics")
	case "logs":
		return r.expanded(logList(report.Logs), href+"logs")
	default:
		return r.expanded(eventList(report.Resources), href+"events")
	}
}

type metric struct {
	Category string          `json:"category"`
	Name     string          `json:"name"`
	Value    json.RawMessage `json:"value"`
}

// metricList flattens {group: {values: [[name, label, value]]}}.
func metricList(raw json.RawMessage) ([]metric, error) {
	list := []metric{}
	if len(raw) == 0 {
		return list, nil
	}
	var groups map[string]struct {
		Values [][]json.RawMessage `json:"values"`
	}
	if err := json.Unmarshal(raw, &groups); err != nil {
		return nil, err
	}
	for _, category := range sortedKeys(groups) {
		for _, v := range groups[category].Values {
			var name string
			if len(v) == 3 && json.Unmarshal(v[0], &name) == nil {
				list = append(list, metric{category, name, v[2]})
			}
		}
	}
	return list, nil
}

type logLine struct {
	File    *string  `json:"file"`
	Line    *int     `json:"line"`
	Level   string   `json:"level"`
	Message string   `json:"message"`
	Source  string   `json:"source"`
	Tags    []string `json:"tags"`
	Time    *string  `json:"time"`
}

func logList(logs []inventory.RunLog) []logLine {
	list := make([]logLine, len(logs))
	for i, l := range logs {
		list[i] = logLine{present(l.File), presentLine(l.Line), l.Level, l.Message, l.Source, append([]string{}, l.Tags...), wireTime(l.Time)}
	}
	return list
}

func presentLine(line int) *int {
	if line == 0 {
		return nil
	}
	return &line
}

type reportEvent struct {
	Status           *string         `json:"status"`
	Timestamp        *string         `json:"timestamp"`
	ResourceType     string          `json:"resource_type"`
	ResourceTitle    string          `json:"resource_title"`
	Property         *string         `json:"property"`
	Name             *string         `json:"name"`
	NewValue         json.RawMessage `json:"new_value"`
	OldValue         json.RawMessage `json:"old_value"`
	Message          *string         `json:"message"`
	File             *string         `json:"file"`
	Line             *int            `json:"line"`
	ContainmentPath  []string        `json:"containment_path"`
	ContainingClass  *string         `json:"containing_class"`
	CorrectiveChange bool            `json:"corrective_change"`
}

// offsetTime is how PuppetDB writes times inside of expanded events, and only there.
func offsetTime(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	text := at.UTC().Format("2006-01-02T15:04:05.999999+00:00")
	return &text
}

// eventList is nil, which is shown as null, when nothing happened.
func eventList(resources []inventory.ResourceStatus) []reportEvent {
	var list []reportEvent
	for i := range resources {
		r := &resources[i]
		for _, e := range r.Happened() {
			list = append(list, reportEvent{
				Status: present(e.Status), Timestamp: offsetTime(e.Time), ResourceType: r.Type, ResourceTitle: r.Title,
				Property: present(e.Property), Name: present(e.Name), NewValue: e.Desired, OldValue: e.Previous, Message: present(e.Message),
				File: present(r.File), Line: presentLine(r.Line), ContainmentPath: r.ContainmentPath,
				ContainingClass: containingClass(r.ContainmentPath), CorrectiveChange: e.CorrectiveChange,
			})
		}
	}
	return list
}

// containingClass is the last class of a containment path: what has no brackets.
func containingClass(path []string) *string {
	for _, step := range slices.Backward(path) {
		if !strings.Contains(step, "[") {
			return &step
		}
	}
	return nil
}

type catalogResource struct {
	Resource   string          `json:"resource"`
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Tags       json.RawMessage `json:"tags"`
	Exported   bool            `json:"exported"`
	File       *string         `json:"file"`
	Line       *int            `json:"line"`
	Parameters json.RawMessage `json:"parameters"`
}

type catalogEdge struct {
	SourceType   string `json:"source_type"`
	SourceTitle  string `json:"source_title"`
	TargetType   string `json:"target_type"`
	TargetTitle  string `json:"target_title"`
	Relationship string `json:"relationship"`
}

// rows shows the resources or edges of a catalog.
func (r *Renderer) rows(o output, c cell) error {
	var rows [][]any
	if text := c.text(); text != "" {
		if err := json.Unmarshal([]byte(text), &rows); err != nil {
			return err
		}
	}
	href := "/pdb/query/v4/catalogs/" + r.cells[o.cols[1]].text() + "/" + o.field
	if len(rows) == 0 {
		return r.expanded(nil, href)
	}
	if o.field == "edges" {
		list := make([]catalogEdge, len(rows))
		for i, row := range rows {
			list[i].SourceType, list[i].SourceTitle = splitRef(str(row[0]))
			list[i].TargetType, list[i].TargetTitle = splitRef(str(row[1]))
			list[i].Relationship = str(row[2])
		}
		return r.expanded(list, href)
	}
	list := make([]catalogResource, len(rows))
	for i, row := range rows {
		exported, _ := row[4].(float64)
		line, _ := row[6].(float64)
		tags := str(row[3])
		if tags == "" {
			tags = "[]"
		}
		list[i] = catalogResource{
			str(row[0]), str(row[1]), str(row[2]), json.RawMessage(tags), exported != 0, present(str(row[5])), presentLine(int(line)),
			json.RawMessage(str(row[7])),
		}
	}
	return r.expanded(list, href)
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func splitRef(ref string) (kind, title string) {
	kind, title, _ = strings.Cut(ref, "[")
	return kind, strings.TrimSuffix(title, "]")
}
